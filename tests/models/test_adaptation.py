"""The map applied to our encoder and to others, and its file."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rejoinder.datasets.semeval import GradedPairs, pair_keys
from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.measures import cosines
from rejoinder.models.adaptation import (
    FILE,
    Adaptation,
    Adapted,
    FitSettings,
    fit_adaptation,
    read_adaptation,
)
from rejoinder.protocols import (
    Describes,
    Encodes,
    EncodesResponses,
    Prepares,
    ScoresPairs,
    TellsFittedPairs,
)
from tiny_models import WORDS, dan_model

DIM = 5
TEXTS = [" ".join(WORDS[n : n + 1 + n % 4]) for n in range(40)] + [""]


class Plain:
    """Vectors of any length by the text's hash; only `encode`."""

    def encode(self, sentences):
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in sentences]
        rows = [np.random.default_rng(seed).standard_normal(DIM) * 7 for seed in seeds]
        return np.array(rows, np.float32) * np.array([[text != ""] for text in sentences])


class Preparing(Plain):
    prepared = ()

    def prepare(self, task, sentences):
        self.prepared = (task, len(sentences))


def matrix_of(dim=DIM, size=0.2):
    away = np.random.default_rng(1).standard_normal((dim, dim))
    return (np.eye(dim) + size * away).astype(np.float32)


def adaptation_of(matrix):
    facts = {"kind": "linear", "pairs": 3, "data": {"name": "stsb", "split": "train"}}
    return Adaptation(matrix, facts, pair_keys(["a", "b", "c"], ["d", "e", "f"]))


@pytest.fixture
def adaptation():
    return adaptation_of(matrix_of())


@pytest.fixture
def file(adaptation, tmp_path):
    adaptation.write(tmp_path / FILE)
    return tmp_path / FILE


def test_rows_are_those_of_the_definition(adaptation):
    rows = Plain().encode(TEXTS)
    found = Adapted(Plain(), adaptation).encode(TEXTS)
    assert found.dtype == np.float32
    for row, adapted, text in zip(rows.astype(float), found, TEXTS, strict=True):
        slow = [sum(w * u for w, u in zip(line, row, strict=True)) for line in adaptation.matrix]
        length = sum(value**2 for value in slow) ** 0.5
        expected = np.array(slow) / (length or 1)
        np.testing.assert_allclose(adapted, expected, atol=1e-6, err_msg=text)
    assert not found[-1].any()


def test_the_identity_changes_nothing():
    """Ours to the bit; anybody's, whose rows are of any length, by 1e-7 in the cosine."""
    same = adaptation_of(np.eye(DIM, dtype=np.float32))
    model = dan_model()
    ours = SentenceEncoder(model), SentenceEncoder(replace(model, adaptation=same))
    np.testing.assert_array_equal(ours[0].encode(TEXTS), ours[1].encode(TEXTS))
    np.testing.assert_array_equal(ours[0].encode_response(TEXTS), ours[1].encode_response(TEXTS))
    theirs = Plain().encode(TEXTS), Adapted(Plain(), same).encode(TEXTS)
    plain, adapted = (cosines(rows, np.roll(rows, 1, axis=0))[0] for rows in theirs)
    np.testing.assert_allclose(adapted, plain, rtol=0, atol=1e-7)


def test_an_adapted_encoder_has_the_methods_that_its_encoder_has(adaptation):
    protocols = (Encodes, Describes, TellsFittedPairs, Prepares, EncodesResponses, ScoresPairs)
    plain, preparing, ours = (
        Adapted(one, adaptation) for one in (Plain(), Preparing(), SentenceEncoder(dan_model()))
    )
    assert [isinstance(plain, one) for one in protocols] == [True] * 3 + [False] * 3
    assert [isinstance(preparing, one) for one in protocols] == [True] * 4 + [False] * 2
    assert [isinstance(ours, one) for one in protocols] == [True] * 3 + [False, True, False]
    preparing.prepare("sts12", ["a", "b"])
    assert preparing._encoder.prepared == ("sts12", 2)
    assert plain.describe()["name"] == "Plain"
    assert plain.describe()["adaptation"]["sha256"] == adaptation.sha256
    assert ours.describe()["name"] == "tiny"


def test_an_adapted_model_is_an_adapted_encoder(adaptation):
    model = dan_model()
    ours = SentenceEncoder(replace(model, adaptation=adaptation))
    wrapped = Adapted(SentenceEncoder(model), adaptation)
    np.testing.assert_allclose(ours.encode(TEXTS), wrapped.encode(TEXTS), atol=1e-6)
    assert np.abs(ours.encode(TEXTS) - SentenceEncoder(model).encode(TEXTS)).max() > 0.05
    np.testing.assert_array_equal(ours.encode_response(TEXTS), wrapped.encode_response(TEXTS))
    np.testing.assert_array_equal(ours._fitted_pairs(), wrapped._fitted_pairs())
    assert len(SentenceEncoder(model)._fitted_pairs()) == 0
    assert ours.describe()["adaptation"] == wrapped.describe()["adaptation"]
    assert repr(ours) == "SentenceEncoder('tiny', dan, 5 dimensions, adapted on stsb train)"
    lengths = np.linalg.norm(ours.encode(TEXTS, normalize=False), axis=1)
    assert np.abs(lengths[:-1] - 1).max() > 0.1
    single = ours.encode("hello you")
    np.testing.assert_allclose(single, ours.encode(["hello you", "cat"])[0], atol=1e-6)


def test_responses_rank_as_without_the_adaptation(adaptation):
    model = dan_model()
    plain = SentenceEncoder(model)
    for adapted in (
        SentenceEncoder(replace(model, adaptation=adaptation)),
        Adapted(plain, adaptation),
    ):
        before = plain.encode(TEXTS) @ plain.encode_response(TEXTS).T
        after = adapted.encode(TEXTS) @ adapted.encode_response(TEXTS).T
        np.testing.assert_array_equal(np.argsort(-before), np.argsort(-after))
        factors = after[:-1, :-1] / before[:-1, :-1]  # 1 / |W u|, the same for all responses
        np.testing.assert_allclose(factors, factors[:, :1].repeat(len(TEXTS) - 1, 1), rtol=1e-4)


def test_rank_gives_the_same_scores_to_the_bit(adaptation):
    model = dan_model()
    plain, adapted = (SentenceEncoder(replace(model, adaptation=a)) for a in (None, adaptation))
    for message in TEXTS:
        assert adapted.rank(message, TEXTS) == plain.rank(message, TEXTS)


def test_another_width_is_named(adaptation):
    said = "fitted for 5 dimensions; .* have 7"
    wide = dan_model(layers=(7,), head=(7,))
    with pytest.raises(ModelError, match=said):
        Adapted(SentenceEncoder(wide), adaptation)

    class Wide(Plain):
        def encode(self, sentences):
            return np.ones((len(sentences), 7), np.float32)

    with pytest.raises(ModelError, match=said):
        Adapted(Wide(), adaptation).encode(["a"])


def test_what_can_not_be_adapted_is_named(adaptation):
    class Scoring(Plain):
        def similarity_pairs(self, first, second):
            return np.ones(len(first))

    with pytest.raises(ModelError, match=r"scores pairs"):
        Adapted(Scoring(), adaptation)
    with pytest.raises(ModelError, match="tiny is adapted already"):
        Adapted(SentenceEncoder(replace(dan_model(), adaptation=adaptation)), adaptation)
    with pytest.raises(ModelError, match="adapted already"):
        Adapted(Adapted(Plain(), adaptation), adaptation)


def test_a_value_that_is_not_finite_is_left_for_the_judge(adaptation):
    class Broken(Plain):
        def encode(self, sentences):
            rows = super().encode(sentences)
            rows[1, 0], rows[2, 0] = np.nan, np.inf
            return rows

    finite = np.isfinite(Adapted(Broken(), adaptation).encode(TEXTS[:4])).all(axis=1)
    assert finite.tolist() == [True, False, False, True]


def test_a_map_that_can_not_be_taken_back_is_refused_for_responses():
    flat = np.eye(DIM, dtype=np.float32)
    flat[0] = 0
    adapted = Adapted(SentenceEncoder(dan_model()), adaptation_of(flat))
    adapted.encode(["hello"])
    with pytest.raises(ModelError, match="can't be inverted"):
        adapted.encode_response(["hello"])


def test_what_is_written_is_read_back(adaptation, file, tmp_path):
    for place in (file, tmp_path):
        again = read_adaptation(place)
        np.testing.assert_array_equal(again.matrix, adaptation.matrix)
        np.testing.assert_array_equal(again.fitted_pairs, adaptation.fitted_pairs)
        assert again.describe() == adaptation.describe()
    again.write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def edited(matrix=None, drop=None, **changes):
    """Writes the file anew: with another matrix, without a tensor or fact, with other facts."""

    def edit(file):
        tensors = load_file(file)
        said = {"format_version": 1, "facts": {}, "sha256": adaptation_of(matrix_of()).sha256}
        said.update(changes)
        if matrix is not None:
            tensors["matrix"] = matrix
        for table in (tensors, said):
            table.pop(drop, None)
        save_file(tensors, file, {"adaptation": json.dumps(said)})

    return edit


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-3]), "damaged"),
        (lambda file: file.write_bytes(b"what is this"), "damaged"),
        (lambda file: save_file({"matrix": matrix_of()}, file), "damaged"),
        (edited(drop="fitted_pairs"), "damaged"),
        (edited(drop="facts"), "damaged"),
        (edited(facts=[]), "damaged"),
        (edited(format_version=2), "version 1.* 2"),
        (edited(matrix_of(4)), "SHA-256"),
        (edited(matrix_of()[:4]), "square"),
        (edited(matrix_of() * np.inf), "not finite"),
        (edited(np.eye(5)), "of float64; it must be float32"),
    ],
)
def test_damage_is_named(file, damage, said):
    damage(file)
    with pytest.raises(ModelError, match=said) as error:
        read_adaptation(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def pairs_of(split, count, seed):
    draw = np.random.default_rng(seed)
    first = [" ".join(draw.choice(WORDS[:20], 4)) for _ in range(count)]
    second = [" ".join([*text.split()[: n % 5], *draw.choice(WORDS[:20], 2)])
              for n, text in enumerate(first)]  # fmt: skip
    gold = np.array([n % 5 + draw.uniform(0, 1) for n in range(count)])
    return GradedPairs(split, "official", first, second, gold, [], f"{seed}" * 64, [], [])


def test_adapt_says_what_it_was_fitted_on():
    train, dev = pairs_of("train", 400, 1), pairs_of("dev", 200, 2)
    settings = FitSettings(learning_rate=3e-3, batch_size=64)
    found = fit_adaptation(SentenceEncoder(dan_model()), train, dev, settings)
    facts = found.describe()
    assert facts["dev_pearson_after"] > facts["dev_pearson_before"] + 0.01
    assert facts["data"] == {
        "name": "stsb",
        "split": "train",
        "form": "official",
        "sha256": "1" * 64,
        "dev_sha256": "2" * 64,
    }
    assert facts["encoder"]["name"] == "tiny"
    assert (facts["pairs"], facts["dim"], facts["settings"]["learning_rate"]) == (400, 5, 3e-3)
    assert set(pair_keys(train.second, train.first)) == set(found.fitted_pairs.tolist())
    assert json.loads(json.dumps(facts)) == facts
    assert "on stsb train, 400 pairs; Pearson on dev 0." in found.summary()
    again = fit_adaptation(SentenceEncoder(dan_model()), train, dev, settings)
    np.testing.assert_array_equal(again.matrix, found.matrix)


def test_adapt_prepares_encoders_and_checks_them():
    train, dev = pairs_of("train", 40, 1), pairs_of("dev", 40, 2)
    encoder = Preparing()
    fit_adaptation(encoder, train, dev, FitSettings(max_epochs=1))
    assert encoder.prepared[0] == "stsb"

    class Cut(Plain):
        def encode(self, sentences):
            return super().encode(sentences)[1:]

    with pytest.raises(ModelError, match=r"\(\d+, 5\).*\d+"):
        fit_adaptation(Cut(), train, dev)

    class Poisoned(Plain):
        def encode(self, sentences):
            return super().encode(sentences) * np.nan

    with pytest.raises(InputError, match=r"'.*' .*finite"):
        fit_adaptation(Poisoned(), train, dev)


@pytest.mark.parametrize("encoder", [5, None, "model/", Plain, lambda texts: texts])
def test_what_is_no_encoder_is_named(encoder, adaptation):
    with pytest.raises(InputError, match=r"encode.list of strings"):
        Adapted(encoder, adaptation)
    with pytest.raises(InputError, match=r"encode.list of strings"):
        fit_adaptation(encoder, None, None)


def test_what_is_no_adaptation_is_named(tmp_path):
    with pytest.raises(InputError, match=r"adaptation is needed.*str"):
        Adapted(Plain(), "adapted/")
    with pytest.raises(InputError, match=r"path .*got 5"):
        read_adaptation(5)
    with pytest.raises(ModelError, match="is missing"):
        read_adaptation(str(tmp_path))
    with pytest.raises(InputError, match=r"train .*GradedPairs.*list"):
        fit_adaptation(Plain(), [("a", "b", 3.0)], None)


@pytest.mark.parametrize(
    ("matrix", "facts", "said"),
    [
        ([[1.0]], {}, "of list; it must be float32"),
        (np.eye(2), {}, "of float64; it must be float32"),
        (np.eye(2, dtype=np.float32), None, "facts .*`object`"),
        (np.eye(2, dtype=np.float32), {"pairs": "7"}, "facts .* got `str` - at `..pairs`"),
        (np.eye(2, dtype=np.float32), {"data": ["stsb"]}, "facts .* got `array` - at `..data`"),
        (
            np.eye(2, dtype=np.float32),
            {"dev_pearson_before": "high"},
            "facts .* got `str` - at `..dev_pearson_before`",
        ),
    ],
)
def test_what_an_adaptation_can_not_be_made_of_is_named(matrix, facts, said):
    with pytest.raises(ModelError, match=said):
        Adaptation(matrix, facts)
