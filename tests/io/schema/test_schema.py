"""Tables of several kinds: told apart by a key, faults in plain words, unions that can grow."""

from typing import Any, Literal

import pytest
from pydantic import Field

from rejoinder.errors import ConfigError
from rejoinder.io.schema.base import Layers, Settings, tagged
from rejoinder.io.schema.faults import check, shown
from rejoinder.io.schema.nodes import Node, forget_schemas


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
    ("tree", "line"),
    [
        ({}, "shape is missing; allowed: a table"),
        ({"shape": {"kind": "cicle"}}, "did you mean 'circle'?"),
        ({"shape": {"kind": "square"}}, "shape.side is missing; allowed: a whole number from 1 to"),
        ({"shape": {"side": 3}}, 'no effect with shape.kind = "circle", only with "square"'),
        ({"shape": {"kind": "square", "side": "3"}}, 'shape.side is "3"; allowed: a whole number'),
        ({"shape": {}, "layers": [0]}, "layers.0 is 0; allowed: a whole number from 1 to 16,384"),
        ("text", 'the config is "text"; allowed: a table'),
    ],
)
def test_a_fault_names_the_key_the_value_and_what_is_allowed(tree: Any, line: str):
    with pytest.raises(ConfigError, match=r"^test: ") as caught:
        check(Drawing, tree, "test")
    assert line in str(caught.value)


def test_a_union_can_grow_and_its_schema_follows():
    class Picture(Settings):
        shape: tagged((Circle, Square), "kind")

    class Line(Settings):
        kind: Literal["line"] = "line"

    assert {*Node.of(Picture).keys["shape"].kinds} == {"circle", "square"}
    Picture.model_fields["shape"].annotation = tagged((Circle, Square, Line), "kind")
    Picture.model_rebuild(force=True)
    forget_schemas()
    assert {*Node.of(Picture).keys["shape"].kinds} == {"circle", "square", "line"}
    assert check(Picture, {"shape": {"kind": "line"}}, "test").shape == Line()


def test_a_long_value_is_cut():
    assert shown("x" * 100) == '"' + "x" * 59 + "…"
    assert shown(10**5000) == "a value too large to show"
