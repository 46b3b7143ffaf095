"""The output of an extraction: held from the start, whole or absent, swept after a kill."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import ibis
import pytest

from dumps import LONG, comment, lines
from rejoinder.corpus.engines import ENGINES, Resources, register_engine
from rejoinder.corpus.engines.duckdb import DuckDBEngine
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import BusyError, InputError, StorageError

COMMAND = "from rejoinder.cli.main import run; run()"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.jsonl"
    rows = [comment(f"m{i}", f"{LONG}{i}", link_id=f"t3_{i}") for i in range(3_000)]
    rows += [comment(f"r{i}", f"{LONG}{i}", f"t1_m{i}", link_id=f"t3_{i}") for i in range(3_000)]
    path.write_bytes(lines(*rows))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_output_is_looked_at_before_the_dumps(tmp_path, dump):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file"):
        extract(["nothing.zst"], tmp_path / "file")
    with pytest.raises(StorageError, match="file/pairs "):
        extract(["nothing.zst"], tmp_path / "file" / "pairs")


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """The claim of another process."""
    code = "import sys; from pathlib import Path; from rejoinder.io.files.claims import claim\n"
    code += "with claim(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate()


def test_of_two_extractions_to_one_folder_the_second_is_refused(tmp_path, dump):
    with claimed(tmp_path / "pairs"), pytest.raises(BusyError, match="by another command"):
        extract(["nothing.zst"], tmp_path / "pairs")  # refused before the dumps are looked at
    extract([dump], tmp_path / "pairs")
    assert names(tmp_path) == ["dump.jsonl", "pairs"]


KILLED = """
import os, sys
from pathlib import Path
from rejoinder.corpus.extract import extract
def progress(stage, done, total):
    if stage == sys.argv[3]:
        os.kill(os.getpid(), int(sys.argv[4]))
extract([sys.argv[1]], Path(sys.argv[2]), overwrite=True, progress=progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("name", "stage"), [("SIGKILL", "writing"), ("SIGTERM", "reading")])
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, dump, name, stage):
    number = getattr(signal, name)
    out = tmp_path / "pairs"
    command = [sys.executable, "-c", KILLED, str(dump), str(out), stage, str(int(number))]
    assert subprocess.run(command, check=False).returncode == -number
    assert (tmp_path / ".pairs.part" / "spill").is_dir()
    assert not out.exists()
    extract([dump], out)
    assert names(tmp_path) == ["dump.jsonl", "pairs"]
    assert open_pairs(out).manifest.counts.pairs == 3_000


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, dump):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000)); "
    command = [sys.executable, "-c", limit + COMMAND, "extract", str(dump), "--out", "deep/pairs"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "deep/pairs can't be written: a file would exceed the size limit" in told.stderr
    assert told.stderr.count("\n") == 1
    assert names(tmp_path) == ["dump.jsonl"]


def test_a_disk_too_full_to_spill_is_named(tmp_path):
    engine = DuckDBEngine(Resources(tmp_path, "150MB", 1))
    engine.connection.con.execute("SET max_temp_directory_size = '1MB'")  # as on a nearly full disk
    engine.connection.con.execute("SET memory_limit = '20MB'")
    numbers = ibis.range(0, 2_000).unnest().name("n").as_table()
    numbers = numbers.cross_join(numbers.view().rename(m="n"))
    with pytest.raises(StorageError, match="no space left"):
        engine.keep("numbers", numbers)
    engine.close()


@pytest.mark.parametrize(
    ("memory", "threads", "message"),
    [
        ("149MB", None, "threads` 1;.*150MB"),
        ("149KB", 1, "threads` 1;.*150MB"),
        ("700MB", 8, "threads` 8;.*800MB"),
        ("0GB", None, "too little"),
    ],
)
def test_a_memory_that_does_not_suffice_is_refused(tmp_path, memory, threads, message):
    with pytest.raises(InputError, match=message):
        ENGINES["duckdb"](Resources(tmp_path, memory, threads))


def test_threads_are_no_more_than_memory_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for memory, threads in (("150MB", 1), ("450MB", 4), ("2GiB", 21), ("1TB", 64)):
        engine = DuckDBEngine(Resources(tmp_path, memory))
        [(found,)] = engine.connection.con.sql("SELECT current_setting('threads')").fetchall()
        assert found == threads
        engine.close()


def test_a_second_engine_is_a_line_of_the_table(tmp_path, dump, monkeypatch):
    monkeypatch.setattr(ENGINES, "_records", dict(ENGINES._records))
    register_engine("other", "rejoinder.corpus.engines.duckdb:DuckDBEngine")
    with pytest.raises(InputError, match="'other' is registered"):
        register_engine("other", "rejoinder.corpus.engines.duckdb:DuckDBEngine")
    manifest = extract([dump], tmp_path / "pairs", engine="other")
    assert manifest.counts.pairs == 3_000


@pytest.mark.parametrize(
    ("package", "said"),
    [("duckdb", "duckdb"), ("ibis", "ibis-framework"), ("pyarrow", "pyarrow"),
     ("zstandard", "zstandard")],
)  # fmt: skip
def test_a_bare_install_says_what_is_missing(tmp_path, package, said):
    (tmp_path / "dump.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    code = f"import sys; sys.modules[{package!r}] = None; {COMMAND}"
    command = [sys.executable, "-c", code, "extract", "dump.zst", "--out", "pairs"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert f"{said} is not installed: pip install 'rejoinder[extract]'" in told.stderr
    assert told.stderr.count("\n") == 1
    assert names(tmp_path) == ["dump.zst"]


def test_an_extraction_does_not_import_pandas(tmp_path, small_dump):
    # pandas is installed with Ibis, and functions of pyarrow and DuckDB import it when they can
    code = (
        "import sys; from rejoinder.corpus.extract import extract\n"
        "extract(sys.argv[1], sys.argv[2]); print('pandas' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(small_dump), str(tmp_path / "pairs")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "False\n"


def test_ctrl_c_within_a_query_is_an_interruption(tmp_path):
    engine = DuckDBEngine(Resources(tmp_path, "200MB", 1))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        engine._run("SELECT count(*) FROM range(30_000_000_000) WHERE hash(range) = 7")
    engine.close()
