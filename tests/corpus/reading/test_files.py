"""What may be named as a dump: files, patterns, folders; and what is not a dump."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from dumps import comment, lines
from rejoinder.corpus.extract import extract
from rejoinder.corpus.options import as_columns
from rejoinder.corpus.reading.files import find_files
from rejoinder.errors import InputError

DUMP = lines(comment("a", "How are you?"), comment("b", "Fine, thanks", "t1_a"))
COLUMNS = as_columns("id=id,parent=to,text=text")


def make(folder: Path, names: list[str], content: bytes = b"") -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def test_of_a_folder_the_dumps_are_taken_in_order(tmp_path):
    make(tmp_path, ["b.jsonl", "a.csv", "c.tsv.gz", "d.parquet", "e.NDJSON"])
    make(tmp_path, ["RC_2021-02", "RC_2021-01.json"], DUMP)
    make(tmp_path, ["RC_2021-03.gz"], gzip.compress(DUMP))
    make(tmp_path, [".hidden.jsonl", "README.md", "sha256sums.txt", "inner/f.jsonl"])
    make(tmp_path, ["pretty.json"], b'{\n "id": 1\n}\n')
    make(tmp_path, ["notes.gz"], gzip.compress(b"not a dump"))
    make(tmp_path, ["cut.gz"], gzip.compress(DUMP)[:9])
    assert [path.name for path in find_files([tmp_path])] == [
        "RC_2021-01.json", "RC_2021-02", "RC_2021-03.gz", "a.csv", "b.jsonl", "c.tsv.gz", "cut.gz",
        "d.parquet", "e.NDJSON",
    ]  # fmt: skip


def test_a_folder_gives_the_pairs_of_its_files(run, tmp_path):
    make(tmp_path / "dumps", ["a.jsonl"], DUMP.splitlines(keepends=True)[0])
    make(tmp_path / "dumps", ["b.jsonl"], DUMP.splitlines(keepends=True)[1])
    manifest, pairs = run([tmp_path / "dumps"])
    assert len(pairs) == 1
    assert [file["file"] for file in manifest.inputs] == ["a.jsonl", "b.jsonl"]


def test_a_folder_without_a_dump_says_what_it_holds(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder .*empty"):
        find_files([tmp_path / "folder"])
    make(tmp_path / "folder", ["README.md", "inner/a.jsonl"])
    with pytest.raises(InputError, match=r"README\.md, inner/.*JSON lines"):
        find_files([tmp_path / "folder"])
    with pytest.raises(InputError, match=r"folder/"):
        find_files([str(tmp_path / "fold*")])


def test_pairs_are_no_dumps(run, tmp_path):
    run(DUMP)
    with pytest.raises(InputError, match="pairs "):
        find_files([tmp_path / "pairs"])


def test_what_is_read_is_never_replaced(tmp_path):
    make(tmp_path / "dumps", ["a.jsonl"], DUMP)
    with pytest.raises(InputError, match=r"a\.jsonl .*dumps .*replace"):
        extract([tmp_path / "dumps"], tmp_path / "dumps", overwrite=True)
    assert (tmp_path / "dumps" / "a.jsonl").read_bytes() == DUMP


UNREADABLE = [
    ("a.jsonl", b"", r"a\.jsonl.*empty"),
    ("a.csv", b"", r"no comments in a\.csv \(empty\)"),
    ("a.parquet", b"", r"a\.parquet .*damaged"),
    ("a.parquet", b"PAR1 and no more", r"a\.parquet .*damaged"),
    ("a.jsonl", b"id,to,text\n", r"a\.jsonl line 1.*JSON.*\.csv"),
    ("a.csv", DUMP, r"a\.csv .*JSON.*\.jsonl"),
    ("a.csv", "id,to,text\n".encode("utf-16"), r"a\.csv is UTF-16; save it as UTF-8"),
    ("a.gz", gzip.compress(DUMP, mtime=0)[:-20], r"a\.gz is cut short"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNREADABLE)
def test_what_is_no_dump_is_named(run, tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        run(content, name=name, columns=COLUMNS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_a_zip_archive_is_to_be_unpacked(run, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.jsonl", DUMP)
    with pytest.raises(InputError, match=r"a\.zip .*zip.*unpack"):
        run(tmp_path / "a.zip")
    with pytest.raises(InputError, match="is not a regular file"):
        run(Path(os.devnull))


def test_parquet_is_known_by_its_content(run, tmp_path):
    import polars as pl

    frame = pl.DataFrame({"id": [1, 2], "to": [None, 1], "text": ["one", "two"]})
    frame.write_parquet(tmp_path / "a.data")
    assert len(run(tmp_path / "a.data", columns=COLUMNS, rules="none")[1]) == 1
    frame.with_columns(text=pl.concat_list("id")).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet .*List\(Int64\).*'text'"):
        run(tmp_path / "b.parquet", columns=COLUMNS)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads anything")
def test_a_file_that_may_not_be_read_is_named(run, tmp_path):
    make(tmp_path / "inner", ["a.jsonl"], DUMP)
    (tmp_path / "inner" / "a.jsonl").chmod(0)
    for dump in (tmp_path / "inner" / "a.jsonl", tmp_path / "inner"):
        with pytest.raises(InputError, match=r"Permission denied"):
            run(dump)


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", ","), ("a.txt", "|")]
)
def test_the_separator_is_that_of_the_first_line(run, tmp_path, name, separator):
    rows = [("id", "to", "text"), ("1", "", "one; of, them"), ("2", "1", "two")]
    content = "".join(separator.join(f'"{value}"' for value in row) + "\n" for row in rows)
    _, pairs = run(content.encode(), name=name, columns=COLUMNS, rules="none")
    assert pairs.select("input", "response").rows() == [("one; of, them", "two")]


def test_the_separator_may_be_given(run, tmp_path):
    content = b"1|one, of them\n2|two, three\n"
    columns = as_columns("message=1,reply=2")
    _, pairs = run(content, name="a.csv", columns=columns, rules="none", separator="|")
    assert set(pairs.get_column("response")) == {"one, of them", "two, three"}
    with pytest.raises(InputError, match=r"','.*'id;to;text'"):
        run(b"id;to;text\n", name="b.csv", columns=COLUMNS, separator=",")
    with pytest.raises(InputError, match=r"';'.*'text'.*'id', 'to'"):
        run(b"id;to;says, or not\n", name="c.csv", columns=COLUMNS)
    with pytest.raises(InputError, match="none is among the dumps"):
        run(DUMP, separator=";")
    with pytest.raises(InputError, match="one character"):
        run(DUMP, separator="; ")
