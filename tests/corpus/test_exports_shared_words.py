"""The words that several authors used, and that nothing else enters a model."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.corpus import convert
from rejoinder.corpus.convert import SharedWords
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from rejoinder.io.files.storage import scratch_folder

WORDS = ("apple", "bear", "cloud")


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("ABCD"), st.lists(st.sampled_from(WORDS)))),
    st.integers(2, 4),
    st.sampled_from([1, 3, 100]),
)
def test_words_are_those_of_so_many_authors(messages, least, chunk):
    with pytest.MonkeyPatch.context() as patch, scratch_folder() as folder:
        words = SharedWords(least, folder / "words")
        patch.setattr(convert, "_CHUNK", chunk)
        for author, said in messages:
            words.add(author, " ".join(said))
        found = words.words()
    authors = {word: {author for author, said in messages if word in said} for word in WORDS}
    assert found == sorted(word for word in WORDS if len(authors[word]) >= least)


def slack(folder, authors):
    """A channel in which each author says the same, and one tells a secret again and again."""
    rows = []
    for number in range(60):
        author = f"U{number % authors}"
        secret = " hunter2secret" if author == "U0" else ""
        thread = {"thread_ts": f"{1709280000 + number // 2 * 60}.0"}
        ts = f"{1709280000 + number // 2 * 60 + number % 2}.0"
        text = f"Please restart the frobnicator{secret}"
        rows.append({"type": "message", "user": author, "ts": ts, "text": text, **thread})
    (folder / "help").mkdir(parents=True)
    (folder / "help/2024-03-01.json").write_text(json.dumps(rows))
    return folder


def test_pairs_name_the_words_that_a_model_may_know(tmp_path):
    export = slack(tmp_path / "export", authors=7)
    extract(export, tmp_path / "pairs")
    words = open_pairs(tmp_path / "pairs").words
    assert words is not None
    assert "frobnicator" in words
    assert "secret" not in " ".join(words)
    extract(export, tmp_path / "all", min_authors=1)
    assert open_pairs(tmp_path / "all").words is None
    (tmp_path / "pairs/words.txt").write_text("secret\n")
    with pytest.raises(InputError, match=r"words\.txt.*Extract"):
        _ = open_pairs(tmp_path / "pairs").words


def test_settings_of_exports_without_an_export_are_refused(small_dump, tmp_path):
    with pytest.raises(InputError, match="`min_authors`"):
        extract(small_dump, tmp_path / "pairs", min_authors=3)
