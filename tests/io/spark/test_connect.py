"""Spark Connect: the same folders through a server, which a test starts itself."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyspark
import pytest

from dumps import comment, lines
from ports import free_port, wait_for
from rejoinder.models.folder import write_model
from tiny_models import dan_model

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[3] / "docs"
BODY = "This is a comment of plain words"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """The address of a server with two threads."""
    port = free_port()
    folder = tmp_path_factory.mktemp("server")
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.driver.memory": "800m",
        "spark.local.dir": folder,
        "spark.sql.shuffle.partitions": 4,
        "spark.ui.enabled": "false",
    }
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[2]"),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    wait_for(running, port, 120)
    yield f"sc://127.0.0.1:{port}"
    running.terminate()
    running.wait(120)


def rejoinder(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "rejoinder", *words, "--quiet"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 2), ran.stderr
    return ran.stderr


def test_the_commands_of_the_pages_run(tmp_path, server):
    write_model(tmp_path / "model", dan_model())
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("good morning\n", "utf-8")
    (tmp_path / "RC_1.zst").write_bytes(
        lines(*(comment(f"c{n}", BODY, f"t1_c{n // 2}") for n in range(1, 99)))
    )
    for page in ("extract.md", "use.md"):
        text = (DOCS / page).read_text("utf-8")
        [command] = re.findall(r"^rejoinder (.*sc://host.*)$", text, re.MULTILINE)
        words = shlex.split(command.replace("sc://host:15002", server), comments=True)
        assert rejoinder(tmp_path, *words) == ""
    assert (tmp_path / "pairs" / "manifest.json").is_file()
    assert (tmp_path / "vectors.parquet" / "part-00000.parquet").is_file()


def test_extraction_and_encoding_on_a_server(tmp_path, server):
    spark = ("--engine", "spark", "--master", server)
    dump = lines(*(comment(f"c{n}", f"{BODY} {n}", f"t1_c{n // 2}") for n in range(1, 400)))
    (tmp_path / "RC.jsonl").write_bytes(dump)
    assert rejoinder(tmp_path, "extract", "RC.jsonl", "--out", "one") == ""
    assert rejoinder(tmp_path, "extract", "RC.jsonl", "--out", "other", *spark) == ""
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()
    with (tmp_path / "RC.jsonl").open("ab") as file:
        file.write(b"no JSON\n")
    told = rejoinder(tmp_path, "extract", "RC.jsonl", "--out", "strict", "--strict", *spark)
    assert "RC.jsonl line 400: not JSON" in told
    assert told.count("\n") == 1

    write_model(tmp_path / "model", dan_model())
    (tmp_path / "texts").write_text("How old are you?\ngood morning\n" * 50, "utf-8")
    model = ("--model", "model", "--out")
    assert rejoinder(tmp_path, "encode", "--sentences", "texts", *model, "e.npy") == ""
    assert rejoinder(tmp_path, "encode", "texts", *model, "parts.npy", *spark) == ""
    found = np.load(tmp_path / "parts.npy" / "part-00000.npy")
    np.testing.assert_allclose(found, np.load(tmp_path / "e.npy"), atol=1e-6)
