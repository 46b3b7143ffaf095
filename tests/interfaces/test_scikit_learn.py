"""`SentenceEmbedder` in scikit-learn: its own checks, pipelines, copies, names of columns."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import rejoinder
from rejoinder import SentenceEmbedder, SentenceEncoder
from rejoinder.errors import InputError, ModelError

TEXTS = [
    "How old are you?", "What is your age?", "When were you born?", "Tell me your age.",
    "Where do you live?", "Which city is your home?", "Where is your flat?", "Are you from Oslo?",
]  # fmt: skip
TOPICS = ["age"] * 4 + ["home"] * 4
SMALL = "rejoinder-small"


@pytest.fixture(scope="module")
def fitted():
    return SentenceEmbedder(SMALL, threads=1).fit(TEXTS)


# all that scikit-learn has for transformers, but for those that give it tables of numbers
CHECKS = (
    "estimator_cloneable", "estimator_repr", "estimator_tags_renamed", "get_params_invariance",
    "do_not_raise_errors_in_init_or_set_params", "mixin_order", "no_attributes_set_in_init",
    "parameters_default_constructible", "set_params", "valid_tag_types",
)  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_scikit_learn_pass(check):
    getattr(estimator_checks, f"check_{check}")("SentenceEmbedder", SentenceEmbedder(SMALL))


def test_embeddings_are_those_of_the_encoder(fitted):
    expected = SentenceEncoder.load(SMALL).encode(TEXTS)
    for texts in (TEXTS, np.array(TEXTS), pd.Series(TEXTS), pl.Series(TEXTS), iter(TEXTS)):
        assert (fitted.transform(texts) == expected).all()
    assert (SentenceEmbedder(SMALL).fit_transform(TEXTS, TOPICS) == expected).all()
    cut = SentenceEmbedder(SMALL, truncate_dim=16, normalize=False).fit_transform(TEXTS)
    raw = SentenceEncoder.load(SMALL).encode(TEXTS, normalize=False)[:, :16]
    np.testing.assert_allclose(cut, raw, atol=1e-6)


def test_a_pipeline_classifies_sentences():
    pipeline = make_pipeline(SentenceEmbedder(SMALL), LogisticRegression(C=100))
    pipeline.fit(TEXTS, TOPICS)
    told = pipeline.predict(["How many years old is she?", "What town do they live in?"])
    assert told.tolist() == ["age", "home"]


def test_parameters_are_searched_and_copied(fitted):
    grid = {"sentenceembedder__truncate_dim": [8, 64], "sentenceembedder__model": [SMALL]}
    search = GridSearchCV(make_pipeline(SentenceEmbedder(), LogisticRegression()), grid, cv=2)
    assert search.fit(TEXTS, TOPICS).best_params_["sentenceembedder__model"] == SMALL
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(TEXTS)


def test_a_fitted_one_is_sent_to_another_process_without_its_model(fitted):
    sent = pickle.dumps(fitted)
    assert len(sent) < 2_000
    again = pickle.loads(sent)  # noqa: S301 -- its own bytes
    assert (again.transform(TEXTS) == fitted.transform(TEXTS)).all()


def test_columns_have_names_and_frames_are_given_out(fitted):
    names = fitted.get_feature_names_out()
    assert (names[0], len(names)) == ("sentenceembedder0", fitted.transform([]).shape[1])
    for kind, module in (("pandas", pd), ("polars", pl)):
        frame = clone(fitted).set_output(transform=kind).fit(TEXTS).transform(TEXTS)
        assert isinstance(frame, module.DataFrame)
        assert list(frame.columns) == list(names)
        assert (frame.to_numpy() == fitted.transform(TEXTS)).all()


def test_it_reads_a_column_of_a_table():
    table = pd.DataFrame({"text": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = ColumnTransformer([("text", SentenceEmbedder(SMALL), "text")], remainder="drop")
    assert columns.fit_transform(table).shape == (len(TEXTS), 256)
    for wrong in (table, table[["text"]], pl.DataFrame({"text": TEXTS}), np.array([TEXTS])):
        with pytest.raises(InputError, match=r"one column is needed, such as X\['te"):
            SentenceEmbedder(SMALL).fit(wrong)


def test_what_is_wrong_is_said(fitted):
    with pytest.raises(InputError, match="X is one string"):
        fitted.transform("How old are you?")
    with pytest.raises(InputError, match="sentence 1 is a NoneType"):
        fitted.transform(["a", None])
    with pytest.raises(InputError, match="truncate_dim must be from 1 to 256"):
        SentenceEmbedder(SMALL, truncate_dim=257).fit(TEXTS)
    with pytest.raises(ModelError, match="no model named 'rejoinder-huge'"):
        SentenceEmbedder("rejoinder-huge").fit(TEXTS)


def test_without_scikit_learn_the_extra_is_named():
    script = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "hidden = lambda name, *rest: None if name == 'sklearn' else find(name, *rest)\n"
        "PathFinder.find_spec = hidden\n"
        "import rejoinder\n"
        "try:\n"
        "    rejoinder.SentenceEmbedder\n"
        "except rejoinder.MissingExtraError as error:\n"
        "    print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(Path(rejoinder.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "scikit-learn is not installed: pip install 'rejoinder[eval]'" in shown.stdout
