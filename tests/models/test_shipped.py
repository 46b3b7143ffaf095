"""The models that come with the package: whatever folders lie there, and what they state."""

from pathlib import Path

import pytest

from rejoinder.errors import ModelError
from rejoinder.models.card import licence_of, terms_of, training_rows
from rejoinder.models.config import read_config
from rejoinder.models.find import FOLDER, shipped_model, shipped_models
from rejoinder.models.folder import folder_bytes, read_model, write_model
from tiny_models import dan_model

INSTALLED = shipped_models()
MODELS = Path(__file__).parents[2] / "models"
"""Models that are separate packages."""


@pytest.mark.parametrize("name", sorted(INSTALLED) or [pytest.param("", marks=pytest.mark.skip(
    reason="this checkout has no models"))])  # fmt: skip
def test_each_model_that_ships_is_whole_and_has_its_own_name(name):
    assert read_model(INSTALLED[name]).name == name


def test_a_folder_is_a_model_and_nothing_else_is_registered(shipped):
    (shipped / "notes").mkdir()
    (shipped / "README.md").write_text("no model")
    assert list(shipped_models()) == ["rejoinder-base", "rejoinder-small"]
    assert shipped_model() == shipped / "rejoinder-base"
    (shipped / "rejoinder-small").rename(shipped / "another")
    assert shipped_model("another") == shipped / "another"
    with pytest.raises(ModelError, match=r"'rejoinder-small' .*another, rejoinder-base"):
        shipped_model("rejoinder-small")


@pytest.mark.parametrize("name", ["rejoinder-base", "rejoinder-small"])
def test_the_package_ships_small_models_that_everyone_may_use(name):
    folder = FOLDER / name
    assert folder_bytes(folder) <= 30_000_000
    rows = training_rows(read_config(folder)["training"])
    assert rows
    assert not terms_of(rows).closed
    assert licence_of(folder) == "cc-by-sa-4.0"


@pytest.mark.parametrize(
    ("name", "licence", "most_bytes"),
    [
        ("rejoinder-research", "non-commercial-research", 30_000_000),
        ("rejoinder-multi", "cc-by-sa-4.0", 60_000_000),
    ],
)
def test_models_in_packages_of_their_own(name, licence, most_bytes):
    [folder] = (config.parent for config in (MODELS / name).glob("src/*/*/config.json"))
    assert read_model(folder).name == folder.name == name
    assert folder_bytes(folder) <= most_bytes
    assert licence_of(folder) == licence


def test_another_package_adds_its_models(shipped, tmp_path, monkeypatch):
    facts = tmp_path / "others-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[rejoinder.models]\nany = some_models\n")
    package = tmp_path / "some_models"
    for name in ("another", "rejoinder-small"):
        write_model(package / name, dan_model(width=5))
    (package / "__init__.py").write_text("")
    with pytest.raises(ModelError, match="'another'"):
        shipped_model("another")
    monkeypatch.syspath_prepend(tmp_path)
    assert shipped_model("another") == package / "another"
    assert shipped_model("rejoinder-small") == shipped / "rejoinder-small"
    assert list(shipped_models()) == ["another", "rejoinder-base", "rejoinder-small"]


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: cc-by-4.0\n---\n# A model", "cc-by-4.0"),
        ("---\nlicense: other\nlicense_name: 'Research only'\n---\n", "Research only"),
        ('---\nlanguage:\n- en\nlicense: "mit"  \n---\n', "mit"),
        ("---\nmodel:\n  license: mit\n---\n", None),
        ("# A model\n\nlicense: mit\n", None),
        ("---\nlicense:\n---\nlicense: mit", None),
        ("", None),
    ],
)
def test_the_licence_is_that_of_the_front_matter(tmp_path, card, licence):
    assert licence_of(tmp_path) is None
    (tmp_path / "MODEL_CARD.md").write_text(card, "utf-8")
    assert licence_of(tmp_path) == licence
