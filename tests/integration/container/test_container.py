"""The Dockerfile without a container engine: its build steps in a fresh folder, then its command.

Absolute paths of the image lie below the folder of the test.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
LAYERS = 180e6
"""Most bytes that our layers add to the base image."""


def instructions():
    """The instructions of the Dockerfile: (stage, name, rest)."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    stage, found = -1, []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        found.append((stage, name, rest.strip()))
    return found


STEPS = instructions()


def last(name):
    return [rest for _, other, rest in STEPS if other == name][-1]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The folder that stands for the image, after the steps of the first stage."""
    image = tmp_path_factory.mktemp("image")
    here = image
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    programs = image / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(python)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(image)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    for stage, name, rest in STEPS:
        if stage:
            break
        if name == "WORKDIR":
            here = image / rest.lstrip("/")
            here.mkdir(parents=True)
        elif name == "COPY":
            *sources, target = rest.split()
            for source in map(ROOT.joinpath, sources):
                goal = here / source.name if target == "./" else here / target
                ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
                if source.is_dir():
                    shutil.copytree(source, goal, ignore=ignore)
                else:
                    shutil.copyfile(source, goal)
        elif name == "RUN":
            command = rest.replace("/opt/", f"{image}/opt/")
            subprocess.run(["sh", "-ec", command], cwd=here, env=environment, check=True)
        else:
            assert name == "FROM"
    return image


def test_only_what_the_first_stage_built_is_copied_and_nobody_is_root():
    second = [(name, rest) for stage, name, rest in STEPS if stage == 1]
    assert ("COPY", "--from=build /opt/rejoinder /opt/rejoinder") in second
    assert sum(name == "COPY" for name, _ in second) == 1
    assert last("USER").split(":")[0] not in ("", "0", "root")


def test_the_build_context_has_what_is_copied_and_little_else():
    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert allowed[0] == "*"
    copied = {
        source
        for stage, name, rest in STEPS
        if name == "COPY" and not stage
        for source in rest.split()[:-1]
    }
    assert copied == {line[1:] for line in allowed if line.startswith("!")}


def checked(process):
    """The exit status of the health check, in a container whose process 1 is `process`."""
    check = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    code = check[2].replace("/proc/1/", f"/proc/{process.pid}/")
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("words", ["--port {}", "--port={}", "--port 1 --port {}"])
def test_the_health_check_asks_the_port_of_the_server(image, tmp_path, words):
    program, *first = json.loads(last("ENTRYPOINT"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [*first, "--host", "127.0.0.1", *words.format(port).split()]
    process = subprocess.Popen(
        [image / "opt/rejoinder/bin" / program, *words],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr.readline().split()[-1].endswith(f":{port}")
    assert checked(process) == 0
    process.kill()
    process.wait(20)
    process.stderr.close()
    assert checked(process) != 0


def test_the_command_serves_and_stops_without_writing(image, tmp_path):
    program, *words = json.loads(last("ENTRYPOINT"))
    installed = image / "opt/rejoinder"
    before = {path: path.stat().st_mtime_ns for path in installed.rglob("*")}
    process = subprocess.Popen(
        [installed / "bin" / program, *words, "--host", "127.0.0.1", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    address = process.stderr.readline().split()[-1]
    with urllib.request.urlopen(f"{address}/info") as answer:  # noqa: S310
        assert json.load(answer)["model_id"] == "rejoinder-base"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    process.stderr.close()
    assert {path: path.stat().st_mtime_ns for path in installed.rglob("*")} == before
    assert list(tmp_path.iterdir()) == []


def test_the_kernels_are_built_with_the_compiler_of_the_first_stage(image):
    program = image / "opt/rejoinder/bin/rejoinder"
    run = subprocess.run([program, "info", "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(run.stdout)["computed_by"]
    assert facts == {"library": "numpy", "words": "native", "sums": "native"}
    first, second = (rest for _, name, rest in STEPS if name == "FROM")
    assert "slim" not in first
    assert second == f"{first.removesuffix(' AS build')}-slim"


def test_our_layers_are_small(image):
    installed = image / "opt/rejoinder"
    size = sum(path.stat().st_size for path in installed.rglob("*") if not path.is_symlink())
    assert size < LAYERS


def test_compose_runs_it_read_only_for_this_machine_alone():
    [service] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"].values()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["ports"] == [f"127.0.0.1:${{PORT:-8080}}:{last('EXPOSE')}"]


@pytest.mark.skipif(not shutil.which("caddy"), reason="there is no Caddy (apt-get install caddy)")
def test_compose_puts_caddy_with_tls_before_the_server(image, tmp_path):
    added = yaml.safe_load((ROOT / "compose.tls.yaml").read_text("utf-8"))["services"]
    [name] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert f" {name}:{last('EXPOSE')}" in added["caddy"]["command"]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment |= {"REJOINDER_API_KEY": "a-key-that-nobody-guesses"}
    entry, *first = json.loads(last("ENTRYPOINT"))
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        inside, outside = (str(free.getsockname()[1]) for free in (one, other))
    command = added["caddy"]["command"].replace("${DOMAIN}", f"localhost:{outside}")
    command = command.replace(f"{name}:{last('EXPOSE')}", f"127.0.0.1:{inside}")
    processes = [
        subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        for words in (
            [image / "opt/rejoinder/bin" / entry, *first, "--port", inside],
            [*command.split(), "--internal-certs"],
        )
    ]
    curl = ["curl", "-ks", "--retry", "9", "--retry-all-errors", "-c", "jar", "-b", "jar"]
    curl += ["-o", "answer", "-w", "%{http_code}"]
    key = environment["REJOINDER_API_KEY"]
    try:
        for path, status in (("/info", "401"), (f"/?key={key}", "303"), ("/info", "200")):
            words = [*curl, f"https://localhost:{outside}{path}"]
            told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert told.stdout.endswith(status), path
        assert "\tTRUE\t" in (tmp_path / "jar").read_text("utf-8").splitlines()[-1]  # only by TLS
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)


def test_compose_serves_an_index_where_one_is_named():
    [service] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"].values()
    [mount] = service["volumes"]
    assert (mount["type"], mount["read_only"]) == ("bind", True)
    # what Compose substitutes is what a shell does
    for named, words, source in (
        ("", ["--port", last("EXPOSE")], "/dev/null"),
        ("./my index", ["--port", last("EXPOSE"), "--index", mount["target"]], "./my index"),
    ):
        told = subprocess.run(
            ["sh", "-c", f'echo "{service["command"]}"; echo "{mount["source"]}"'],
            env={"INDEX": named}, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        assert (shlex.split(told[0]), told[1]) == (words, source)
