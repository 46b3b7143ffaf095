"""Tokens by name are those that the model reads."""

from dataclasses import replace

import pytest

from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.text.tokens import read_tokens
from tiny_models import dan_model

AWKWARD = [
    "", " ", "\x00", "How OLD are you?", "don't DON’T o''clock 'tis rock'n'roll", "ﬁne ½ ①",
    "İSTANBUL ΑΣ ΑΣΑ ΣΑΣ", "e\u0301é \u0301x", "مرحبا ٣٤ بالعالم", "こんにちは世界", "😀👍🏽 ok",
    "\x1c\x85\u2028 a",
    "1,234.5e6", "ǅ ß ſ K Å", "\ud800 lone", "क्षत्रिय हिन्दी", "a\u200bb", "“so” ʼquoteʼ",
    "ﷺ", "Ⅷ ⅷ ㎏",
]  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("unknown_buckets", [0, 16])
def test_the_ids_are_those_of_the_features(text, unknown_buckets):
    model = dan_model(unknown_buckets=unknown_buckets, layers=(), width=5)
    [tokens] = read_tokens(model.features, [text])
    assert [token.id for token in tokens] == model.features([text])[0].tolist()


@pytest.mark.parametrize("text", AWKWARD)
def test_also_with_forty_thousand_words(text):
    model = read_model(shipped_model("rejoinder-small"))
    [tokens] = read_tokens(model.features, [text])
    assert [token.id for token in tokens] == model.features([text])[0].tolist()
    place = {word: row for row, word in enumerate(model.features.vocabulary.words)}
    # others may be misspelt, or letters
    known = [token for token in tokens if token.text in place and token.id < len(place)]
    assert [token.id for token in known] == [place[token.text] for token in known]


def test_bigrams_are_named_after_both_words_and_unknown_words_are_left_out():
    [tokens] = read_tokens(dan_model().features, ["how old zyxxyq are you"])
    assert [token.text for token in tokens] == ["how", "old", "are", "you", "how old", "are you"]
    assert (tokens[4].start, tokens[4].stop) == (0, 7)


def test_misspelt_words_have_the_ids_of_the_right_ones():
    features = replace(dan_model().features, spelling="nearest")
    wrong, right = read_tokens(features, ["waht zyxxyq is", "what zyxxyq is"])
    assert [token.id for token in wrong] == [token.id for token in right]
    assert [token.text for token in wrong] == ["waht", "is"]
    pairs = [[token.text for token in read_tokens(features, [t])[0]] for t in ("waht is", "waht")]
    assert pairs == [["waht", "is", "waht is"], ["waht"]]


def test_offsets_are_those_of_the_text_as_given_or_none():
    [tokens] = read_tokens(dan_model(unknown_buckets=16).features, ["½ ﬁne Ⅷ"])
    text = "½ ﬁne Ⅷ"
    assert [text[token.start : token.stop] for token in tokens[-2:]] == ["ﬁne", "Ⅷ"]
    [joined] = read_tokens(dan_model(unknown_buckets=16).features, ["e\u0301"])
    assert (joined[0].text, joined[0].start, joined[0].stop) == ("é", None, None)
