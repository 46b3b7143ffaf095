"""`rejoinder index`, and `rejoinder search --index`, as a shell runs them."""

import json

import polars as pl
import pytest

from export_samples import slack, write


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    """The same in a new folder."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def index(call, tmp_path):
    (tmp_path / "faq.txt").write_text("How old are you?\nWhere do you live?\n", "utf-8")
    assert call("index", "faq.txt", "--out", "index") == (0, "", "index: 2 texts\n")
    return tmp_path / "index"


def test_an_index_is_made_searched_and_changed(call, index, tmp_path):
    status, out, _ = call("search", "What is your age?", "--index", "index", "--top-k", 1)
    assert status == 0
    assert out.splitlines()[1].split("\t")[3:] == ["1", "How old are you?"]
    (tmp_path / "more.tsv").write_text("id\ttext\nx\tI like pizza.\n1\tWhat time is it?\n", "utf-8")
    status, _, err = call("index", "add", "index", "more.tsv")
    assert (status, err.count("\n")) == (2, 1)
    assert "'1'" in err
    assert call("index", "update", "index", "more.tsv")[0] == 0
    _, out, _ = call("search", "the time?", "--index", "index", "--top-k", 1, "--json")
    [hit] = json.loads(out)
    assert (hit["id"], hit["text"], hit["rank"]) == ("1", "What time is it?", 1)
    (tmp_path / "ids").write_text("x\n", "utf-8")
    assert call("index", "delete", "index", "ids", "--json")[1] == (
        '{"index": "index", "texts": 2}\n'
    )
    assert call("index", "compact", "index")[0] == 0
    assert call("index", "check", "index")[0] == 0


def test_an_index_has_commands(call, index, tmp_path):
    (tmp_path / "more.jsonl").write_text('{"id": "x", "text": "I like pizza."}\n', "utf-8")
    assert call("index", "add", "index", "more.jsonl") == (0, "", "index: 3 texts\n")
    assert call("index", "update", "index", "more.jsonl")[0] == 0
    facts = json.loads(call("index", "show", "index", "--json")[1])
    assert (facts["texts"], facts["model"]) == ("3", "rejoinder-base")
    (tmp_path / "ids").write_text("x\n", "utf-8")
    assert call("index", "delete", "index", "ids") == (0, "", "index: 2 texts\n")
    assert call("index", "compact", "index")[0] == 0
    assert call("index", "check", "index")[0] == 0
    assert call("index", "export", "index", "--to", "parquet", "--out", "table.parquet")[0] == 0
    assert pl.read_parquet(tmp_path / "table.parquet").height == 2
    status, out, err = call("index", "show", "nowhere")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_file_may_have_the_name_of_a_command(call, tmp_path):
    (tmp_path / "export").write_text("How old are you?\n", "utf-8")
    assert call("index", "export", "--out", "made") == (0, "", "made: 1 texts\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("faq.txt", "--out", "index"), "exists and is not empty"),
        (("--out", "new"), "file of texts"),
        (("faq.txt", "--out", "new", "--recall", 2), "recall"),
        (("add", "nowhere", "faq.txt"), "nowhere"),
        (("no.txt", "--out", "new"), "no.txt"),
        (("add", "index", "faq.txt", "-m", "rejoinder-small"), "rejoinder-small"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(call, index, words, said):
    status, out, err = call("index", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_search_takes_a_file_or_an_index(call, index):
    status, _, err = call("search", "a", "--index", "index", "--corpus", "faq.txt")
    assert status == 2
    assert "--index" in err


def test_an_index_is_searched_by_words_or_by_both(call, index):
    _, out, _ = call("search", "you live", "--index", "index", "--mode", "words", "--json")
    hits = json.loads(out)
    assert [(hit["id"], hit["bm25"] > 0) for hit in hits] == [("2", True)]  # "you" says nothing
    both = ("search", "live", "--index", "index", "--mode", "hybrid", "--json")
    hits = json.loads(call(*both)[1])
    assert [hit["id"] for hit in hits] == ["2", "1"]
    assert hits[0]["score"] > hits[1]["score"]
    by_words = json.loads(call(*both, "--weight", 0)[1])
    assert [hit["id"] for hit in by_words] == ["2"]
    _, out, err = call("search", "zzzz", "--index", "index", "--mode", "hybrid", "--json")
    assert (json.loads(out), "'zzzz'" in err) == ([], True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--index", "index", "--weight", 0.3), "--mode hybrid"),
        (("--index", "index", "--mode", "words", "--exact"), "--exact"),
        (("--corpus", "faq.txt", "--mode", "words"), "--index"),
        (("--index", "index", "--mode", "hybrid", "--weight", 2), "--weight"),
        (("--index", "index", "--mode", "bm25"), "--mode"),
        (("--index", "index", "--where", "author=a"), "author"),
        (("--index", "index", "--where", "author"), "KEY=VALUE"),
        (("--corpus", "faq.txt", "--where", "author=a"), "--index"),
        (("--corpus", "faq.txt", "--context", 1), "--index"),
        (("--index", "index", "--context", 1, "--tsv"), "--json"),
        (("--index", "index", "--context", 1), "not messages"),
        (("--index", "index", "--exact", "--where", "author=a"), "--exact"),
    ],
)
def test_options_of_a_search_without_effect_are_refused(call, index, words, said):
    status, out, err = call("search", "a", *words)
    assert (status, out) == (2, "")
    assert said in err


def test_messages_are_found_by_who_wrote_them_when_and_where(call, tmp_path):
    write(slack.FILES, tmp_path / "slack")
    assert call("index", "slack", "--out", "chats", "-m", "rejoinder-small")[0] == 0
    search = ("search", "yes", "--index", "chats", "--json", "--top-k", 100)
    every = json.loads(call(*search)[1])
    for more, meets in (
        (("--where", "source=HELP,author=u9"), lambda hit: hit["author"] == "U9"),
        (
            ("--where", "author=bob b.,source=help", "--where", "author=ann"),
            lambda hit: hit["author"] in ("Bob B.", "Ann"),
        ),
        (("--where", "since=2024-03-02"), lambda hit: hit["time"] >= "2024-03-02"),
    ):
        expected = [hit["id"] for hit in every if meets(hit)]
        assert [hit["id"] for hit in json.loads(call(*search, *more)[1])] == expected != []
    status, out, err = call(*search, "--where", "author=nobody")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_query_may_name_conditions(call, tmp_path):
    write(slack.FILES, tmp_path / "slack")
    assert call("index", "slack", "--out", "chats", "-m", "rejoinder-small")[0] == 0
    search = ("search", 'Does it "since today" -thanks', "does it from:ann", "--index", "chats")
    hits = json.loads(call(*search, "--json")[1])
    assert [hit["text"] for hit in hits if "since" in hit["query"]] == ["Yes, since today"]
    assert {hit["author"] for hit in hits if "from:" in hit["query"]} == {"Ann"}
    queries = ("since when", "does it from:ann", "does it", "yes -thanks")
    together = json.loads(call("search", *queries, "--index", "chats", "--json")[1])
    alone = [call("search", one, "--index", "chats", "--json")[1] for one in queries]
    assert together == [hit for found in alone for hit in json.loads(found)]
    status, out, err = call("search", "from:ann", "--index", "chats")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_hit_shows_the_messages_around_it_and_the_words_found(call, tmp_path, monkeypatch):
    write(slack.FILES, tmp_path / "slack")
    assert call("index", "slack", "--out", "chats", "-m", "rejoinder-small")[0] == 0
    search = ("search", "Since when?", "--index", "chats", "--mode", "words")
    [hit] = json.loads(call(*search, "--context", 1, "--json")[1])
    assert [hit["text"][begin:end] for begin, end in hit["matches"]] == ["since"]
    assert [each["author"] for each in (*hit["before"], *hit["after"])] == ["Ann", "Ann"]
    assert hit["after"][0]["text"] == "Thanks!"
    printed = call(*search, "--context", 1)[1]
    assert printed.index("Does #billing") < printed.index("> 2024") < printed.index("Thanks!")
    assert "in answer to" not in printed  # it is above
    assert "\x1b" not in printed
    assert "Thanks!" not in call(*search)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("rejoinder.cli.output.form_of_output", lambda: "table")
    assert "Yes, \x1b[1msince\x1b[0m today" in call(*search)[1]
    assert "\x1b[1msince" not in call(*search[:-1], "semantic")[1]


def test_a_large_index_is_searched_approximately_or_exactly(call, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr("rejoinder.index.lists.LEAST_ROWS", 1_000)
    monkeypatch.setattr("rejoinder.index.lists._JUDGED", 64)
    lines = [f"{number} apples" for number in range(1_000)]
    (tmp_path / "apples.txt").write_text("\n".join(lines) + "\n", "utf-8")
    assert call("index", "apples.txt", "--out", "large") == (0, "", "large: 1,000 texts\n")
    assert (tmp_path / "large/000001/lists.faiss").exists()
    for more in ((), ("--exact",)):
        status, out, _ = call("search", "7 apples", "--index", "large", "--top-k", 3, *more)
        assert status == 0
        assert len(out.splitlines()) == 4
    assert call("search", "a", "--corpus", "apples.txt", "--exact")[0] == 2
    monkeypatch.setattr("rejoinder.index.folder.find_spec", lambda _name: None)
    status, _, err = call("index", "apples.txt", "--out", "slow")
    assert "faiss is not installed" in err
    assert not (tmp_path / "slow/000001/lists.faiss").exists()


def test_serve_refuses_an_index_of_another_model(call, index):
    status, _, err = call("serve", "rejoinder-small", "--index", "index", "--port", 0)
    assert status == 2
    assert "rejoinder-base" in err
    status, _, err = call("serve", "--index", "index", "--texts", "faq.txt", "--port", 0)
    assert status == 2
    assert "--index" in err


@pytest.fixture
def export(index, tmp_path):
    return write(slack.FILES, tmp_path / "slack")


_SAID = "Yes, since today"
_KNOWN = {"author": "Bob B.", "time": "2024-03-01 08:03", "source": "help", "link": None}


def test_messages_of_an_export_are_found_without_an_index_as_with_one(call, export):
    assert "messages left out: 4 (1 by bots, " in call("index", export, "--out", "of-slack")[2]
    words = ("search", "Does it work since today?", "--top-k", 3, "--json")
    _, by_index, _ = call(*words, "--index", "of-slack", "--mode", "semantic")
    status, out, err = call(*words, "--corpus", export)
    assert (status, json.loads(out)) == (0, json.loads(by_index))
    [hit] = [hit for hit in json.loads(out) if hit["text"] == _SAID]
    assert hit.items() >= _KNOWN.items()
    assert hit["answered"].startswith("Does #billing work")
    assert "1 private" in err
    table = call(*words[:-1], "--corpus", export, terminal=True)[1]
    assert "Bob B." in table


def test_messages_of_an_export_are_ranked_and_encoded(call, export):
    _, out, _ = call("rank", "Does it work?", "--responses", export, "--json")
    [hit] = [hit for hit in json.loads(out) if hit["response"] == _SAID]
    assert hit.items() >= _KNOWN.items()
    status, out, err = call("encode", export, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    [row] = [row for row in rows if row["text"] == _SAID]
    assert (status, row["author"], len(row["embedding"])) == (0, "Bob B.", 512)
    assert "messages left out: 4" in err
    for name in ("e.jsonl", "e.parquet", "e.npy"):
        assert call("encode", "--sentences", export, "--out", name, "--json")[0] == 0
    assert export.with_name("e.jsonl").read_text("utf-8") == out
    about = pl.read_parquet(export.with_name("e.parquet"))["about"]
    assert [json.loads(one)["id"] for one in about] == [row["id"] for row in rows]
