"""A full or read-only disk, no memory, damage, two at a time: one sentence, nothing lost."""

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rejoinder.io.files.hashed import sealed

pytestmark = pytest.mark.slow

COMMANDS = (
    "extract", "extract carry", "train", "train over", "encode", "evaluate", "adapt", "index",
    "index add", "index update", "index compact", "export", "export over",
)  # fmt: skip
PATIENCE = 120
"""Seconds after which a command counts as one that does not end."""
HOLD = (
    "import sys, pathlib; from rejoinder.io.files.claims import claim\n"
    "with claim(pathlib.Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
)


def run(words, folder, **options):
    command = [sys.executable, "-m", "rejoinder", *map(str, words)]
    given = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(command, cwd=folder, timeout=PATIENCE, **given)


def refused(ended):
    """The one sentence that a command ended with; progress and notes may stand before it."""
    assert ended.returncode == 2, ended.stderr[-2_000:]
    assert "Traceback" not in ended.stderr
    assert ended.stderr.endswith("\n")
    sentence = ended.stderr.strip().splitlines()[-1]
    assert sentence.startswith("rejoinder: ")
    return sentence


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """A file system in memory at `folder`, while the block runs."""
    folder.mkdir()
    options = f"size={size}"
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False)
    if made.returncode:
        pytest.skip("a file system can't be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def laid_out(prepared, command, folder):
    """What lies at the output of a command before it runs, put into `folder`."""
    if command.seed is not None:
        shutil.copytree(prepared.base / command.seed, folder / command.out)


def size_of(folder):
    return sum(path.stat().st_size + 4_096 for path in folder.rglob("*"))


@pytest.fixture(params=COMMANDS)
def command(request, prepared):
    return prepared.faults.commands(prepared.base)[request.param]


def words_of(command, folder):
    return [*command.named(folder), *command.first]


def test_a_full_disk(command, prepared, tmp_path):
    seed = 0 if command.seed is None else size_of(prepared.base / command.seed)
    with mounted(tmp_path / "disk", seed + 16_384):
        laid_out(prepared, command, tmp_path / "disk")
        before = prepared.faults.digests(tmp_path / "disk")
        sentence = refused(run(words_of(command, tmp_path / "disk"), tmp_path))
        assert "can't be written: no space is left on the device" in sentence
        assert prepared.faults.digests(tmp_path / "disk") == before
        assert not list((tmp_path / "disk").rglob(".*"))


def test_a_limit_of_file_sizes(command, prepared, tmp_path):
    laid_out(prepared, command, tmp_path)
    before = prepared.faults.digests(tmp_path)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800))  # noqa: E731
    sentence = refused(run(words_of(command, tmp_path), tmp_path, preexec_fn=limit))
    assert "can't be written: a file would exceed the size limit" in sentence
    assert prepared.faults.digests(tmp_path) == before


def test_a_disk_that_can_only_be_read(command, prepared, tmp_path):
    seed = 0 if command.seed is None else size_of(prepared.base / command.seed)
    with mounted(tmp_path / "disk", seed + 10_000_000):
        laid_out(prepared, command, tmp_path / "disk")
        before = prepared.faults.digests(tmp_path / "disk")
        subprocess.run(["mount", "-o", "remount,ro", tmp_path / "disk"], check=True)
        sentence = refused(run(words_of(command, tmp_path / "disk"), tmp_path))
        assert "can't be written: the file system is read-only" in sentence
        assert prepared.faults.digests(tmp_path / "disk") == before


def test_another_process_on_the_same_output(command, prepared, tmp_path):
    laid_out(prepared, command, tmp_path)
    before = prepared.faults.digests(tmp_path)
    hold = [sys.executable, "-c", HOLD, tmp_path / command.out]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        sentence = refused(run(words_of(command, tmp_path), tmp_path))
        other.stdin.close()
    assert f"is being written by another command (process {other.pid}" in sentence
    assert prepared.faults.digests(tmp_path) == before


def test_memory_that_does_not_suffice(command, prepared, tmp_path):
    laid_out(prepared, command, tmp_path)
    before = prepared.faults.digests(tmp_path)
    script = (
        "import importlib, resource, sys\n"
        "import rejoinder.cli.main, sqlite3, safetensors.torch, safetensors.numpy\n"
        "for name in 'training evaluation export'.split():\n"
        "    importlib.import_module(f'rejoinder.api.{name}')\n"
        "import rejoinder.corpus.extract, rejoinder.corpus.engines.local.engine\n"
        "import rejoinder.index.indexing, rejoinder.inference.encoding\n"
        "import mmap; held = mmap.mmap(-1, 3_000_000_000, mmap.MAP_PRIVATE)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 4_000_000,) * 2)\n"
        "rejoinder.cli.main.run()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, words_of(command, tmp_path))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    sentence = refused(ended)
    assert "memory does not suffice" in sentence or "limit of" in sentence
    assert prepared.faults.digests(tmp_path) == before


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here fails to be read")
@pytest.mark.parametrize(
    ("name", "unreadable"),
    [
        ("extract", "dump.jsonl"),
        ("train", "c.toml"),
        ("train", "pairs/manifest.json"),
        ("encode", "texts.txt"),
        ("evaluate", "data/sts-test.csv"),
        ("evaluate", "small/config.json"),
        ("adapt", "data/sts-train.csv"),
        ("index", "old.jsonl"),
        ("index add", "new.jsonl"),
        ("index add", "index/index.json"),
    ],
)
def test_an_input_that_can_not_be_read(name, unreadable, prepared, tmp_path):
    """The first bytes of a process's memory give an input/output error, also to root."""
    base = tmp_path / "base"
    shutil.copytree(prepared.base, base)
    command = prepared.faults.commands(base)[name]
    (base / unreadable).unlink()
    (base / unreadable).symlink_to("/proc/self/mem")
    if command.seed is not None:
        shutil.copytree(base / command.seed, tmp_path / command.out, symlinks=True)
    sentence = refused(run(words_of(command, tmp_path), tmp_path))
    assert "nput/output error" in sentence
    if command.seed is None and name != "evaluate":  # which keeps the tasks that are done
        assert not (tmp_path / command.out).exists()


DAMAGES = {
    "train": ("pairs/*.parquet", "pairs/manifest.json"),
    "train again": ("run/checkpoints/step-60/*.safetensors", "run/checkpoints/step-60/state.json",
                    "run/manifest.json", "run/vocabulary/vocabulary.txt"),
    "encode again": ("small/weights.safetensors", "small/config.json", "small/vocabulary.txt"),
    "evaluate": ("small/weights.safetensors", "pairs/*2.parquet"),
    "adapt": ("run/model/config.json", "run/model/weights.safetensors"),
    "index again": ("small/weights.safetensors",),
    "index add": ("index/index.json", "index/model/weights.safetensors"),
    "index compact": ("many/index.json", "many/0*/embeddings.bin", "many/0*/texts.bin",
                      "many/0*/ids.bin", "many/0*/texts.offsets"),
    "index check": ("index/0*/embeddings.bin", "index/0*/keys", "index/0*/rows"),
    "search": ("index/index.json", "index/model/weights.safetensors"),
    "serve": ("small/weights.safetensors", "index/index.json"),
    "export again": ("small/weights.safetensors", "small/config.json"),
}  # fmt: skip


def others(base):
    """Further commands that read what the benchmark prepares."""
    small = str(base / "small")
    return {
        "train again": ("train", "--pairs", base / "pairs", "--resume", "--out", base / "run"),
        "encode again": ("encode", "--model", small, "--sentences", base / "texts.txt",
                         "--out", "e.npy"),
        "index again": ("index", base / "old.jsonl", "--model", small, "--out", "new"),
        "index check": ("index", "check", base / "index"),
        "search": ("search", "hello", "--index", base / "index"),
        "serve": ("serve", small, "--index", base / "index", "--port", "0"),
        "export again": ("export", small, "--dtype", "float16", "--out", "new"),
    }  # fmt: skip


@pytest.fixture
def base(prepared, tmp_path):
    """A copy of what was prepared, to be damaged."""
    shutil.copytree(prepared.base, tmp_path / "base")
    return tmp_path / "base"


def command_in(prepared, base, name, folder):
    if name in others(base):
        return others(base)[name]
    command = prepared.faults.commands(base)[name]
    laid_out_from = base if command.seed else None
    if laid_out_from is not None:
        shutil.copytree(base / command.seed, folder / command.out)
    return words_of(command, folder)


@pytest.mark.parametrize(
    ("name", "pattern"), [(name, pattern) for name, all_ in DAMAGES.items() for pattern in all_]
)
def test_a_changed_byte(name, pattern, prepared, base, tmp_path):
    path = sorted(base.glob(pattern))[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    words = command_in(prepared, base, name, tmp_path)
    before = prepared.faults.digests(tmp_path)
    sentence = refused(run(words, tmp_path))
    copied = "index" if path.parent.name == "many" else path.parent.name
    assert path.name in sentence or copied in sentence
    assert prepared.faults.digests(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("train", "pairs/manifest.json"),
        ("train again", "run/checkpoints/step-60/state.json"),
        ("train again", "run/manifest.json"),
        ("encode again", "small/config.json"),
        ("index add", "index/index.json"),
        ("search", "index/index.json"),
        ("evaluate over", "r.json"),
    ],
)
def test_a_file_of_another_version(name, path, prepared, base, tmp_path):
    if name == "evaluate over":
        name = "evaluate"
        assert run(command_in(prepared, base, name, tmp_path), tmp_path).returncode == 0
        place = tmp_path / path
    else:
        place = base / path
    tree = json.loads(place.read_text("utf-8"))
    tree["format_version"] = 99
    if tree.pop("sha256", None) is not None:
        tree = sealed(tree)
    place.write_text(json.dumps(tree), "utf-8")
    words = command_in(prepared, base, name, tmp_path)
    before = prepared.faults.digests(tmp_path)
    assert "99" in refused(run(words, tmp_path))
    assert prepared.faults.digests(tmp_path) == before
