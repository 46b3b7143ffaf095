"""The models that come with the package: whatever folders lie there, and what they state."""

import pytest

from rejoinder.errors import ModelError
from rejoinder.models.folder import read_model
from rejoinder.models.shipped import shipped_model, shipped_models
from rejoinder.models.terms import licence_of

INSTALLED = shipped_models()


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
