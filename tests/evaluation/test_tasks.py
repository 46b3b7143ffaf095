"""The tasks, with a small test encoder, against slow and published figures."""

import hashlib
import re
from functools import cache

import numpy as np
import pytest

from rejoinder.datasets.semeval import pair_keys, read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation import encoding
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.responses import ResponsePairs, draw_negatives, ranked_responses
from rejoinder.evaluation.results import Missing, Result, read_results, write_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context, resolve
from rejoinder.evaluation.tasks.ranking import rank_responses
from sts_files import write_year

pytestmark = pytest.mark.usefixtures("few_resamples")


class Bag:
    """The mean of normal vectors seeded by the SHA-256 of each word."""

    def __init__(self, dim: int = 20) -> None:
        self.dim, self.asked = dim, 0

    def encode(self, sentences):
        self.asked += len(sentences)
        out = np.zeros((len(sentences), self.dim), np.float32)
        for row, sentence in enumerate(sentences):
            for word in sentence.lower().split():
                out[row] += normal_vector(word, self.dim)
        return out


@cache
def normal_vector(word, dim):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dim)


class BagOfWords:
    """Binary word vectors: the baseline of Cer et al. 2017."""

    def encode(self, sentences):
        tokens = [set(re.findall(r"\w+|[^\w\s]", text.lower())) for text in sentences]
        index = {word: place for place, word in enumerate(sorted(set().union(*tokens)))}
        out = np.zeros((len(tokens), len(index)), np.float32)
        for row, words in enumerate(tokens):
            out[row, [index[word] for word in words]] = 1
        return out


def made_up(count: int) -> ResponsePairs:
    generator = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in generator.integers(0, 60, 4)) for _ in range(count)]
    replies = [f"{text} w{place % 7}" for place, text in enumerate(texts)]
    sources = ["even" if place % 2 == 0 else "odd" for place in range(count)]
    return ResponsePairs("test", texts, replies, sources, "0" * 64)


def test_ranks_are_those_of_the_definition():
    pairs, encoder = made_up(300), Bag(4)
    result = rank_responses(Embedder(encoder), pairs, seed=5)
    negatives = draw_negatives(np.arange(300), 300, 99, np.random.default_rng(5))
    u, v = encoder.encode(pairs.inputs), encoder.encode(pairs.responses)
    hits = {1: 0, 3: 0, 10: 0}
    for row in range(300):
        right = float(np.dot(u[row], v[row]))
        above = sum(float(np.dot(u[row], v[other])) >= right for other in negatives[row])
        for n in hits:
            hits[n] += above < n
    assert result.scores == {f"P@{n}": count / 300 for n, count in hits.items()}
    assert result.groups["even"].n == 150
    total = sum(group.n * group.scores["P@1"] for group in result.groups.values())
    assert total == pytest.approx(hits[1])
    low, high = result.intervals["P@1"]
    assert low <= result.scores["P@1"] <= high


@pytest.mark.parametrize(("count", "size"), [(100, 99), (150, 99), (1_000, 99), (5, 4)])
def test_negatives_are_different_and_never_the_right_one(count, size):
    rows = np.arange(count)
    drawn = draw_negatives(rows, count, size, np.random.default_rng(1))
    assert drawn.shape == (count, size)
    assert all(len(set(row)) == size for row in drawn.tolist())
    assert not (drawn == rows[:, None]).any()
    assert (drawn.min(), drawn.max()) == (0, count - 1)
    if count == 1_000:
        share = np.bincount(drawn.ravel(), minlength=count) / drawn.size
        assert share.std() < 3 * np.sqrt(1 / (count * drawn.size))


def test_ties_count_against_the_model():
    pairs = ResponsePairs("test", ["a"] * 120, ["b"] * 120, ["s"] * 120, "")
    result = rank_responses(Embedder(Bag()), pairs)
    assert result.scores["P@10"] == 0
    assert "11880 of 11880 negatives repeat" in result.notes[0]


def test_few_candidates_give_the_metric_its_true_name():
    result = rank_responses(Embedder(Bag()), made_up(40))
    assert list(result.scores) == ["P@1 of 40", "P@3 of 40", "P@10 of 40"]
    with pytest.raises(InputError, match=r"1 pairs.*two"):
        rank_responses(Embedder(Bag()), made_up(1))


def test_a_sample_of_inputs_keeps_all_candidates_and_each_text_is_encoded_once():
    encoder = Bag()
    pairs = made_up(300)
    ranked = ranked_responses(Embedder(encoder), pairs, max_inputs=50)
    assert len(ranked.ranks) == 50
    assert encoder.asked <= 50 + len(set(pairs.responses))


class Broken(Bag):
    def __init__(self, how) -> None:
        super().__init__()
        self.how = how

    def encode(self, sentences):
        return self.how(super().encode(sentences))


def poisoned(embeddings):
    embeddings[3, 0] = np.nan
    return embeddings


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (poisoned, r"response on test: .* of the encoder Broken .* sentence 3 .* not finite"),
        (lambda e: e[1:], r"\(\d+, 20\) for \d+ "),
        (lambda e: e[0], "shape"),
    ],
)
def test_an_encoder_that_misbehaves_is_named(how, message):
    with pytest.raises(InputError, match=message):
        rank_responses(Embedder(Broken(how)), made_up(120))


def test_names_of_tasks():
    assert resolve(["response", "stsb"]) == ["response/p@n", "stsb/angular", "stsb/cosine"]
    with pytest.raises(InputError, match="did you mean 'stsb'"):
        resolve(["stsbb"])
    [missing] = score_tasks(Bag(), ["response"], skip_missing=True).missing
    assert isinstance(missing, Missing)
    assert "`pairs`" in missing.reason
    with pytest.raises(InputError, match="`data`"):
        score_tasks(Bag(), ["stsb"])


class Known(Bag):
    def describe(self):
        return {"name": "known", "sha256": "1" * 64}


def test_beyond_the_cache_each_text_is_still_encoded_once(monkeypatch):
    encoder = Bag()
    embedder = Embedder(encoder)
    kept = embedder.embed(["a b", "c"], "t")
    monkeypatch.setattr(encoding, "_CACHED_VALUES", 0)
    found = embedder.embed(["d", "a b", "e", "d"], "t")
    assert encoder.asked == 4
    np.testing.assert_array_equal(found[1], kept[0])
    np.testing.assert_array_equal(found, Bag().encode(["d", "a b", "e", "d"]))


def nine_rows(subset):
    return [(f"{subset} w{n} w{n + 1}", f"w{n} w{n % 3}", n % 5) for n in range(9)]


class Fitted(Bag):
    def __init__(self, first, second) -> None:
        super().__init__()
        self._keys = pair_keys(first, second)

    def _fitted_pairs(self):
        return self._keys


def test_pairs_that_the_encoder_was_fitted_on_are_counted(tmp_path):
    write_year(tmp_path, nine_rows)
    first = ["W3, w0!", "msrpar w4 w5", "w5 w2", "elsewhere"]
    second = ["MSRvid w3 W4.", "w4 w1", "msrpar w5", "nowhere"]

    def note(encoder):
        [result] = score_tasks(encoder, ["sts12"], Context(tmp_path))
        return [one for one in result.notes if "adapted on" in one]

    [said] = note(Fitted(first, second))
    assert said.startswith("2 of 45 pairs are among those that the encoder was adapted on")
    assert note(Fitted(first[3:], second[3:]))[0].startswith("0 of 45 pairs")
    assert note(Bag()) == note(Fitted([], [])) == []


@pytest.mark.shared_data
def test_the_yearly_sets_share_pairs_with_the_training_pairs_of_the_benchmark(shared_data):
    train = read_stsb(shared_data, "train")
    encoder = Fitted(train.first, train.second)
    context = Context(shared_data, splits=["dev", "test"])
    tasks = ["sts12", "sts17", "stsb/angular"]
    shared = {}
    for result in score_tasks(encoder, tasks, context):
        [said] = [note for note in result.notes if "adapted on" in note]
        shared[f"{result.task} {result.split}"] = int(said.split(" of ")[0].replace(",", ""))
    assert shared == {
        "sts12/cosine test": 1_003,
        "sts17/cosine test": 0,
        "stsb/angular dev": 8,
        "stsb/angular test": 12,
    }


def test_embeddings_are_kept_on_disk_by_identity(tmp_path):
    write_year(tmp_path, nine_rows)
    context, cache = Context(tmp_path), tmp_path / "cache"
    first, again = Known(), Known()
    before = score_tasks(first, ["sts12"], context, cache=cache)
    after = score_tasks(again, ["sts12"], context, cache=cache)
    assert first.asked > 0
    assert again.asked == 0
    assert after[0].scores == before[0].scores
    assert (before[0].dtype, after[0].dtype) == ("float32", None)
    assert after[0].encoder["max_tokens"] == "not told"
    with pytest.raises(InputError, match=r"Bag.*sha256"):
        score_tasks(Bag(), ["sts12"], context, cache=cache)
    [file] = cache.iterdir()
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match=f"{file.name}.*remove"):
        score_tasks(Known(), ["sts12"], context, cache=cache)


def test_results_survive_json(tmp_path):
    place = tmp_path / "results.json"
    context = Context(pairs=lambda: made_up(120))
    results = write_results(place, score_tasks(Bag(), ["response"], context))
    assert read_results(place) == results
    [found] = read_results(place)
    assert (found.items.predictions <= 1).mean() == results[0].scores["P@1"]
    assert all((found.encoder, found.date, found.machine, found.versions))
    with pytest.raises(InputError, match="map is nan"):
        Result("t", "s", 1, "map", {"map": float("nan")}, {}, {}, 0, {})
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(InputError, match="not a results file"):
        read_results(tmp_path / "bad.json")


@pytest.mark.shared_data
def test_the_published_baseline_on_the_benchmark(shared_data):
    """Cosine of binary word vectors; .5253 with these tokens, told with the data."""
    results = list(score_tasks(BagOfWords(), ["stsb"], Context(shared_data, splits=["test"])))
    angular, cosine = results
    assert round(cosine.scores["pearson"], 4) == 0.5253
    assert (cosine.n, cosine.task, angular.task) == (1_379, "stsb/cosine", "stsb/angular")
    sizes = {name: group.n for name, group in cosine.groups.items()}
    assert sizes == {"main-captions": 625, "main-forums": 254, "main-news": 500}
    assert angular.scores["spearman"] == pytest.approx(cosine.scores["spearman"], abs=1e-3)
    assert cosine.data["form"] == "official"


@pytest.mark.shared_data
def test_zero_vectors_are_counted(shared_data):
    class Deaf(BagOfWords):
        def encode(self, sentences):
            out = super().encode(sentences)
            out[0] = 0
            return out

    [result, _] = score_tasks(Deaf(), ["stsb"], Context(shared_data, splits=["dev"]))
    assert any("pairs hold a zero vector" in note for note in result.notes)


def test_an_encoder_is_prepared_once_for_the_same_task_and_sentences():
    class Prepared(Bag):
        def __init__(self):
            self.calls = []

        def prepare(self, task, sentences):
            self.calls.append((task, list(sentences)))

    encoder = Prepared()
    embedder = Embedder(encoder)
    for task, sentences in (("a", ["x"]), ("a", ["x"]), ("b", ["x"]), ("a", ["x"]), ("a", ["y"])):
        embedder.prepare(task, sentences)
    assert encoder.calls == [("a", ["x"]), ("b", ["x"]), ("a", ["x"]), ("a", ["y"])]
