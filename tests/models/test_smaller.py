"""Smaller models: what is kept, what is left out, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rejoinder.encoders import BIGRAM_ROWS
from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.config import read_config
from rejoinder.models.folder import read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.text.vocabulary import word_buckets
from runs import same_files
from tiny_models import WORDS, bilstm_model, dan_model, head_table, transformer_model

TABLE, SCALES = "encoder.table.weight", "encoder.table.scales"
NAMES = [f"name{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
KNOWN = ["how old are you", "what is your age", "how are you"]
LINEAR = {"layers": (), "head": (4, 6), "buckets": 0}


def made(model, *, any_dim=False, **options):
    return smaller(model, ExportOptions(**options), any_dim=any_dim)


def nested(model, *dims):
    return replace(model, training={"config": {"training": {"nested_dims": list(dims)}}})


def test_int8_is_written_as_version_3_and_all_else_as_version_2(tmp_path):
    model = made(dan_model(), dtype="int8")
    write_model(tmp_path / "model", model)
    config = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert config["format_version"] == 3
    assert config["export"]["dtype"] == "int8"
    again = read_model(tmp_path / "model")
    assert (again.weight_type, again.export) == ("int8", model.export)
    assert again.describe()["export"] == model.export
    assert again.tensors[SCALES].dtype == np.float32
    assert again.tensors["heads.responses.layers.0.weight"].dtype == np.float16
    assert again.tensors["heads.responses.layers.0.bias"].dtype == np.float32
    write_model(tmp_path / "plain", made(again, dtype="float32"))
    config = json.loads((tmp_path / "plain" / "config.json").read_text("utf-8"))
    assert config["format_version"] == 2
    assert config["export"]["from"]["export"] == model.export
    assert "| exported from | tiny, SHA-256 " in (tmp_path / "plain/MODEL_CARD.md").read_text()


def test_the_same_options_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_model(tmp_path / name, made(dan_model(), dtype="int8", max_words=20))
    assert same_files(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("buckets", [0, 64])
@pytest.mark.parametrize("unknown_buckets", [0, 8])
def test_texts_of_kept_words_keep_their_embeddings(buckets, unknown_buckets):
    model = dan_model(buckets=buckets, unknown_buckets=unknown_buckets)
    few = made(model, max_words=10)
    assert len(few.features.vocabulary) == 10
    assert len(few.tensors[TABLE]) == len(model.tensors[TABLE]) - len(WORDS) + 10
    one, other = SentenceEncoder(model), SentenceEncoder(few)
    np.testing.assert_allclose(other.encode(KNOWN), one.encode(KNOWN), atol=1e-6)
    assert other.unknown("twenty").tolist() == [True]
    assert other.encode("twenty").any() == bool(unknown_buckets)
    assert BIGRAM_ROWS not in few.tensors or few.tensors[BIGRAM_ROWS].max() < len(
        few.tensors[TABLE]
    )


@pytest.mark.parametrize("buckets", [0, 64])
def test_the_first_buckets_are_kept(buckets):
    model = dan_model(buckets=buckets, unknown_buckets=12)
    few = made(model, unknown_buckets=4)
    before, after = model.tensors[TABLE], few.tensors[TABLE]
    known = len(WORDS)
    np.testing.assert_array_equal(after[: known + 4], before[: known + 4])
    np.testing.assert_array_equal(after[known + 4 :], before[known + 12 :])
    one, other = SentenceEncoder(model), SentenceEncoder(few)
    np.testing.assert_allclose(other.encode(KNOWN), one.encode(KNOWN), atol=1e-6)
    word = next(word for word in NAMES if word_buckets([word], 12)[0] < 4)
    np.testing.assert_allclose(other.encode(word), one.encode(word), atol=1e-6)
    none = SentenceEncoder(made(model, unknown_buckets=0))
    assert none.unknown(word).tolist() == [True]


def test_unknown_words_are_read_by_their_letters(tmp_path):
    model = dan_model(**LINEAR, unknown_buckets=8)
    write_model(tmp_path / "letters", made(model, letter_buckets=100, dtype="int8"))
    encoder = SentenceEncoder.load(tmp_path / "letters")
    assert read_config(tmp_path / "letters")["export"]["letter_buckets"] == 100
    forms = encoder.encode(["pilzkunde", "pilzkunden", "wasserrad"], normalize=True)
    assert forms[0] @ forms[1] > 0.5 > forms[0] @ forms[2]
    assert "100 buckets of letters" in (tmp_path / "letters/MODEL_CARD.md").read_text()
    fewer = SentenceEncoder(made(read_model(tmp_path / "letters"), max_words=10))
    np.testing.assert_allclose(fewer.encode("pilzkunde"), encoder.encode("pilzkunde"), atol=1e-5)
    none = made(read_model(tmp_path / "letters"), letter_buckets=0)
    assert len(none.tensors[TABLE]) == len(WORDS)
    assert not SentenceEncoder(none).encode("pilzkunde").any()


@pytest.mark.parametrize("model", [dan_model(unknown_buckets=8), dan_model(), bilstm_model()])
def test_misspelt_words_are_read_as_known_ones(model, tmp_path):
    spelt = made(model, spelling=True)
    write_model(tmp_path / "spelt", spelt)
    one, other = SentenceEncoder(model), SentenceEncoder.load(tmp_path / "spelt")
    np.testing.assert_allclose(other.encode("waht is"), one.encode("what is"), atol=1e-6)
    np.testing.assert_allclose(other.encode(KNOWN), one.encode(KNOWN), atol=1e-6)
    assert read_config(tmp_path / "spelt")["export"]["spelling"] is True
    card = (tmp_path / "spelt/MODEL_CARD.md").read_text()
    assert "badly misspelt words" in card
    assert "misspelt words read as known ones" in card
    again = SentenceEncoder(made(spelt, spelling=False))
    np.testing.assert_allclose(again.encode("waht is"), one.encode("waht is"), atol=1e-6)


@pytest.mark.parametrize("k", [0.5, 3.0])
def test_rows_longer_than_the_median_are_shortened(k):
    model = dan_model(**LINEAR)
    model.tensors[TABLE][5] = 0
    before = np.linalg.norm(model.tensors[TABLE], axis=1)
    few = made(model, saturation=k)
    after = np.linalg.norm(few.tensors[TABLE], axis=1)
    n = before / np.median(before[before > 0])
    np.testing.assert_allclose(after / np.median(before[before > 0]), (1 + k) * n / (n + k), 1e-5)
    assert (after[n > 1.01] < before[n > 1.01]).all()
    assert few.export["saturation"] == k
    one, other = (SentenceEncoder(each).encode("old", normalize=True) for each in (model, few))
    np.testing.assert_allclose(other, one, atol=1e-6)  # a word alone keeps its direction


def test_a_shortened_table_keeps_its_whole_numbers(tmp_path):
    plain = made(dan_model(**LINEAR), dtype="int8")
    few = made(plain, saturation=2.0)
    write_model(tmp_path / "few", few)
    assert "long rows shortened with K = 2" in (tmp_path / "few/MODEL_CARD.md").read_text()
    np.testing.assert_array_equal(few.tensors[TABLE], plain.tensors[TABLE])
    assert (few.tensors[SCALES] != plain.tensors[SCALES]).mean() > 0.9


def test_a_model_of_nested_dimensions_keeps_both_sides():
    model = nested(dan_model(**LINEAR, head_residual=True), 3, 4)
    few = made(model, dim=3)
    assert (few.dim, few.export["dropped"]) == (3, [])
    assert few.heads["responses"]["layers"] == [4, 3]
    whole = SentenceEncoder(model).encode(KNOWN, normalize=False)[:, :3]
    np.testing.assert_allclose(
        SentenceEncoder(few).encode(KNOWN, normalize=False), whole, atol=1e-6
    )
    units = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    t = {name: model.tensors[f"heads.responses.layers.{name}"] for name in
         ("0.weight", "0.bias", "1.weight", "1.bias")}  # fmt: skip
    hidden = np.pad(units, ((0, 0), (0, 3))) @ t["0.weight"].T + t["0.bias"]
    expected = (np.tanh(hidden) @ t["1.weight"].T + t["1.bias"])[:, :3] + units
    found = SentenceEncoder(few).encode_response(KNOWN, normalize=False)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_any_dim_leaves_out_what_reads_more(tmp_path):
    model = dan_model(**LINEAR)
    model.heads["entailment"] = head_table([3], inputs=4)
    model.tensors["heads.entailment.layers.0.weight"] = np.ones((3, 24), np.float32)
    model.tensors["heads.entailment.layers.0.bias"] = np.zeros(3, np.float32)
    write_model(tmp_path / "model", made(model, dim=3, any_dim=True))
    few = read_model(tmp_path / "model")
    assert few.heads == {}
    assert few.export["dropped"] == ["entailment", "responses"]
    encoder = SentenceEncoder(few)
    assert encoder.encode(KNOWN).shape == (3, 3)
    assert not encoder.entails
    for call in (
        lambda: encoder.rank("hello", ["you"]),
        lambda: encoder.encode_response("hello"),
        lambda: encoder.entail(["hello"], ["you"]),
    ):
        with pytest.raises(ModelError, match=r"tiny .*`rejoinder export` .*3"):
            call()
    again = made(few, dtype="int8")
    assert again.export["dropped"] == ["entailment", "responses"]


def test_a_response_side_without_layers_is_cut_with_the_embedding():
    few = made(dan_model(layers=(), head=(), buckets=0), dim=3, any_dim=True)
    encoder = SentenceEncoder(few)
    responses, messages = encoder.encode_response(KNOWN), encoder.encode(KNOWN)
    np.testing.assert_allclose(responses, messages, atol=1e-6)


def test_an_adaptation_goes_along():
    model = replace(dan_model(), adaptation=Adaptation(np.eye(5, dtype=np.float32)[::-1], {}))
    plain, few = SentenceEncoder(model), SentenceEncoder(made(model, dtype="int8"))
    np.testing.assert_allclose(few.encode(KNOWN), plain.encode(KNOWN), atol=0.05)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (dan_model(), {}, "no option is given"),
        (dan_model(), {"dtype": "int4"}, "'int4'.*float32, float16, int8"),
        (dan_model(head=(), layers=(), dtype=np.float16), {"dtype": "float16"}, "already has"),
        (dan_model(), {"max_words": len(WORDS)}, r"max_words .*1 to 5\d"),
        (dan_model(), {"max_words": 0}, "max_words must be from 1 to"),
        (dan_model(), {"unknown_buckets": 0}, r"unknown_buckets .*\b0\b.*tiny"),
        (dan_model(unknown_buckets=9), {"unknown_buckets": 9}, "is 9; tiny: from 0 to 8"),
        (dan_model(unknown_buckets=9), {"unknown_buckets": -1}, "is -1; tiny: from 0 to 8"),
        (dan_model(), {"dim": 3}, "dim .*dense layers"),
        (bilstm_model(), {"dim": 3}, "by a bilstm; only a DAN"),
        (transformer_model(), {"dim": 3}, "dim .*transformer"),
        (transformer_model(), {"max_words": 9}, r"max_words .*words"),
        (transformer_model(), {"spelling": True}, "reads subwords"),
        (transformer_model(), {"letter_buckets": 9}, "for models of words"),
        (dan_model(buckets=64), {"letter_buckets": 9}, "without bigrams"),
        (dan_model(**LINEAR), {"letter_buckets": 0}, "must be 1 or more; got 0"),
        (
            dan_model(**LINEAR, unknown_buckets=9),
            {"letter_buckets": 9, "unknown_buckets": 3},
            "replaces unknown_buckets",
        ),
        (dan_model(), {"spelling": False}, "already does not read misspelt words as known ones"),
        (transformer_model(), {"dtype": "int8"}, "int8 .*float16"),
        (dan_model(**LINEAR), {"saturation": 0.0}, "must be above 0; got 0"),
        (dan_model(**LINEAR), {"saturation": float("nan")}, "must be above 0; got nan"),
        (dan_model(**LINEAR), {"saturation": float("inf")}, "must be above 0; got inf"),
        (dan_model(), {"saturation": 3.0}, "saturation .*tiny.* has other layers"),
        (bilstm_model(), {"saturation": 3.0}, "saturation .*tiny.* has other layers"),
        (
            replace(dan_model(**LINEAR), adaptation=Adaptation(np.eye(6, dtype=np.float32), {})),
            {"saturation": 3.0},
            "an adaptation",
        ),
        (dan_model(**LINEAR), {"dim": 6}, "dim must be from 1 to 5; got 6"),
        (dan_model(**LINEAR), {"dim": 3}, "6.*nested_dims.*`any_dim=True`"),
        (nested(dan_model(**LINEAR), 2, 4), {"dim": 3}, "was trained for 2, 4; its first 3"),
        (
            replace(dan_model(**LINEAR), adaptation=Adaptation(np.eye(6, dtype=np.float32), {})),
            {"dim": 3},
            "the adaptation of tiny reads all 6 dimensions",
        ),
    ],
)  # fmt: skip
def test_what_changes_nothing_or_does_not_fit_is_refused(model, options, said):
    with pytest.raises(InputError, match=said):
        made(model, **options)


def test_a_weight_beyond_float16_is_named():
    model = dan_model()
    model.tensors[TABLE][3, 2] = 1e6
    with pytest.raises(ModelError, match=r"table\.weight .*1e\+06.* 65,504"):
        made(model, dtype="float16")
    found = SentenceEncoder(made(model, dtype="int8")).encode(KNOWN)
    assert np.isfinite(found).all()
