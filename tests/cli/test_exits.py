"""How commands end when something stops them: one sentence, a status, and no files left."""

import ast
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from rejoinder.cli import main
from rejoinder.cli.main import app
from rejoinder.cli.output import as_options
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model, transformer_model

FULL = Path("/dev/full")
EXTRAS = (
    *("duckdb", "ibis", "zstandard", "torch", "tokenizers", "gensim", "sklearn"),
    *("matplotlib", "sentence_transformers", "fastapi", "uvicorn", "pyspark", "pyarrow", "pandas"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with models and sentences."""
    folder = tmp_path_factory.mktemp("place")
    write_model(folder / "model", dan_model())
    (folder / "lines").write_text("hello you\ngood morning\n" * 2_000, "utf-8")
    return folder


def program(words):
    return [sys.executable, "-m", "rejoinder", *words]


def run(place, *words, **options):
    return subprocess.run(program(words), cwd=place, capture_output=True, text=True, **options)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "words",
    [
        ["encode", "--model", "model", "--sentences", "lines"],
        ["similarity", "--model", "model", "hello", "you"],
        ["search", "--model", "model", "hello", "--corpus", "lines", "--json"],
        ["info", "model"],
        ["train", "--help"],
        ["--version"],
    ],
)
def test_a_full_standard_output_is_one_sentence(place, words):
    with FULL.open("w") as full:
        ended = subprocess.run(
            program(words), cwd=place, stdout=full, stderr=subprocess.PIPE, text=True
        )
    said = "rejoinder: standard output can't be written: no space is left on the device.\n"
    assert (ended.returncode, ended.stderr) == (2, said)


@pytest.mark.parametrize(
    "words",
    [
        ["encode", "--model", "model", "--sentences", "lines", "--json"],
        ["search", "--model", "model", "a", "--corpus", "lines"],
    ],
)
def test_a_reader_that_has_gone_is_no_error(place, words):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        program(words), cwd=place, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert ended.returncode == 0
    assert "Error" not in ended.stderr


def test_a_closed_standard_output_takes_nothing(place):
    ended = run(
        place, "similarity", "--model", "model", "hello", "you", preexec_fn=lambda: os.close(1)
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_terminal_of_another_alphabet_gets_what_it_can_show(place):
    ended = run(
        place,
        "similarity",
        "--model=model",
        "hello",
        "tr\u00e8s",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ended.returncode == 0
    assert "tr?s" in ended.stdout


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".jsonl"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(place, suffix):
    before = sorted(place.iterdir())

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    ended = run(
        place,
        "encode",
        "--model",
        "model",
        "--sentences",
        "lines",
        "--out",
        f"e{suffix}",
        preexec_fn=limit,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"e{suffix} can't be written: a file would exceed the size limit" in ended.stderr
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["encode", "--model", "nowhere", "--sentences", "nothing", "--out", "lines/e.npy"],
        ["adapt", "nowhere", "--sts", "nothing", "--out", "lines/adapted"],
    ],
)
def test_an_output_that_can_not_be_written_is_found_before_the_work(place, words):
    ended = run(place, *words)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"{words[-1]} can't be written: a part of the path is a file" in ended.stderr


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "terminated"),
        (signal.SIGINT, 130, "interrupted"),
    ],
)
def test_signals_leave_nothing_behind(place, number, status, said):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests were started by nohup, and programs that they start ignore SIGHUP")
    before = sorted(place.iterdir())
    words = ["encode", "--model", "model", "-", "--out", "e.npy"]  # waits for its input
    with subprocess.Popen(
        program(words), cwd=place, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        while not (place / ".e.npy.lock").exists():
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(number)
        assert running.wait(120) == status
        assert running.stderr.read() == f"rejoinder: {said}\n"
    assert sorted(place.iterdir()) == before


def test_an_interruption_that_python_ignores_ends_a_command_that_reads():
    """Python ignores what is raised within `__del__`, or while a module is freed."""
    script = (
        "import os, signal, sys\n"
        "from rejoinder.cli.output import status_of\n"
        "from rejoinder.cli.options import read_lines\n"
        "class Freed:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        sum(range(1_000))\n"
        "def command():\n"
        "    Freed()\n"
        "    read_lines('-')\n"
        "sys.exit(status_of(command))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.wait(120) == 130
        assert running.stderr.read().endswith("rejoinder: interrupted\n")


def test_a_signal_that_another_thread_was_given_ends_a_command_that_reads():
    """While BLAS starts its threads the main thread blocks signals; now and then one gets it."""
    script = (
        "import signal, sys, threading, time\n"
        "from rejoinder.cli.output import status_of\n"
        "from rejoinder.cli.options import read_lines\n"
        "def receive():\n"
        "    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:\n"
        "        time.sleep(0.01)\n"
        "    time.sleep(0.2)\n"  # until the main thread reads; without, the test passes too
        "    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
        "threading.Thread(target=receive).start()\n"
        "sys.exit(status_of(lambda: read_lines('-')))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.wait(120) == 143
        assert running.stderr.read() == "rejoinder: terminated\n"


def test_a_bare_install_says_what_to_install(place):
    """Everything runs that needs no extra; the rest names the extra."""
    write_model(place / "transformer", transformer_model())
    write_model(place / "bilstm", bilstm_model())
    script = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        "from rejoinder.cli.main import run\n"
        "for line in sys.argv[1:]:\n"
        "    sys.argv = ['rejoinder', *line.split()]\n"
        "    try:\n"
        "        run()\n"
        "    except SystemExit as stop:\n"
        "        print(stop.code, line, file=sys.stderr)\n"
    )
    fine = [
        "--help",
        "encode -m model --sentences lines --out e.npy",
        "encode -m model --sentences lines --out e.jsonl",
        "similarity -m model hello you",
        "search -m model hello --corpus lines",
        "rank -m model hello --responses lines",
        "info model",
    ]
    extras = {"pyarrow": "parquet"}
    refused = {
        "encode -m model --sentences lines --out e.parquet": "pyarrow is not installed",
        "info transformer": "torch is not installed",
        "info bilstm": "torch is not installed",
        "encode -m transformer --sentences lines": "torch is not installed",
        "similarity -m bilstm hello you": "torch is not installed",
        "search -m bilstm hello --corpus lines": "torch is not installed",
        "rank -m bilstm hello --responses lines": "torch is not installed",
    }
    ended = subprocess.run(
        [sys.executable, "-c", script, *fine, *refused], cwd=place, capture_output=True, text=True
    )
    assert "Traceback" not in ended.stderr
    for line in fine:
        assert f"0 {line}\n" in ended.stderr
    for line, said in refused.items():
        extra = extras.get(said.split()[0], "train")
        assert f"rejoinder: {said}: pip install 'rejoinder[{extra}]'" in ended.stderr
        assert f"2 {line}\n" in ended.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 5 GiB"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("[enforce fail at alloc] DefaultCPUAllocator: can't allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_does_not_suffice_is_one_sentence(error, capsys):
    from rejoinder.cli.output import status_of

    def command():
        raise error

    assert status_of(command) == 2
    said = capsys.readouterr().err
    assert said.startswith("rejoinder: memory does not suffice; ")
    assert said.count("\n") == 1


def test_other_errors_stay_bugs():
    from rejoinder.cli.output import status_of

    with pytest.raises(RuntimeError, match="in memory of"):
        status_of(lambda: (_ for _ in ()).throw(RuntimeError("in memory of")))


def run_as_process(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "rejoinder", *words],
        capture_output=True,
        env={**os.environ, **variables},
    )


def test_without_a_locale_text_is_printed_as_utf_8(tmp_path):
    write_model(tmp_path / "model", dan_model())
    words = ("encode", "-m", str(tmp_path / "model"), "très 😀", "--json")
    plain = run_as_process(*words)
    ended = run_as_process(*words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (ended.returncode, ended.stdout) == (0, plain.stdout)
    assert "très 😀".encode() in ended.stdout


@pytest.mark.slow
def test_paths_that_are_not_utf_8_work_or_are_one_sentence(tmp_path, small_dump):
    folder = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(folder)  # noqa: PTH102 -- a name of bytes
    write_model(Path(os.fsdecode(folder)) / "model", dan_model())
    ended = run_as_process(
        "export", folder + b"/model", "--dtype", "float16", "--out", folder + b"/b"
    )
    assert ended.returncode == 0
    ended = run_as_process("extract", str(small_dump), "--out", folder + b"/pairs")
    assert (ended.returncode, ended.stdout) == (2, b"")
    [line] = ended.stderr.splitlines()
    assert b"pairs' is not UTF-8, and some libraries can't open such paths" in line


def strings_of(file):
    """The strings of a module that are not docstrings, with … for what is put in."""
    tree = ast.parse(file.read_text("utf-8"))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            yield "".join(getattr(one, "value", None) if isinstance(one, ast.Constant) else "…"
                          for one in node.values)  # fmt: skip
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_library_names_arguments_that_are_options_of_commands():
    commands = [get_command(app)]
    for command in commands:  # it grows
        commands += getattr(command, "commands", {}).values()
    fields = [field for one in commands for field in one.params]
    options = {name for field in fields for name in (*field.opts, *field.secondary_opts)}
    package = Path(main.__file__).parent.parent
    for file in package.rglob("*.py"):
        name = file.relative_to(package).as_posix()
        # a server is a command, what reproduces a table says by which, and git has options
        if name.startswith(("cli/", "serve/")) or name == "version.py":
            continue
        for text in strings_of(file):
            # commands of others, and ours as a whole
            rest = re.sub(r"`?(rejoinder|aws s3|--nproc-per-node) .*", "", text, flags=re.DOTALL)
            assert not re.search(r"(?<![\w-])--[a-z]", rest), f"{file}: {text}"
            for argument in re.finditer(r"`[a-z][a-z0-9_]*(=[^`]*)?`", text):
                assert as_options(argument[0]).split(" ")[0] in options, f"{file}: {text}"
