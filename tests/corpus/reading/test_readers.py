"""Files of every kind, whole and damaged."""

import bz2
import gzip
import json
import lzma
import subprocess
import zlib

import polars as pl
import pytest
import zstandard

from dumps import comment, lines
from rejoinder.corpus.options import ExtractOptions, as_columns
from rejoinder.corpus.reading.columns import unescape
from rejoinder.corpus.reading.files import find_files
from rejoinder.corpus.reading.readers import Report, read_comments
from rejoinder.errors import InputError
from rejoinder.io.formats.compression import decompressed

DUMP = lines(comment("a", "How are you?"), comment("b", "Fine, thanks", "t1_a"))
PAIR = [("How are you?", "Fine, thanks")]


def zstd_long(content: bytes) -> bytes:
    """As the published dumps: a stream with a window of 2 GiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    stream = compressor.compressobj()
    return stream.compress(content) + stream.flush()


COMPRESSIONS = {
    "plain": lambda content: content,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,  # as the command does
    "zst-long": zstd_long,
    "zst-frames": lambda c: zstandard.compress(c[:50]) + zstandard.compress(c[50:]),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "gz": gzip.compress,
    "gz-members": lambda c: gzip.compress(c[:50]) + gzip.compress(c[50:]),
}


def texts(pairs: pl.DataFrame) -> list[tuple[str, ...]]:
    return pairs.select("input", "response").rows()


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_every_compression_is_read_whatever_the_name(run, kind):
    manifest, pairs = run(COMPRESSIONS[kind](DUMP), name="RC_2021-02.any")
    assert texts(pairs) == PAIR
    assert pairs.item(0, "source") == "tests"
    assert manifest.inputs[0]["file"] == "RC_2021-02.any"


@pytest.mark.parametrize("kind", ["zst", "zst-long", "bz2", "xz", "gz"])
def test_a_cut_archive_says_which_and_how_far(run, kind):
    content = COMPRESSIONS[kind](DUMP * 2_000)
    with pytest.raises(InputError, match=r"cut\.jsonl .*cut.*\d"):
        run(content[: len(content) // 2], name="cut.jsonl")


@pytest.mark.parametrize("kind", ["zst", "bz2", "xz", "gz"])
def test_a_damaged_archive_says_which_and_how_far(run, kind):
    content = bytearray(COMPRESSIONS[kind](zlib.compress(DUMP) * 3_000))
    content[len(content) // 2] ^= 0xFF
    content[len(content) // 2 + 1] ^= 0xFF
    with pytest.raises(InputError, match=r"bad\.jsonl .*(damaged|cut)"):
        run(bytes(content), name="bad.jsonl")


def test_the_command_line_tool_and_we_agree(tmp_path, run):
    """Published dumps are streamed with --long=31; DuckDB's own reader refuses such frames."""
    path = tmp_path / "RC.zst"
    tool = ["zstd", "--ultra", "--long=31", "-q", "-o", str(path)]
    try:
        subprocess.run(tool, input=DUMP, check=True)
    except FileNotFoundError:
        pytest.skip("the zstd command is not installed")
    assert texts(run(path)[1]) == PAIR


def test_fields_may_be_missing_extra_reordered_and_null(run):
    dump = (
        b'{"body": "How are you?", "score": [1, {"x": null}], "id": "a"}\n\n'
        b'{"id": "b", "edited": false, "body": "Fine, thanks", "parent_id": "t1_a", '
        b'"author": null, "link_id": null, "subreddit": null}\r\n'
    )
    manifest, pairs = run(dump, name="RC_2021-02.jsonl")
    assert texts(pairs) == PAIR
    assert pairs.item(0, "source") == "RC_2021-02"
    assert pairs.item(0, "thread_id") == "a"
    assert manifest.counts.malformed == 0


BAD_LINES = [
    (b'{"id": "x", "body": "cut', "not JSON"),
    (b"[1, 2]", "'[1, 2]' where one comment object"),
    (b"null", "'null' where"),
    (b'"text"', "where one comment object"),
    (b"{}", "no 'id', 'body'"),
    (b'{"id": "x"}', "no 'body'"),
    (b'{"id": null, "body": "y"}', "no 'id'"),
    (b'{"id": "x", "body": "y"} trailing', "not JSON"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_LINES)
def test_a_malformed_line_is_counted_and_named(run, line, problem):
    first, second = DUMP.splitlines(keepends=True)
    manifest, pairs = run(first + b"\n" + line + b"\n" + second)
    assert texts(pairs) == PAIR
    assert (manifest.counts.malformed, manifest.counts.comments) == (1, 2)
    [found] = manifest.malformed
    assert (found.file, found.line) == ("dump.jsonl", 3)
    assert problem in found.problem


def test_strict_stops_at_the_line(run):
    with pytest.raises(InputError, match=r"dump\.jsonl line 3.*'body'.*`strict=True`"):
        run(DUMP + b'{"id": "x"}\n', strict=True)


def test_text_that_is_not_text_becomes_replacement_characters(run):
    dump = (
        b'{"id": "a", "body": "half \\ud83d of \\ude00 it \\\\ud83d"}\n'
        b'{"id": "b", "parent_id": "t1_a", "body": "whole \\ud83d\\ude00 one"}\n'
        b'{"id": "c", "parent_id": "t1_a", "body": "bad \xff byte"}\n'
        b'{"id": "d", "parent_id": "t1_a", "body": "raw \t tab"}\n'
    )
    _, pairs = run(dump, rules="none")
    assert set(pairs.get_column("input")) == {"half \ufffd of \ufffd it \\ud83d"}
    assert pairs.get_column("response").to_list() == [
        "whole 😀 one",
        "bad \ufffd byte",
        "raw tab",
    ]


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_zeros_may_follow_an_archive(run, kind):
    content = COMPRESSIONS[kind](DUMP)
    half = lines(comment("c", "And thanks again", "t1_b"))
    _, pairs = run(content + b"\0" * 512 + COMPRESSIONS[kind](half) + b"\0" * 512)
    assert len(pairs) == 2


def test_entities_are_unescaped_once():
    raw = pl.Series(["a &gt; b &amp;lt; &#39;c&#39; &nbsp;d", "R&D; x", "no", "?a&copy=1&notit;"])
    assert unescape(raw).to_list() == [
        "a > b &lt; 'c' \u00a0d",
        "R&D; x",
        "no",
        "?a&copy=1&notit;",
    ]
    assert unescape(pl.Series(["&#xD83D; &#0; &#9999999;"])).to_list() == ["\ufffd \ufffd \ufffd"]


def test_a_long_line_and_an_empty_file_are_read(run, tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "long.jsonl").write_bytes(DUMP + lines(comment("c", "x" * 12_000_000)))
    manifest, pairs = run([tmp_path / "empty.jsonl", tmp_path / "long.jsonl"])
    assert texts(pairs) == PAIR
    assert manifest.counts.dropped["too_long"] == 1


def test_a_line_that_is_no_comment_whatever_it_holds_is_counted(run, tmp_path):
    long = lines(comment("c", "x" * 20_000_000))
    (tmp_path / "long.jsonl").write_bytes(long + DUMP + long)
    manifest, pairs = run([tmp_path / "long.jsonl"])
    assert texts(pairs) == PAIR
    assert manifest.counts.malformed == 2
    manifest, _ = run([tmp_path / "long.jsonl"], max_line="32MB")
    assert (manifest.counts.malformed, manifest.counts.dropped["too_long"]) == (0, 1)
    assert manifest.options["max_line"] == 32_000_000
    for amount, message in (("much", "`max_line` 'much'"), ("10KB", "10,000 .*1MB")):
        with pytest.raises(InputError, match=message):
            run([tmp_path / "long.jsonl"], max_line=amount)


TABLE = [
    {"msg": "1", "to": "", "who": "ann", "room": "help", "words": 'How "are", you?'},
    {"msg": "2", "to": "1", "who": "bob", "room": "help", "words": "Fine,\nthanks"},
]
COLUMNS = "id=msg,parent=to,text=words,author=who,thread=room"


def table(separator: str) -> bytes:
    import csv
    import io

    held = io.StringIO(newline="")
    writer = csv.DictWriter(held, list(TABLE[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(TABLE)
    return held.getvalue().encode()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
def test_own_conversations_are_read_with_a_column_map(run, tmp_path, kind):
    path = tmp_path / f"chat.{kind}"
    if kind == "parquet":
        pl.DataFrame(TABLE).write_parquet(path)
    elif kind == "jsonl":
        path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in TABLE))
    else:
        content = table("\t" if kind == "tsv" else ",")
        path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    _, pairs = run(path, columns=as_columns(COLUMNS), rules="none")
    assert texts(pairs) == [('How "are", you?', "Fine, thanks")]
    assert pairs.row(0, named=True)["thread_id"] == "help"
    assert pairs.row(0, named=True)["source"] == "chat"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_that_is_not_there_names_those_that_are(run, tmp_path, kind):
    path = tmp_path / f"chat.{kind}"
    if kind == "parquet":
        pl.DataFrame(TABLE).write_parquet(path)
    else:
        path.write_bytes(table(",") if kind == "csv" else json.dumps(TABLE[0]).encode())
    with pytest.raises(InputError, match=r"'nope'.*'msg', 'to'"):
        run(path, columns=as_columns("id=msg,parent=to,text=nope"))


def test_a_field_may_be_absent_from_one_json_file_but_not_from_all(run, tmp_path):
    rows = [json.dumps({k: v for k, v in row.items() if v}).encode() for row in TABLE]
    (tmp_path / "a.jsonl").write_bytes(rows[0])
    (tmp_path / "b.jsonl").write_bytes(rows[1])
    columns = as_columns(COLUMNS)
    _, pairs = run([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], columns=columns, rules="none")
    assert len(pairs) == 1
    with pytest.raises(InputError, match=r"a\.jsonl .*'to'.*'msg',"):
        run([tmp_path / "a.jsonl"], columns=columns, rules="none")


STRAY = (
    b"one\ttwo\n"
    b'"three said\t5" disk\n'
    b'"quoted ""well"""\tand "not"\n'
    b'a\t"two\nlines"\n\n'
    b'last\t"open\n'
)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_stray_quotes_are_plain_characters(run, tmp_path, kind):
    path = tmp_path / f"faq.{kind}"
    path.write_bytes(STRAY if kind == "tsv" else STRAY.replace(b"\t", b","))
    _, pairs = run(path, columns=as_columns("message=1,reply=2"), rules="none")
    found = {
        row[0][-11:-2]: row[1:] for row in pairs.select("input_id", "input", "response").rows()
    }
    assert found == {
        "000000001": ("one", "two"),
        "000000002": ('"three said', '5" disk'),
        "000000003": ('quoted "well"', 'and "not"'),
        "000000004": ("a", "two lines"),
        "000000007": ("last", '"open'),
    }


def test_files_of_messages_and_replies_have_names_of_their_own(run, tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "faq.tsv").write_bytes(b"a\tb\n")
    with pytest.raises(InputError, match=r"2 .*faq\.tsv"):
        run(
            [tmp_path / "x" / "faq.tsv", tmp_path / "y" / "faq.tsv"],
            columns=as_columns("message=1,reply=2"),
        )


def test_messages_and_replies_in_json_lines_have_the_numbers_of_their_lines(run, tmp_path):
    path = tmp_path / "faq.jsonl"
    path.write_bytes(b'{"q": "a", "a": "b"}\n\n{"q": "c", "a": "d"}\n')
    manifest, pairs = run(path, columns=as_columns("message=q,reply=a"), rules="none")
    assert set(pairs.get_column("input_id")) == {"faq.jsonl:000000001:m", "faq.jsonl:000000003:m"}
    assert (manifest.counts.lines, manifest.counts.comments) == (2, 4)


def test_a_row_of_another_width_is_malformed(run, tmp_path):
    path = tmp_path / "chat.csv"
    path.write_bytes(table(",") + b"3,1\n")
    manifest, pairs = run(path, columns=as_columns(COLUMNS), rules="none")
    assert (manifest.counts.malformed, len(pairs)) == (1, 1)
    assert "2 columns where the first line has 5" in manifest.malformed[0].problem


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("faq.csv", b"q,a\nHow old?,Twenty\nHOW  old?,Thirty\nName?,Tom\n", "message=q,reply=a"),
        ("faq.tsv", b"How old?\tTwenty\nHOW  old?\tThirty\nName?\tTom\n", "message=1,reply=2"),
    ],
)
def test_two_columns_of_message_and_reply(run, tmp_path, name, content, columns):
    path = tmp_path / name
    path.write_bytes(content)
    _, pairs = run(path, columns=as_columns(columns), rules="none")
    rows = {row["response"]: row for row in pairs.iter_rows(named=True)}
    assert {r: row["input"] for r, row in rows.items()} == {
        "Twenty": "How old?",
        "Thirty": "HOW old?",
        "Tom": "Name?",
    }
    assert rows["Twenty"]["thread_id"] == rows["Thirty"]["thread_id"] != rows["Tom"]["thread_id"]
    first = 2 if name.endswith("csv") else 1
    assert rows["Twenty"]["input_id"] == f"{name}:{first:09d}:m"
    assert rows["Tom"]["response_id"] == f"{name}:{first + 2:09d}:r"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id", "not FIELD=COLUMN"),
        ("idd=x", "did you mean 'id'"),
        ("id=a,id=b", "twice"),
        ("id=a,text=b", "no parent"),
        ("message=a", "no reply"),
    ],
)
def test_a_bad_column_map_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        as_columns(text)


def test_patterns_and_files_are_found_once(tmp_path):
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).touch()
    found = find_files([str(tmp_path / "*.jsonl"), tmp_path / "a.jsonl"])
    assert [path.name for path in found] == ["a.jsonl", "b.jsonl"]
    with pytest.raises(InputError, match="not a file"):
        find_files([tmp_path / "c.jsonl"])
    with pytest.raises(InputError, match="can't be read"):
        list(decompressed(tmp_path / "c.jsonl"))


def test_files_of_zstd_are_read_in_the_same_memory(tmp_path, monkeypatch):
    real, opened = zstandard.ZstdDecompressor, []
    for name in "abc":
        content = lines(comment(name, "How are you?"))
        (tmp_path / f"{name}.zst").write_bytes(COMPRESSIONS["zst-frames"](content))
    monkeypatch.setattr(
        zstandard, "ZstdDecompressor", lambda **given: opened.append(given) or real(**given)
    )
    pieces = read_comments(
        sorted(tmp_path.iterdir()), ExtractOptions(), Report(), lambda batch: batch["id"]
    )
    assert [piece.to_pylist() for piece in pieces] == [["a"], ["b"], ["c"]]
    assert len(opened) == 1
