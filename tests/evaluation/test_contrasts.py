"""The contrasts: the shipped items are sound, and scores are what they should be."""

import re
import tomllib
from collections import Counter
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import DataMissingError
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context, resolve
from rejoinder.evaluation.tasks.contrasts import (
    KINDS,
    MADE,
    made_contrasts,
    read_contrasts,
)
from rejoinder.models.find import shipped_model
from rejoinder.scoring.batch import KINDS as RELATIONS
from rejoinder.scoring.batch import lexicon
from rejoinder_papers.baselines.words import BagOfWords, tokens

TEXTS = ("anchor", "same", "different")
TASKS = [f"contrasts/{kind}" for kind in KINDS]
MADE_TASKS = [f"contrasts/made-{kind}" for kind in MADE]
SLOT = re.compile(r"\{[^}]*\}|[\w']+")
RULES = tomllib.loads(files("rejoinder").joinpath("data/contrasts.toml").read_text("utf-8"))


class InOrder:
    """Knows which sentences of the items mean the same: one direction for each meaning."""

    def __init__(self, frame: pl.DataFrame) -> None:
        both = [*frame["anchor"], *frame["same"]]
        self.meaning = dict(zip(both, [*range(len(frame))] * 2, strict=True))

    def encode(self, sentences):
        out = np.zeros((len(sentences), 201), np.float32)
        for row, text in enumerate(sentences):
            out[row, self.meaning.get(text, 200)] = 1
        return out


def overlap(left: str, right: str) -> float:
    """The share of the distinct words of the shorter sentence that are also in the longer one."""
    first, second = set(tokens(left)), set(tokens(right))
    return len(first & second) / min(len(first), len(second))


def test_the_items_are_whole_and_different():
    frame = read_contrasts().frame
    assert frame.columns == ["kind", *TEXTS]
    assert Counter(frame["kind"]) == dict.fromkeys(KINDS, 40)
    texts = [text for name in TEXTS for text in frame[name]]
    assert len({tuple(tokens(text)) for text in texts}) == len(texts)
    for text in texts:
        assert text == " ".join(text.split())
        assert text[0].isupper()
        assert text.endswith(".")


def test_what_differs_has_the_words_of_the_anchor():
    frame = read_contrasts().frame
    for kind, anchor, _, different in frame.iter_rows():
        if kind == "word-order":
            assert sorted(tokens(anchor)) == sorted(tokens(different))
            assert anchor != different
        else:
            assert overlap(anchor, different) >= 0.6, different


def test_a_bag_of_words_knows_no_word_order_and_meaning_alone_is_enough():
    bow = score_tasks(BagOfWords(), TASKS)
    known = score_tasks(InOrder(read_contrasts().frame), TASKS)
    assert [result.task for result in bow] == TASKS
    assert [result.n for result in bow] == [40] * 5
    assert bow[0].scores["accuracy"] == 0
    assert bow[0].scores["similarity_different"] == pytest.approx(1)
    assert bow[0].scores["similarity_same"] < 1
    for result in known:
        assert result.scores == pytest.approx(
            {"accuracy": 100, "similarity_same": 1, "similarity_different": 0}
        )
        assert not result.metric.in_percent("similarity_same")
    assert {row.better for row in compare(known, bow).tasks} == {"first"}


def test_ties_are_wrong_and_a_task_alone_scores_as_among_others():
    class Same:
        def encode(self, sentences):
            return np.ones((len(sentences), 3), np.float32)

    assert {result.scores["accuracy"] for result in score_tasks(Same(), TASKS)} == {0}
    [alone] = score_tasks(BagOfWords(), ["contrasts/names"])
    among = score_tasks(BagOfWords(), TASKS)[-1]
    assert (alone.scores, alone.key) == (among.scores, among.key)


def test_the_difficult_pairs_are_a_task_of_the_group():
    assert resolve(["contrasts"]) == ["sts17/difficult", *TASKS, *MADE_TASKS]
    assert resolve(["sts17"]) == ["sts17/cosine"]


@pytest.mark.shared_data
def test_the_difficult_pairs_are_those_of_the_paper(shared_data):
    context = Context(shared_data)
    cosine, result = score_tasks(BagOfWords(), ["sts17/cosine", "sts17/difficult"], context)
    assert result.items is not None
    assert result.items.gold.tolist() == [5, 4, 3, 1.8, 1, 0.2]  # Table 12
    assert result.items.texts[3].startswith("A man is carrying a canoe with a dog. | A dog")
    expected = np.abs(result.items.predictions - result.items.gold).mean()
    assert result.scores == {"mean_absolute_error": pytest.approx(expected)}
    assert "14: 1.8 / 4.4" in result.notes[0]
    assert result.data["sha256"] == cosine.data["sha256"]
    assert not result.metric.higher_is_better
    [row] = compare([result], [result]).tasks
    assert (row.difference, row.better) == (0, None)


@pytest.mark.shared_data
def test_too_few_pairs_are_missing_data(shared_data, tmp_path):
    folder = tmp_path / "sts2017"
    folder.mkdir()
    for file in (shared_data / "sts2017").glob("STS.*.txt"):
        lines = file.read_text("utf-8").splitlines()[:100]
        (folder / file.name).write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(DataMissingError, match=r"sts17/difficult .*250 .*100"):
        score_tasks(BagOfWords(), ["sts17/difficult"], Context(tmp_path))


def test_the_file_has_an_item_a_line():
    frame, sha256 = read_contrasts().frame, read_contrasts().sha256
    assert frame.null_count().sum_horizontal().item() == 0
    assert frame.schema == dict.fromkeys(frame.columns, pl.String)
    assert len(sha256) == 64


def test_rules_make_the_same_items_everywhere():
    made_contrasts.cache_clear()
    sha256 = "df81d1d9d4951b0909af58779bdb08bdbecfbeca54cbd27f2e5a220f85b9479d"
    assert made_contrasts().sha256 == sha256, "results of contrasts/made-* can't be compared"


def test_made_items_are_whole_and_each_sentence_is_there_once():
    frame = made_contrasts().frame
    assert Counter(frame["kind"]) == dict.fromkeys((f"made-{kind}" for kind in MADE), 250)
    texts = [text for name in TEXTS for text in frame[name]]
    assert len({text.lower() for text in texts}) == len(texts) == 6_000
    assert not {*texts} & {text for name in TEXTS for text in read_contrasts().frame[name]}
    for text in texts:
        assert re.fullmatch(r"[A-Z0-9][\w ,:']*\.", text), text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("roles", "name person animal city"),
        ("quantity", "count tens mass time span part times far bound again"),
        ("attribution", "name person source"),
        ("places", "city country where side site room hand"),
        ("dates", "day month year date noon event week season decade name count"),
        ("swaps", "deal human look trend phase taste reply state wish case when travel near mood "
         "many stand luck width tone push mind use"),
        ("negation",
         "after without agree agreed always never both neither can cannot deed did didn't "
         "do does everybody nobody everyone no one everything nothing like likes longer "
         "still not refuse refused work works"),
        ("tense",
         "about are be begin begun belonged belongs close closed finish finished going had "
         "has have is job just knew knows leave left live lives meet met move moved played "
         "plays to used was were will worked works"),
    ],
)  # fmt: skip
def test_only_words_of_the_kind_differ(kind, words):
    for anchor, same, different in RULES["templates"][kind]:
        assert len({anchor, same, different}) == 3
        parts = SLOT.findall(anchor.lower()), SLOT.findall(different.lower())
        # the same words in another order: two slots changed places
        apart = {*parts[0]} ^ {*parts[1]} or {*re.findall(r"\{\w+[12].*?\}", anchor)}
        names = {re.sub(r"\{(\w+?)[12]?(\[.*)?\}", r"\1", word) for word in apart}
        assert names, anchor
        assert names <= {*words.split()}, (anchor, different)


def test_words_of_templates_are_known():
    vocabulary = {*(shipped_model("rejoinder-small") / "vocabulary.txt").read_text().split("\n")}
    for name, rows in RULES["words"].items():
        forms = [form for row in rows for form in ([row] if isinstance(row, str) else row)]
        assert {*re.findall(r"[\w']+", " ".join(forms).lower())} <= vocabulary, name
    words = [*lexicon().places]
    for name in ("case", "deal", "human", "look", "state", "wish"):
        for row in RULES["words"][name]:
            found = [words.index(word) for word in row]
            kinds = lexicon().among(np.array(found))
            related = kinds | kinds.T
            assert [RELATIONS[k] for k in related[0, 1:]] == ["synonym", "antonym"], row


def test_items_of_a_template_count_as_a_whole():
    rows = made_contrasts().frame.filter(pl.col("kind") == "made-tense")
    few, more, most = (
        score_tasks(InOrder(rows[: 10 * templates]), ["contrasts/made-tense"])
        for templates in (1, 4, 16)
    )
    assert [result.scores["accuracy"] for [result] in (few, more, most)] == [4, 16, 64]
    low, high = more[0].intervals["accuracy"]
    assert low <= 4  # 12 to 21 if all items were drawn alone
    assert high >= 28
    [close], [far] = compare(more, few).tasks, compare(most, few).tasks
    assert (close.better, far.better) == (None, "first")
