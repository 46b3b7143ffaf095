"""Ids of words: one contract for the kernel in C and for Python."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from unicodedata import unidata_version

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from rejoinder import registry
from rejoinder.cli.main import app
from rejoinder.registry import kernel
from rejoinder.text.features import NumberedWords, UnknownWords, WordFeatures, WordIds
from rejoinder.text.normalize import UNICODE, as_strings, tokens_of
from rejoinder.text.vocabulary import Vocabulary, word_buckets

SENTENCES = [
    "How old are you?",
    "",
    "  \t\n\x0b\x0c\r ",
    "Don\u2019t 'quote' ROCK'N'ROLL o' '",
    "\x00a\x1cb\x85c\u3000d",
    "Stra\u00dfe \u0130stanbul \u03a3\u03bf\u03c6\u03cc\u03c2 \ufb01ne 3rd x2y \u0663\u0664",
    "\U0001f469\u200d\U0001f469 \u05e9\u05dc\u05d5\u05dd e\u0301 \u4e2d\u6587",
    "a" * 100_000,
    "it's " * 3_000,
]
WORDS = tuple(dict.fromkeys(token for text in SENTENCES[:7:2] for token in tokens_of(text)))


@pytest.fixture(params=["native", "python"])
def way(request):
    """How the ids of a test are found."""
    if request.param == "native" and kernel("text._words") is None:
        pytest.skip("the kernel is not built")
    return request.param


def word_ids(way: str, words: tuple[str, ...], buckets: int) -> WordIds:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "WITHOUT_KERNELS", way != "native")
        vocabulary = Vocabulary(words)
        made = WordIds(vocabulary, UnknownWords(vocabulary, buckets))
    assert made.way == way
    return made


settings_of_ids = pytest.mark.parametrize(
    ("buckets", "keep_unknown"), [(0, False), (0, True), (7, False), (7, True)]
)


def slow_ids(words: WordIds, text: str, keep_unknown: bool) -> list[int]:
    """The definition, one token at a time."""
    ids = []
    for token in tokens_of(text):
        if token in words.vocabulary.words:
            ids.append(words.vocabulary.words.index(token))
        elif words.unknown.buckets:
            bucket = word_buckets([token], words.unknown.buckets)[0]
            ids.append(len(words.vocabulary) + int(bucket))
        elif keep_unknown:
            ids.append(-1)
    return ids


@settings_of_ids
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(alphabet="ahowq oldAre'\u2019 12.\u00df\u03a3\u4e2d", max_size=30)))
def test_ids_are_those_of_the_definition(way, buckets, keep_unknown, texts):
    words = word_ids(way, WORDS, buckets)
    batch = words(texts, keep_unknown=keep_unknown)
    assert [batch[row].tolist() for row in range(len(batch))] == [
        slow_ids(words, text, keep_unknown) for text in texts
    ]
    assert (batch.ids.dtype, batch.offsets.dtype) == (np.int32, np.int64)


@settings_of_ids
def test_awkward_sentences_have_the_ids_of_the_definition(way, buckets, keep_unknown):
    words = word_ids(way, WORDS, buckets)
    batch = words(SENTENCES, keep_unknown=keep_unknown)
    assert [batch[row].tolist() for row in range(len(batch))] == [
        slow_ids(words, text, keep_unknown) for text in SENTENCES
    ]


@pytest.mark.skipif(not unidata_version.startswith(UNICODE), reason="another Unicode")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=20), max_size=4))
def test_no_text_is_read_differently(way, texts):
    texts = as_strings(texts)
    vocabulary = Vocabulary(
        tuple(dict.fromkeys(token for text in texts for token in tokens_of(text)))
    )
    batch = word_ids(way, vocabulary.words, 0)(texts)
    tokens = [[vocabulary.words[index] for index in batch[row]] for row in range(len(batch))]
    assert tokens == [tokens_of(text) for text in texts]


def test_several_threads_may_share_it(way):
    words = word_ids(way, WORDS, 3)
    expected = words(SENTENCES * 20).ids.tolist()
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda _: words(SENTENCES * 20).ids.tolist(), range(12))
        assert all(result == expected for result in results)


def test_a_large_vocabulary_is_found_word_by_word():
    letters = "abcdefghijklmnopqrst"
    names = tuple(
        a + b + c + d for a in letters for b in letters for c in letters for d in letters[:5]
    )
    ids = WordFeatures(Vocabulary(names)).word_ids([" ".join(names)]).ids
    assert np.array_equal(ids, np.arange(len(names)))


@pytest.mark.skipif(kernel("text._words") is None, reason="the kernel is not built")
def test_the_shipped_command_finds_ids_by_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(WordIds, "_by_sentence", None)  # would fail if it were called
    (tmp_path / "texts.txt").write_text("How old are you?\n" * 3)
    out = tmp_path / "out.npy"
    command = ["encode", "--sentences", str(tmp_path / "texts.txt"), "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--model", "rejoinder-small"])
    assert result.exit_code == 0, result.output
    assert len(np.load(out)) == 3


@pytest.mark.skipif(kernel("text._words") is None, reason="the kernel is not built")
class TestKernel:
    def test_what_does_not_fit_is_refused(self):
        table = kernel("text._words").Table
        with pytest.raises(ValueError, match="0x110000 classes"):
            table(b"a\n", b"")
        with pytest.raises(ValueError, match="a line for each word"):
            table(b"a", bytes(0x110000))
        filled = table(b"a\n", bytes(0x110000))
        with pytest.raises(RuntimeError, match="once"):
            filled.__init__(b"a\n", bytes(0x110000))
        with pytest.raises(TypeError):
            filled.ids(["a"], False)
        with pytest.raises(TypeError):
            filled.ids((1,), False)
        with pytest.raises(UnicodeEncodeError):
            filled.ids(("\ud800",), False)


def test_words_get_numbers_as_they_come(way, monkeypatch):
    if way == "python":
        monkeypatch.setattr(registry, "WITHOUT_KERNELS", True)
    words, known = NumberedWords(), {}
    parts = [SENTENCES, [], [f"w{number} {number}" for number in range(5_000)], SENTENCES[::-1]]
    for part in parts:
        before, found = len(known), words(part)
        tokens = [tokens_of(text) for text in part]
        expected = [known.setdefault(token, len(known)) for row in tokens for token in row]
        assert found.ids.tolist() == expected
        assert found.lengths.tolist() == [len(row) for row in tokens]
        assert words.since(before) == list(known)[before:]
    assert words.since(0) == list(known)
    assert words.since(len(known)) == []


KNOWN = Vocabulary(("password", "the", "weather"))
UNKNOWN = ["pasword", "kerrville", "wether", "pasword", "a" * 100]


def bucket(word: str) -> int:
    return len(KNOWN) + int(word_buckets([word], 7)[0])


def test_a_misspelt_word_has_the_id_of_the_right_one_and_others_their_buckets():
    unknown = UnknownWords(KNOWN, 7, spelling=True)
    expected = [0, bucket("kerrville"), 2, 0, bucket("a" * 100)]
    assert unknown(UNKNOWN).tolist() == expected
    assert unknown(UNKNOWN[::-1]).tolist() == expected[::-1]
    assert UnknownWords(KNOWN, spelling=True)(UNKNOWN).tolist() == [0, -1, 2, 0, -1]
    assert UnknownWords(KNOWN)(UNKNOWN).tolist() == [-1] * 5
    assert UnknownWords(KNOWN, 7)(UNKNOWN).tolist() == [bucket(word) for word in UNKNOWN]


def test_ids_do_not_depend_on_what_is_kept(monkeypatch):
    monkeypatch.setattr("rejoinder.text.vocabulary._REMEMBERED", 2)
    unknown = UnknownWords(KNOWN, 7, spelling=True)
    expected = UnknownWords(KNOWN, 7, spelling=True)(UNKNOWN).tolist()
    for _ in range(3):
        assert unknown(UNKNOWN).tolist() == expected
        assert len(unknown._ids._kept) <= 2 + len(UNKNOWN)
        unknown([f"word{number}" for number in range(5)])


def test_a_copy_gives_the_same_ids():
    unknown = UnknownWords(KNOWN, 7, spelling=True)
    assert deepcopy(unknown)(UNKNOWN).tolist() == unknown(UNKNOWN).tolist()


@pytest.mark.parametrize("spelling", [False, True])
def test_no_words_have_no_ids(spelling):
    assert UnknownWords(KNOWN, 7, spelling=spelling)([]).tolist() == []
