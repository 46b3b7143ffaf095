"""The commands that use a model, as a shell runs them: output, exit status, one line of error."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dumps import comment
from dumps import lines as dumped
from rejoinder.corpus.extract import extract
from rejoinder.inference import outputs
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model

SENTENCES = ["How old are you?", "what is your age", "", "good morning"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "model"
    write_model(place, dan_model())
    return place


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "sentences.txt"
    place.write_text("\n".join(SENTENCES) + "\n", "utf-8")
    return place


def test_encode_reads_a_file_or_folder_as_index_does(call, model, tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("number,subject\n1,How old are you?\n2,good morning\n")
    status, out, _ = call("encode", "-m", model, table, "--columns", "text=subject", "--json")
    assert status == 0
    assert [json.loads(line)["text"] for line in out.splitlines()] == [SENTENCES[0], SENTENCES[3]]
    assert "--columns text=COLUMN" in call("encode", "-m", model, table)[2]
    assert call("encode", "-m", model, tmp_path)[2].startswith(f"rejoinder: {tmp_path} is neither")


def test_encode_writes_what_encode_returns(call, model, file, tmp_path):
    expected = SentenceEncoder.load(model).encode(SENTENCES)
    assert call("encode", "-m", model, file, "--out", tmp_path / "e.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy", allow_pickle=False), expected)
    call("encode", "-m", model, "--sentences", file, "--out", tmp_path / "e.parquet")
    frame = pl.read_parquet(tmp_path / "e.parquet")
    assert frame["text"].to_list() == SENTENCES
    np.testing.assert_array_equal(frame["embedding"].to_numpy(), expected)
    status, out, err = call(
        "encode", "-m", model, "--sentences", file, "--out", tmp_path / "e.jsonl"
    )
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text("utf-8").splitlines()]
    assert [line["text"] for line in lines] == SENTENCES
    np.testing.assert_array_equal(
        np.array([line["embedding"] for line in lines], np.float32), expected
    )
    assert (status, out) == (0, "")
    assert "wrote" in err
    assert "no known word in 1 of 4 sentences: their vectors are zero" in err


@pytest.mark.parametrize("flags", [[], ["--response"], ["--batch-size", 1]])
def test_encode_prints_numbers_that_give_the_same_floats_back(call, model, flags):
    encoder = SentenceEncoder.load(model)
    expected = (encoder.encode_response if flags == ["--response"] else encoder.encode)(SENTENCES)
    status, out, _ = call("encode", "-m", model, *flags, stdin="\r\n".join(SENTENCES).encode())
    assert status == 0
    found = np.loadtxt(io.StringIO(out), delimiter="\t", dtype=np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    status, out, _ = call(
        "encode", "-m", model, "-", "--json", *flags, stdin="\n".join(SENTENCES).encode()
    )
    found = [json.loads(line)["embedding"] for line in out.splitlines()]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_encode_takes_sentences_as_arguments(call, model):
    expected = SentenceEncoder.load(model).encode(["hello", "good \ufffd morning", "x" * 5_000])
    words = ["hello", "good \udcff morning", "x" * 5_000]
    status, out, _ = call("encode", "-m", model, *words, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, [line["text"] for line in lines][:2]) == (0, ["hello", "good \ufffd morning"])
    np.testing.assert_allclose([line["embedding"] for line in lines], expected, atol=1e-6)


def test_quiet_leaves_errors_alone(call, model, file, tmp_path):
    for words in (
        ["encode", "--sentences", file, "--out", tmp_path / "e.npy"],
        ["similarity", "zebra", "hello"],
        ["search", "zebra", "--corpus", file],
        ["rank", "zebra", "--responses", file],
    ):
        command = [words[0], "-m", model, *words[1:]]
        assert call(*command, "--quiet")[::2] == (0, "")
        assert call(*command)[2] != ""
    status, out, err = call("similarity", "-m", tmp_path / "none", "a", "b", "-q")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_encode_in_pieces_gives_the_same(call, model, file, tmp_path, monkeypatch):
    call("encode", "-m", model, "--sentences", file, "--out", tmp_path / "whole.npy")
    monkeypatch.setattr("rejoinder.inference.sentence_stream.CHUNK", 3)
    call("encode", "-m", model, "--sentences", file, "--out", tmp_path / "parts.npy")
    parts = np.load(tmp_path / "parts.npy")
    np.testing.assert_allclose(parts, np.load(tmp_path / "whole.npy"), atol=1e-6)


def test_a_byte_order_mark_is_no_text(call, model):
    status, out, _ = call("encode", "-m", model, "--json", stdin=b"\xef\xbb\xbfhello\nPAR1 you")
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    assert (status, texts) == (0, ["hello", "PAR1 you"])


def npy(place):
    np.save(place, np.zeros((2, 5), np.float32))


def parquet(place):
    pl.DataFrame({"text": ["hello"]}).write_parquet(place)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (npy, "seems to be a NumPy array"),
        (parquet, "seems to be a Parquet file"),
        (lambda p: p.write_text("hello you", "utf-16"), "seems to be UTF-16 text"),
        (lambda p: p.write_bytes(b"hi\nhello\x00you"), "a binary file (line 2 holds a NUL byte)"),
        (
            lambda p: p.write_bytes("hi\ntr\xe8s\n".encode("latin1")),
            "line 2 is not UTF-8 (byte 0xe8)",
        ),
    ],
)
def test_what_is_no_text_is_named(call, model, tmp_path, write, said):
    place = tmp_path / "corpus"
    write(place)
    place = next(tmp_path.iterdir())
    for command in (
        ["encode", "-m", model, "--sentences", place],
        ["search", "-m", model, "a", "--corpus", place],
        ["search", "-m", model, "--queries", place, "--corpus", "-"],
        ["rank", "-m", model, "a", "--responses", place],
        ["similarity", "-m", model, "--pairs", place],
    ):
        status, out, err = call(*command, stdin=b"hello")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert said in err
        assert "lines of UTF-8 text are expected" in err


def test_similarity_of_two_sentences_and_of_pairs(call, model, tmp_path):
    status, out, _ = call("similarity", "-m", model, "hello you", "hello you", "--json")
    [row] = json.loads(out)
    assert status == 0
    assert row["cosine"] == pytest.approx(1, abs=1e-6)
    assert row["score"] == pytest.approx(5, abs=1e-5)
    assert row["unknown"] == []
    pairs = b"hello\thello you\ncat\tdog\n"
    status, out, _ = call("similarity", "-m", model, "--pairs", "-", stdin=pairs)
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert header == ["first", "second", "cosine", "score"]
    expected = SentenceEncoder.load(model).similarity(["hello", "cat"], ["hello you", "dog"])
    assert [float(row[2]) for row in rows] == pytest.approx(np.diag(expected).tolist(), abs=2e-6)


def test_search_finds_lines(call, model, file):
    status, out, _ = call(
        "search", "-m", model, "how old are you", "age", "--corpus", file, "--top-k", 2, "--json"
    )
    hits = json.loads(out)
    assert status == 0
    assert [(hit["query"], hit["rank"]) for hit in hits] == [
        ("how old are you", 1),
        ("how old are you", 2),
        ("age", 1),
        ("age", 2),
    ]
    assert all(SENTENCES[hit["line"] - 1] == hit["text"] for hit in hits)
    assert call("search", "-m", model, "--queries", file, stdin=b"hello")[0] == 0


def test_rank_orders_by_the_response_side(call, model, file):
    status, out, _ = call("rank", "-m", model, "hello", "--responses", file, "--tsv")
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert (status, header) == (0, ["rank", "score", "line", "response"])
    expected = SentenceEncoder.load(model).rank("hello", SENTENCES)
    assert [int(row[2]) - 1 for row in rows] == [hit.index for hit in expected]
    best = call("rank", "-m", model, "hello", "--responses", file, "--top-k", 2, "--tsv")[1]
    assert best == "\n".join(out.split("\n")[:3]) + "\n"


def test_rank_reads_the_turns_before_the_message(call, model, file):
    turns = ["my name is tom", "hello"]
    options = [each for turn in turns for each in ("--context", turn)]
    _, out, _ = call("rank", "-m", model, "you", "--responses", file, *options, "--json")
    expected = SentenceEncoder.load(model).rank("you", SENTENCES, context=turns)
    assert [row["line"] - 1 for row in json.loads(out)] == [hit.index for hit in expected]
    assert [row["score"] for row in json.loads(out)] == [round(hit.score, 6) for hit in expected]


def test_sentences_without_a_known_word_are_pointed_at(call, model, file):
    _, out, err = call("similarity", "-m", model, "zebra", "hello", "--json")
    assert (json.loads(out)[0]["cosine"], json.loads(out)[0]["unknown"]) == (0, ["first"])
    assert "1 of 2 sentences" in err
    assert "(pair 1)" in err
    pairs = b"hello\tzebra\ncat\tdog\nxyz\tzebra\n"
    _, out, err = call("similarity", "-m", model, "--pairs", "-", stdin=pairs)
    assert "most words of 3 of 6 sentences" in err
    assert "(pair 1, 3)" in err
    assert out.startswith("first\tsecond\tcosine\tscore\n")
    _, out, err = call("search", "-m", model, "zebra", "hello", "--corpus", file, "--json")
    assert [hit["unknown"] for hit in json.loads(out) if hit["line"] == 3] == [
        ["query", "text"],
        ["text"],
    ]
    assert "1 of 2 queries" in err
    assert "2 of 8 hits" in err
    _, out, err = call("rank", "-m", model, "zebra", "--responses", file, "--json")
    assert sum("response" in hit["unknown"] for hit in json.loads(out)) == 1
    assert all("message" in hit["unknown"] for hit in json.loads(out))
    assert "1 of 1 messages" in err
    assert "1 of 4 responses" in err
    _, _, err = call("similarity", "-m", "rejoinder-small", "cat dog", "dog cat")
    assert "can't tell the order of words" in err
    for command in (["similarity", "-m", model, "cat", "dog"], ["rank", "-m", model, "cat"]):
        assert call(*command, stdin=b"hello")[2] == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["similarity", "cat", "cat dog " * 30], "1 of 2 sentences"),
        (["search", "cat dog " * 30, "cat", "--corpus", "-"], "1 of 2 queries"),
        (["rank", "cat dog " * 30, "--responses", "-"], "1 of 1 messages"),
    ],
)
def test_texts_that_are_too_long_are_told_or_refused(call, tmp_path, words, told):
    write_model(tmp_path / "model", bilstm_model())
    command = [words[0], "-m", tmp_path / "model", *words[1:]]
    status, _, err = call(*command, stdin=b"cat")
    assert (status, err) == (
        0,
        f"rejoinder: more than 40 tokens in {told}: the rest was not read\n",
    )
    split = call(*command, "--on-too-long", "split", stdin=b"cat")[2]
    assert f"more than 40 tokens in {told}: each is the mean of pieces of 40 tokens" in split
    status, _, err = call(*command, "--on-too-long", "error", stdin=b"cat")
    assert (status, err.count("\n")) == (2, 1)
    assert "has 60 tokens, and the model reads 40" in err


def test_a_command_says_once_that_texts_are_in_another_language(call, model, tmp_path, monkeypatch):
    asked, german, english = "wo ist es nur ?", tmp_path / "german.txt", tmp_path / "english.txt"
    german.write_text("wo ist meine bestellung ?\n" * 50 + "how old are you ?\n" * 50, "utf-8")
    english.write_text("how old are you ?\n" * 99 + "wo ist es\n", "utf-8")
    both = tmp_path / "pairs.tsv"
    both.write_text(f"{asked}\thow are you\n", "utf-8")
    warnings.simplefilter("always")  # a process runs one command, and warns once
    for command, said in (
        (["encode", "--sentences", german, "--out", tmp_path / "german.npy"], 1),
        (["encode", "--sentences", english, "--out", tmp_path / "english.npy"], 0),
        (["encode", "--sentences", german], 1),
        (["index", german, "--out", tmp_path / "german"], 1),
        (["index", english, "--out", tmp_path / "english"], 0),
        (["similarity", "--pairs", both], 1),
        (["search", asked, "--corpus", german], 1),
        (["rank", asked, "--responses", german], 1),
    ):
        monkeypatch.setattr(outputs, "_told", False)
        status, _, noted = call(*command, "--model", model)
        assert (status, noted.count(" unknown to ")) == (0, said), (command, noted)


def test_info_says_what_it_is(call, model):
    status, out, _ = call("info", model, "--json")
    facts = json.loads(out)
    assert (status, facts["name"], facts["dim"]) == (0, "tiny", 5)
    assert facts["training"]["pairs"] == 1234
    assert facts["text"]["words"] == 53
    table = call("info", model, "--tsv")[1]
    assert table.startswith("key\tvalue\nname\ttiny\n")
    assert "pairs\t1,234\n" in table


def test_tables_for_a_terminal_json_and_tsv_on_request(call, model, file):
    for command in (
        ["encode", "-m", model, "--sentences", file],
        ["similarity", "-m", model, "a", "b"],
        ["search", "-m", model, "a", "--corpus", file],
        ["rank", "-m", model, "a", "--responses", file],
        ["info", model],
    ):
        status, out, _ = call(*command, terminal=True)
        assert status == 0
        assert "─" in out
        assert "─" not in call(*command, "--tsv", terminal=True)[1]
        assert call(*command, "--json", terminal=True)[1].startswith(("{", "["))


def test_a_terminal_shows_equal_texts_once(call, model, tmp_path):
    """Other texts take the places of copies; programs get every row."""
    texts = ["my dog.", *["How old  are you?", "how old are you?"] * 9, "where do you live?"]
    file, index = tmp_path / "texts.txt", tmp_path / "index"
    file.write_text("\n".join(texts), "utf-8")
    assert call("index", file, "-m", model, "--out", index)[0] == 0
    for source in (["--index", index], ["-m", model, "--corpus", file]):
        command = ["search", "how old are you?", *source, "--top-k", "2"]
        _, out, _ = call(*command, terminal=True)
        assert out.count("×18") == 1
        assert out.lower().count("how old are you?") == 2  # the query, and one hit
        assert "my dog." in out or "where do you live?" in out
        rows = json.loads(call(*command, "--json")[1])
        assert [row["text"].lower() for row in rows] == [texts[1].lower(), texts[2]]


def test_a_terminal_shows_one_mail_of_each_thread(call, model, tmp_path):
    mails = [("dogs", "my dog."), ("dogs", "your dog!"), ("cats", "my cat."), ("dogs", "a dog")]
    file, index = tmp_path / "mails.jsonl", tmp_path / "index"
    file.write_text(
        "".join(
            json.dumps({"id": str(number), "text": text, "title": thread, "thread": thread}) + "\n"
            for number, (thread, text) in enumerate(mails)
        ),
        "utf-8",
    )
    columns = "id=id,text=text,title=title,thread=thread"
    assert call("index", file, "-m", model, "--columns", columns, "--out", index)[0] == 0
    command = ["search", "dog", "--index", index, "--top-k", "2"]
    _, out, _ = call(*command, terminal=True)
    assert "my cat." in out  # although three of dogs are nearer
    rows = json.loads(call(*command, "--json")[1])
    assert {row["thread"] for row in rows} == {"dogs"}


def test_markup_in_a_sentence_is_text(call, model):
    _, out, _ = call("similarity", "-m", model, "[red]hello[/]", "b", terminal=True)
    assert "─" in out
    assert "[red]hello[/]" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["encode", "-m", "{model}", "-"], "standard input is empty"),
        (
            ["encode", "-m", "{model}", "--sentences", "{folder}/none.txt"],
            "none.txt can't be read: No such file",
        ),
        (
            ["encode", "-m", "{model}", "--sentences", "{file}", "--out", "e.pickle"],
            ".npy, .parquet, .jsonl",
        ),
        (
            ["encode", "-m", "{model}", "--sentences", "{file}", "--out", "{file}/e.npy"],
            "can't be written",
        ),
        (
            ["encode", "-m", "{model}", "--sentences", "{file}", "--out", "e.npy", "--tsv"],
            "leave one out",
        ),
        (["encode", "-m", "{folder}", "--sentences", "{file}"], "is not a model folder"),
        (["info", "{folder}/nowhere"], "is not a model folder"),
        (["info", "no-such"], "no model named 'no-such' is installed"),
        (["info", "--model-sha256", "0" * 64], "--model-sha256 is for a MODEL"),
        (["info", "{model}", "--model-sha256", "0" * 64], "is a name or a folder"),
        (["info", "https://h/m.zip"], "needs the SHA-256 of its archive"),
        (["encode", "-m", "{model}", "a", "--sentences", "-"], "not both"),
        (["encode", "-m", "{model}", "a", "--resume"], "need --out FILE"),
        (["encode", "-m", "{model}", "a", "{file}"], "{file} is a file or a folder; name it alone"),
        (["encode", "-m", "{model}", "none.txt"], "there is no file 'none.txt'"),
        (["encode", "-m", "{model}", "a", "--columns", "text=a"], "there is no file 'a'"),
        (["similarity", "-m", "{model}", "one"], "two sentences are needed"),
        (
            ["similarity", "-m", "{model}", "one", "two", "--pairs", "-"],
            "by --pairs FILE, not both",
        ),
        (["similarity", "-m", "{model}", "--pairs", "{file}"], "line 1: 1 columns"),
        (["search", "-m", "{model}", "--corpus", "{file}"], "a query is needed"),
        (["search", "-m", "{model}", "--queries", "-"], "can't both be standard input"),
        (["search", "-m", "{model}", "a"], "standard input is empty"),
        (["rank", "-m", "{model}", "a"], "standard input is empty"),
    ],
)
def test_errors_are_one_line_and_exit_2(call, model, file, tmp_path, arguments, said):
    places = {"model": model, "file": file, "folder": tmp_path}
    status, out, err = call(*(argument.format(**places) for argument in arguments))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("rejoinder: ")
    assert said.format(**places) in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sentences.txt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["encode"],
        ["search", "-m", "{model}", "a", "--top-k", "0"],
        ["info", "{model}", "--json", "--tsv"],
        ["encode", "-m", "{model}", "a", "--on-too-long", "cut"],
        ["encode", "-m", "{model}", "--nonsense"],
    ],
)
def test_misuse_exits_2(call, model, arguments):
    status, _, err = call(*(argument.format(model=model) for argument in arguments))
    assert status == 2
    assert "Traceback" not in err


def test_a_damaged_model_is_one_line(call, tmp_path):
    write_model(tmp_path / "model", dan_model())
    path = tmp_path / "model" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    status, _, err = call("info", tmp_path / "model")
    assert (status, err.count("\n")) == (2, 1)
    assert "cut or changed" in err


def test_a_query_that_is_not_utf8_does_not_crash(model):
    run = subprocess.run(
        [Path(sys.executable).with_name("rejoinder"), "similarity", "-m", model, b"hell\xff", "b"],
        capture_output=True,
    )
    assert (run.returncode, run.stderr.count(b"\n")) == (0, 1)
    assert "hell\ufffd".encode() in run.stdout


def test_help_loads_nothing_heavy():
    script = (
        "import sys\n"
        "sys.argv = ['rejoinder', '--help']\n"
        "from rejoinder.cli.main import run\n"
        "try:\n    run()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'torch', 'polars', 'duckdb', 'ibis', 'numpy', 'scipy', 'tokenizers'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stderr == "[]\n"
    assert "encode" in run.stdout


def test_the_pages_on_use_tell_the_truth(call, model, tmp_path, monkeypatch):
    docs = Path(__file__).resolve().parents[2] / "docs"
    names = ("use.md", "texts.md", "guides/duplicates.md")
    use, texts, duplicates = ((docs / name).read_text("utf-8") for name in names)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(model)
    for name in ("sentences.txt", "questions.txt", "replies.txt"):
        (tmp_path / name).write_text("\n".join(SENTENCES), "utf-8")
    (tmp_path / "pairs.tsv").write_text("hello\tgood morning\n", "utf-8")
    (tmp_path / "more.jsonl").write_text('{"id": "x", "text": "good evening"}\n', "utf-8")
    chat = "3/1/24, 9:59 PM - Ann: Coming?\n3/1/24, 10:01 PM - Bob: Yes, by bus\n"
    (tmp_path / "chat.txt").write_text(chat, "utf-8")
    dump = dumped(comment("a", "How are you?"), comment("b", "Fine, thanks", "t1_a"))
    (tmp_path / "dump.jsonl").write_bytes(dump)
    extract("dump.jsonl", "pairs")
    for code in re.findall(r"```python\n(.*?)```", use + texts + duplicates, re.DOTALL):
        exec(compile(code, "use.md", "exec"), {})  # noqa: S102 -- it is our own
    shutil.rmtree("index")  # the commands make one of the same name
    first, indexes = (re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0] for page in (use, texts))
    lines = [shlex.split(line, comments=True) for line in first.strip().split("\n")]
    assert {line[1] for line in lines} == {"info", "encode", "similarity", "search", "rank"}
    lines += [shlex.split(line, comments=True) for line in indexes.strip().split("\n")]
    for line in lines:
        status, _, err = call(*line[1:])
        assert status == 0, err
