"""Extraction on Spark from addresses to addresses, on a server with S3's interface."""

import gzip
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest
import zstandard
from typer.testing import CliRunner

from dumps import comment, lines
from rejoinder.cli.main import app
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from rejoinder.io.files.addresses import MARKER, Address

pytestmark = pytest.mark.xdist_group("spark")

COMMENTS = [
    comment(
        f"c{n}", f"This is comment number {'one' * (n % 7)}", f"t1_c{n // 2}", link_id=f"p{n % 50}"
    )
    for n in range(1, 1_200)
]
COLUMNS = "id=id,parent=parent_id,text=body,thread=link_id"
OPTIONS = {"columns": COLUMNS, "split": (60.0, 20.0, 20.0)}


@pytest.fixture
def store(s3) -> Address:
    """An address where nothing is."""
    return Address("s3", "tests", uuid4().hex)


@pytest.fixture
def dumps(tmp_path, store) -> Path:
    """Three dumps, in two compressions and as Parquet; the same are in `store / "dumps"`."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "RC_0.jsonl.gz").write_bytes(gzip.compress(lines(*COMMENTS[::3]) + b"no JSON\n"))
    (folder / "RC_1.zst").write_bytes(zstandard.compress(lines(*COMMENTS[1::3])))
    pl.DataFrame(COMMENTS[2::3]).write_parquet(folder / "RC_2.parquet")
    (folder / "README.md").write_text("These are dumps.")
    for path in folder.iterdir():
        (store / "dumps" / path.name).put(path.read_bytes())
    return folder


def at(folder: Address) -> dict[str, bytes]:
    found = {}
    for entry in folder.iterdir():
        with entry.open() as file:
            found[entry.name] = file.read()
    return found


def on_disk(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_folder_at_an_address_is_that_of_local_paths(spark, store, dumps, tmp_path):
    extract(dumps, tmp_path / "local", **OPTIONS)
    expected = on_disk(tmp_path / "local")
    assert len(expected) == 4

    words = ["extract", f"{store}/dumps/RC*", "--out", f"{store}/pairs", "--columns", COLUMNS]
    words += ["--engine", "spark", "--split", "60,20,20", "--json"]
    told = CliRunner().invoke(app, words)
    assert at(store / "pairs") == expected
    assert told.stdout.encode() == expected["manifest.json"]

    server = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    folder = f"s3a://tests/{store.key}/dumps/?endpoint_override={server}&scheme=http"
    extract(folder, tmp_path / "spark", engine="spark", **OPTIONS)
    assert on_disk(tmp_path / "spark") == expected


@pytest.mark.slow
def test_an_occupied_address_is_replaced_only_if_that_is_allowed(spark, store, dumps, tmp_path):
    out = store / "pairs"
    (out / "in" / "notes.txt").put(b"notes")

    def run(**options) -> None:
        extract(f"{store}/dumps/RC_1*", str(out), engine="spark", **options)

    def stopped(stage: str, done: int, total: int | None) -> None:
        if stage == "writing" and done:
            assert {MARKER, "part-00000.parquet"} <= set(at(out))
            raise KeyboardInterrupt

    with pytest.raises(InputError, match=r"pairs .*overwrite=True"):
        run()
    (store / "dumps" / "RC_1-cut.gz").put(gzip.compress(lines(*COMMENTS))[:-20])
    with pytest.raises(InputError, match=r"^s3://tests/.*/RC_1-cut\.gz .*cut"):
        run(overwrite=True)
    (store / "dumps" / "RC_1-cut.gz").remove()
    assert [entry.name for entry in out.iterdir()] == ["in"]
    with pytest.raises(KeyboardInterrupt):
        run(overwrite=True, progress=stopped)
    assert at(out) == {}

    page = (Path(__file__).resolve().parents[3] / "docs" / "extract.md").read_text("utf-8")
    [command] = re.findall(
        r"^rejoinder (extract 's3://.*) --master spark://.*$", page, re.MULTILINE
    )
    command = command.replace("s3://bucket/RC", f"{store}/dumps/RC").replace(
        "s3://bucket", str(store)
    )
    assert CliRunner().invoke(app, shlex.split(command)).exit_code == 0
    extract(dumps / "RC_1.zst", tmp_path / "pairs")
    assert at(out) == on_disk(tmp_path / "pairs")
    with pytest.raises(InputError, match=r"pairs .*overwrite"):
        run()
    with pytest.raises(InputError, match="holds pairs already"):
        extract(str(out), tmp_path / "again", engine="spark")


@pytest.mark.slow
def test_a_killed_extraction_is_replaced_by_the_next(spark, store, dumps, tmp_path):
    out = store / "pairs"
    command = ["extract", f"{store}/dumps/RC_1*", "--out", str(out), "--engine", "spark"]
    running = subprocess.Popen([sys.executable, "-m", "rejoinder", *command, "--quiet"])
    deadline = time.monotonic() + 120
    while not (out / "part-00000.parquet").exists():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait(120)
    assert {MARKER, "part-00000.parquet"} <= set(at(out))
    assert "manifest.json" not in at(out)
    with pytest.raises(InputError, match="not finished"):
        extract(str(out), tmp_path / "again", engine="spark")
    extract(tmp_path / "dumps" / "RC_1.zst", tmp_path / "pairs")
    extract(f"{store}/dumps/RC_1*", str(out), engine="spark")
    assert at(out) == on_disk(tmp_path / "pairs")


def test_what_can_not_be_read_is_said_before_spark_starts(store, dumps, tmp_path):
    for dump, message in (
        ("s3://nobody/RC*", "there is no bucket 'nobody'"),
        (f"{store}/none", "/none is not a file or folder, nor a pattern that matches one"),
        (f"{store}/RC*", r"/RC\* is not a file or folder"),
        (f"{store}/dump*", r"matches folders only \(dumps/\)"),
    ):
        with pytest.raises(InputError, match=message):
            extract(dump, tmp_path / "out", engine="spark")
    (store / "text" / "README.md").put(b"nothing to see")
    with pytest.raises(InputError, match=r"text .*README\.md"):
        extract(f"{store}/text", tmp_path / "out", engine="spark")
    with pytest.raises(InputError, match=r"dumps/RC_0\.jsonl\.gz .*s3"):
        extract(f"{store}/dumps", f"{store}/dumps", engine="spark", overwrite=True)
    with pytest.raises(InputError, match="bucket 'nobody'"):
        extract(dumps, "s3://nobody/pairs", engine="spark")


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_engines_of_one_machine_take_no_addresses(tmp_path, engine):
    message = f"s3://tests/a is an address, which `engine='{engine}'` does not .* `engine='spark'`"
    with pytest.raises(InputError, match=message):
        extract("s3://tests/a", tmp_path / "out", engine=engine)
    with pytest.raises(InputError, match=message):
        extract("none.jsonl", "s3a://tests/a", engine=engine)


def test_pairs_are_read_from_this_machine():
    with pytest.raises(InputError, match=r"s3://tests/pairs .*copy"):
        open_pairs(Path("s3://tests/pairs"))
