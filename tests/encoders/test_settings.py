"""Tables of several kinds: told apart by a key, and each fault is named."""

from typing import Any, Literal

import pytest
from pydantic import Field

from rejoinder.encoders.settings import Layers, Settings, check, shown, tagged
from rejoinder.errors import ConfigError


class Circle(Settings):
    kind: Literal["circle"] = "circle"
    radius: float = Field(default=1.0, gt=0)


class Square(Settings):
    kind: Literal["square"] = "square"
    side: int = Field(ge=1, le=9)


class Drawing(Settings):
    shape: tagged((Circle, Square), "kind", default="circle")
    layers: Layers = ()


def test_a_table_without_a_tag_is_of_the_default_kind():
    drawing = check(Drawing, {"shape": {"radius": 2.0}, "layers": [3, 4]}, "test")
    assert drawing.shape == Circle(radius=2.0)
    assert drawing.layers == (3, 4)


@pytest.mark.parametrize(
    ("tree", "facts"),
    [
        ({}, ["shape", "missing"]),
        ({"shape": {"kind": "cicle"}}, ["shape.kind", "circle", '"cicle"']),
        ({"shape": {"kind": "square"}}, ["shape.side", "missing"]),
        ({"shape": {"side": 3}}, ["shape.side", "no effect", "'circle'"]),
        ({"shape": {"radios": 3}}, ["'shape.radios'", "'radius'"]),
        ({"shape": {"kind": "square", "side": "3"}}, ["shape.side", "integer", '"3"']),
        ({"shape": {}, "layers": [0]}, ["layers.0", "1", "0"]),
        ("text", ["the config", "dictionary", '"text"']),
    ],
)
def test_a_fault_names_the_key_the_value_and_what_is_allowed(tree: Any, facts: list[str]):
    with pytest.raises(ConfigError, match=r"^test: ") as caught:
        check(Drawing, tree, "test")
    assert [fact for fact in facts if fact not in str(caught.value)] == []


def test_several_faults_are_named_together():
    with pytest.raises(ConfigError, match=r"(?s)test.*2 faults.*layers\.0.*layers\.1"):
        check(Drawing, {"shape": {}, "layers": [0, 20_000]}, "test")


def test_a_long_value_is_cut():
    assert shown("x" * 100) == '"' + "x" * 59 + "…"
    assert shown(10**5000) == "a value too large to show"
