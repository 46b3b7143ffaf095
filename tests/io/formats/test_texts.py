"""Texts of files: lines, tables, JSON lines, and parts; documents are refused by their content."""

import bz2
import gzip
import io
import json
import zipfile
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import file_lines
from rejoinder.io.formats.texts import part_lines, read_texts, text_parts, texts_of

TABLE = 'id,author,text\n7,Aiko,"Hello, you"\n8,Ben,"two\nlines"\n'


def of(content, suffix="", columns=None):
    raw = content if isinstance(content, bytes) else content.encode()
    return list(texts_of([raw], "it", columns, suffix))


def test_lines_of_a_file_are_texts(tmp_path):
    path = tmp_path / "a.txt.bz2"
    path.write_bytes(bz2.compress(b"Hello, you\n[deleted]\n\n{name} is here"))
    texts = ["Hello, you", "[deleted]", "", "{name} is here"]
    assert list(read_texts(path)) == [(None, text) for text in texts]


@pytest.mark.parametrize("first", ["[1] a footnote", "<3 you", "From me to you", "{", "[", "a,b,c"])
def test_first_lines_that_only_look_like_documents_are_texts(first):
    assert of(f"{first}\nsecond\n") == [(None, first), (None, "second")]


def test_rows_of_tables_are_texts_with_ids():
    assert of(TABLE, ".csv") == [("7", "Hello, you"), ("8", "two\nlines")]
    assert of(TABLE.replace(",", ";").replace("o; y", "o, y"), ".csv")[0] == ("7", "Hello, you")
    assert of('id\ttext\nx\t"quoted" here\n', ".tsv") == [("x", '"quoted" here')]
    assert of("body\nx\n", ".tsv", "text=body") == [(None, "x")]
    assert of("1\tone\n2\ttwo\n", ".tsv", "text=2,id=1") == [("1", "one"), ("2", "two")]
    buffer = io.BytesIO()
    pl.DataFrame({"key": [1, 2], "body": ["one", "two"]}).write_parquet(buffer)
    assert of(buffer.getvalue(), ".parquet", "text=body,id=key") == [("1", "one"), ("2", "two")]


def test_json_lines_are_known_by_their_name_or_their_first_line():
    lines = '{"id": 3, "text": "one"}\n\n{"text": "two"}\n'
    assert of(lines, ".jsonl") == of(lines) == [("3", "one"), (None, "two")]
    assert of('{"body": "x", "n": "7"}\n', "", "text=body,id=n") == [("7", "x")]


def test_tables_without_a_name_are_known_by_their_header():
    table = 'id,text\n1,"one, two"\n'
    assert of(table) == of(table, ".log", "text=text") == [("1", "one, two")]
    assert of('id\ttext\n1\t"one\n') == [("1", '"one')]
    for lines in ("text, she said\nnone\n", "id,body\n1,one\n", "text,id\n"):
        assert of(lines) == [(None, line) for line in lines.splitlines()]
    assert of(table, ".log") == [(None, line) for line in table.splitlines()]
    assert of("subject|body\nx|y\n", "", "text=body") == [(None, "y")]


@pytest.mark.parametrize(
    ("content", "suffix", "columns", "said"),
    [
        ("number,subject\n1,x\n", ".csv", None, "'number', 'subject'.*`columns='text="),
        (TABLE, ".csv", "text=body", "without a column 'body'.*'author'"),
        (TABLE, ".csv", "text=text,id=no", "without a column 'no'"),
        ('id,text\n1,"open\n', ".csv", None, "line [23]"),
        ("id\ttext\n1\n", ".tsv", None, "line 2: 1 columns"),
        ('{"a": "x", "b": 1}\n', ".jsonl", None, "fields with a string: a"),
        ('{"text": "x", "id": true}\n', ".jsonl", None, "line 1: the id"),
        ("[1]\n", ".jsonl", None, "line 1: .*list"),
        ("a\nb\n", "", "text=body", "without a column 'body'; its columns are 'a'"),
        ("a\nb\n", "", "body", "text=COLUMN"),
        ("a\nb\n", "", "text=a,text=b", "text=COLUMN"),
        ("a\nb\n", "", "text=a,autor=b", "did you mean 'author'"),
        ("a\nb\n", "", "text=a,since=b", "'since' is none"),
        ('{"messages": [\n{"id": 1}]}', "", None, "a JSON document"),
        ('[{"id": 1}, {"id": 2}]', "", None, "a JSON document"),
        ('[\n  {"text": "' + "x" * 40_000 + '"}\n]', "", None, "a JSON document"),
        ("From a@b.c Thu Jan  1 00:00:00 2026\nSubject: hi\n\nHi\n", "", None, "mbox"),
        ("<!DOCTYPE html>\n<p>x</p>\n", "", None, "HTML"),
        ('<?xml version="1.0"?>\n<posts/>\n', "", None, "XML"),
        ("%PDF-1.7\n", "", None, "PDF"),
    ],
)
def test_what_has_no_clear_texts_is_refused(content, suffix, columns, said):
    with pytest.raises(InputError, match=said) as caught:
        of(content, suffix, columns)
    assert str(caught.value).startswith("it") or "`columns" in str(caught.value)


def test_archives_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.txt", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(InputError, match="zip"):
        list(read_texts(tmp_path / "a.txt"))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n")), min_size=1))
def test_any_texts_survive_json_lines(texts):
    content = "\n".join(json.dumps({"text": text}) for text in texts)
    assert [text for _, text in of(content, ".jsonl")] == texts


@pytest.mark.shared_data
def test_real_exports_are_refused_or_read_as_lines(shared_data):
    for path in sorted((shared_data / "exports").glob("*/*")):
        if path.suffix not in (".txt", ".log") and path.is_file():
            with pytest.raises(InputError):
                list(read_texts(path))


@given(
    lines=st.lists(st.text("aé😀 \r", max_size=9), min_size=1, max_size=12),
    size=st.integers(1, 40),
    ends=st.booleans(),
)
def test_parts_hold_each_line_once(tmp_path_factory, lines, size, ends):
    path = tmp_path_factory.mktemp("parts") / "lines.txt"
    path.write_bytes("\n".join(lines).encode() + b"\n" * ends)
    if not path.stat().st_size:
        return
    parts = text_parts([path], size)
    assert [line for part in parts for line in part_lines(part)] == list(file_lines(path))


def test_compressed_files_are_parts_of_their_own(tmp_path):
    paths = [tmp_path / "a.gz", tmp_path / "b.txt"]
    paths[0].write_bytes(gzip.compress(b"one\ntwo\n" * 100))
    paths[1].write_bytes(b"three\nfour\n")
    parts = text_parts(paths, 6)
    assert [(part.path.name, part.is_whole) for part in parts] == [
        ("a.gz", True),
        ("b.txt", False),
        ("b.txt", False),
    ]
    assert len(list(part_lines(parts[0]))) == 200
    assert [list(part_lines(part)) for part in parts[1:]] == [["three"], ["four"]]


def test_faults_are_named(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"lines\.txt is empty"):
        text_parts([path], 10)
    path.write_bytes(b"good\n" * 10 + b"\xff\n")
    *_, last = text_parts([path], 25)
    with pytest.raises(InputError, match=r"lines\.txt .*byte 50.*line 1 .*UTF-8"):
        list(part_lines(last))


ABOUT = {"author": "Ann", "time": 1_709_280_000.0, "title": "A trip"}
COLUMNS = "text=body,id=key,author=by,time=at,title=subject"
OWN = {"kind": "Bus", "paid": "True"}


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", "key,body,by,at,subject\n7,Hello,Ann,2024-03-01T08:00,A trip\n", COLUMNS),
        ("a.tsv", "7\tHello\tAnn\t1709280000\tA trip\n", "text=2,id=1,author=3,time=4,title=5"),
        (
            "a.jsonl",
            '{"key": 7, "body": "Hello", "by": "Ann", "at": 1709280000, "subject": "A trip"}\n',
            COLUMNS,
        ),
    ],
)
def test_what_is_known_about_texts_is_read(tmp_path, name, content, columns):
    (tmp_path / name).write_text(content)
    assert list(read_texts(tmp_path / name, columns)) == [("7", "Hello", ABOUT)]


def test_what_is_known_is_read_from_parquet(tmp_path):
    moment = datetime(2024, 3, 1, 8, tzinfo=UTC)
    row = {"key": "7", "body": "Hello", "by": "Ann", "at": moment, "subject": "A trip"}
    pl.DataFrame([row, {**row, "by": None}]).write_parquet(tmp_path / "a.parquet")
    first, second = read_texts(tmp_path / "a.parquet", COLUMNS)
    assert first == ("7", "Hello", ABOUT)
    assert "author" not in second[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"body": "a", "at": "yesterday"}', "line 1: time 'yesterday' is neither"),
        ('{"body": "a", "at": "nan"}', "neither a date"),
        ('{"body": "a", "by": ["Ann"]}', "author is a list"),
    ],
)
def test_what_can_not_be_known_is_named(tmp_path, content, said):
    (tmp_path / "a.jsonl").write_text(content + "\n")
    with pytest.raises(InputError, match=said):
        list(read_texts(tmp_path / "a.jsonl", "text=body,author=by,time=at"))


def test_fields_of_the_users_own_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("body,kind,paid\nHello,Bus,True\n")
    (tmp_path / "a.jsonl").write_text('{"body": "Hello", "kind": "Bus", "paid": true}\n')
    pl.DataFrame([{"body": "Hello", "kind": "Bus", "paid": True}]).write_parquet(
        tmp_path / "a.parquet"
    )
    for path in tmp_path.iterdir():
        assert list(read_texts(path, "text=body,kind=kind,paid=paid")) == [(None, "Hello", OWN)]


def test_columns_are_named_by_numbers_or_by_names(tmp_path):
    (tmp_path / "a.csv").write_text("Hello,Ann\n")
    with pytest.raises(InputError, match="'by' is a name and 1 a number"):
        list(read_texts(tmp_path / "a.csv", "text=1,author=by"))


def test_a_table_lacks_a_column_of_what_is_known(tmp_path):
    (tmp_path / "a.csv").write_text("text,by\nHello,Ann\n")
    with pytest.raises(InputError, match="without a column 'who'"):
        list(read_texts(tmp_path / "a.csv", "text=text,author=who"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("faq.csv", "Question,Answer,id\nHow?,So.,7\nWhy?,,8\n"),
        ("faq.tsv", "message\treply\tid\nHow?\tSo.\t7\nWhy?\t\t8\n"),
        (
            "faq.jsonl",
            '{"input": "How?", "response": "So.", "id": 7}\n{"input": "Why?", "id": 8}\n',
        ),
    ],
)
def test_a_table_of_questions_and_answers_has_both(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    asked, answered, *rest = read_texts(tmp_path / name)
    assert asked[:2] == ("7", "How?")
    assert answered == ("7/reply", "So.", {"answers": "7"})
    assert [text[:2] for text in rest] == [("8", "Why?")]


def test_a_reply_is_another_persons(tmp_path):
    (tmp_path / "a.csv").write_text("q,by,a\nHow?,Ann,So.\n")
    texts = read_texts(tmp_path / "a.csv", "text=q,author=by,reply=a")
    assert list(texts) == [("1", "How?", {"author": "Ann"}), ("1/reply", "So.", {"answers": "1"})]
