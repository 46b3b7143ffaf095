"""Labelled files as streams, and the mixture that draws from them."""

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.datasets.labelled import NLI_CLASSES
from rejoinder.datasets.leaks import EvaluationHashes, no_hashes, sentence_hashes
from rejoinder.errors import InputError
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures
from rejoinder.training.data.preparation import Mixture, read_labelled
from rejoinder.training.data.stream import LabelledStream, Position
from rejoinder.training.objectives import OBJECTIVES
from runs import write_labelled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_labelled(tmp_path_factory.mktemp("labelled"))


def read(folder, objective, name, hashes=None, **facts):
    options = {key: facts.pop(key) for key in ("hard_negatives",) if key in facts}
    task = task_of(objective, [{"path": f"{name}.jsonl", **facts}], **options)
    [labelled] = read_labelled(task, folder, hashes, {})
    return labelled


def task_of(objective, data, share=1.0, **options):
    tree = {"objective": objective, "share": share, "data": data, **options}
    kind = OBJECTIVES[objective]
    return kind.task.model_validate(tree)


def stream_of(labelled, **options):
    texts = pl.Series(labelled.content.texts)
    words, _ = learn_vocabulary(iter([texts]), max_words=999, min_count=1)
    return LabelledStream(labelled, WordFeatures(words), **{"seed": 1, **options})


def texts_of(labelled, stream, batch):
    """The sentences of a batch, found again by their ids."""
    known = {
        tuple(ids): text
        for text, ids in zip(labelled.content.texts, stream._sentences, strict=False)
    }
    return [known[tuple(batch.sentences[row])] for row in range(len(batch.sentences))]


def test_classified_rows_keep_their_labels(folder):
    labelled = read(folder, "entailment", "nli")
    assert (len(labelled.examples), labelled.content.unlabelled, labelled.content.leaks) == (
        126,
        42,
        0,
    )
    stream = stream_of(labelled)
    seen = Counter()
    for batch in itertools.islice(stream.batches(Position(), lambda: 14), 9):
        texts = texts_of(labelled, stream, batch)
        assert len(texts) == 28
        for left, right, label in zip(texts[:14], texts[14:], batch.labels, strict=True):
            name = NLI_CLASSES[label]
            assert (right[:-1] in left) == (name == "entailment")
            assert right.endswith("sad.") == (name == "neutral")
            seen[left, right] += 1
    assert len(seen) == 126
    assert set(seen.values()) == {1}


def test_entailed_rows_bring_contradictions_of_their_premises(folder):
    labelled = read(folder, "entailment-ranking", "nli")
    assert len(labelled.examples) == 42
    stream = stream_of(labelled)
    [batch] = itertools.islice(stream.batches(Position(), lambda: 42), 1)
    texts = texts_of(labelled, stream, batch)
    assert all(right[:-1] in left for left, right in zip(texts[:42], texts[42:84], strict=True))
    assert sorted(set(texts[84:])) == sorted(texts[84:])
    assert len(texts[84:]) == 21  # two premises share one
    assert not set(texts[84:]) & set(texts[42:84])


def test_two_different_sentences_of_a_group(folder):
    labelled = read(folder, "paraphrase", "groups")
    stream = stream_of(labelled)
    pairs = set()
    for batch in itertools.islice(stream.batches(Position(), lambda: 21), 60):
        texts = texts_of(labelled, stream, batch)
        for left, right in zip(texts[:21], texts[21:], strict=True):
            assert left != right
            assert left.rsplit(" ", 1)[0] == right.rsplit(" ", 1)[0]
            pairs.add((left, right))
    assert len(pairs) == 21 * 6
    duplicates = read(folder, "paraphrase", "duplicates")
    assert (len(duplicates.examples), duplicates.content.unlabelled) == (5, 3)


def hashes_of(*sentences):
    hashes = sentence_hashes(pl.Series(sentences))
    return EvaluationHashes("made up", np.sort(hashes), no_hashes())


def test_leaks_are_left_out_and_counted(folder):
    hashes = hashes_of("a man is SLEEPING outside", "a dog runs fast now")
    labelled = read(folder, "entailment", "nli", hashes)
    assert (labelled.content.leaks, len(labelled.examples)) == (3, 123)
    groups = read(folder, "paraphrase", "groups", hashes)
    assert (groups.content.leaks, len(groups.examples)) == (1, 21)
    stream = stream_of(groups)
    for batch in itertools.islice(stream.batches(Position(), lambda: 21), 9):
        assert "A dog runs fast now" not in texts_of(groups, stream, batch)
    everything = hashes_of(*labelled.content.texts)
    with pytest.raises(InputError, match=r"nli.jsonl .*\b0\b.*entailment.*126"):
        read(folder, "entailment", "nli", everything)


@settings(max_examples=10)
@given(stop=st.integers(1, 20), dropout=st.sampled_from([0.0, 0.3]))
def test_a_stream_goes_on_from_any_position(folder, stop, dropout):
    stream = stream_of(read(folder, "paraphrase", "groups"), word_dropout=dropout)

    def take(position, count):
        found = itertools.islice(stream.batches(position, lambda: 8), count)
        return [(b.left_keys.tolist(), b.sentences.ids.tolist(), b.after) for b in found]

    whole = take(Position(), stop + 3)
    assert take(whole[stop - 1][2], 3) == whole[stop:]


def mixture_of(folder, seed=0):
    tasks = []
    for objective, share, names in (
        ("entailment", 0.3, ["nli"]),
        ("paraphrase", 0.7, ["groups", "duplicates"]),
    ):
        streams = tuple(stream_of(read(folder, objective, name)) for name in names)
        task = task_of(objective, names, share=share, power=0.5)
        tasks.append((task, streams))
    return Mixture(tasks, seed)


def test_shares_of_a_mixture(folder):
    mixture = mixture_of(folder)
    half = 21**0.5 / (21**0.5 + 5**0.5)
    assert mixture.shares == pytest.approx(
        {
            "entailment/nli.jsonl": 0.3,
            "paraphrase/groups.jsonl": 0.7 * half,
            "paraphrase/duplicates.jsonl": 0.7 * (1 - half),
        }
    )
    drawn = Counter(mixture.drawn(step) for step in range(4_000))
    for place, share in enumerate(mixture.shares.values()):
        assert drawn[place] / 4_000 == pytest.approx(share, abs=0.027)
    again, other = mixture_of(folder), mixture_of(folder, 1)
    first = [mixture.drawn(step) for step in range(99)]
    assert first == [again.drawn(step) for step in range(99)]
    assert first != [other.drawn(step) for step in range(99)]


@settings(max_examples=6)
@given(stop=st.integers(1, 30))
def test_a_mixture_goes_on_from_any_step(folder, stop):
    mixture = mixture_of(folder)

    def take(step, positions, count):
        found = itertools.islice(mixture.batches(step, positions, lambda _s, _t: 4), count)
        return [(m.stream, m.batch.left_keys.tolist(), m.batch.after) for m in found]

    whole = take(0, {}, stop + 9)
    positions = {stream: after for stream, _, after in whole[:stop]}
    assert take(stop, positions, 9) == whole[stop:]


def test_the_batch_size_is_that_of_the_step(folder):
    mixture = mixture_of(folder)
    rows = {"entailment/nli.jsonl": 126, "paraphrase/groups.jsonl": 21}
    found = itertools.islice(mixture.batches(7, {}, lambda step, _task: step), 12)
    for step, mixed in enumerate(found, 7):
        assert len(mixed.batch.left_keys) == min(step, rows.get(mixed.stream, 5))


@pytest.mark.shared_data
def test_snli_s_dev_and_test_are_never_trained_on(shared_data):
    names = [f"nli/snli_1.0_{part}.jsonl.zst" for part in ("dev", "test", "train_subset18k")]
    for name in names[:2]:
        with pytest.raises(InputError, match=r"\b0\b.*entailment"):
            read_labelled(task_of("entailment", [name]), shared_data, None, {})
    [train] = read_labelled(task_of("entailment", names[2:]), shared_data, None, {})
    content = train.content
    assert len(train.examples) + content.leaks + content.unlabelled == 17_997
    assert content.leaks < 10
