"""Fields of JSON lines as columns, and the line at fault where one is."""

from pathlib import Path

import pytest

from rejoinder.errors import InputError
from rejoinder.io.formats.json_lines import (
    first_object,
    is_json_lines,
    json_rows,
    json_texts,
    line_of,
    matching_rows,
)

PATH = Path("a.jsonl")
ROWS = b"""\xef\xbb\xbf
{"a": "x", "b": ["y", "z"], "n": 1}

{"a": "\\ud800", "b": [], "n": true, "more": NaN}
"""


def test_fields_become_columns():
    frame = json_rows(ROWS, PATH, {"a": "text", "b": "texts", "n": "label"})
    assert frame.rows() == [("x", ["y", "z"], "1"), ("\ufffd", [], "true")]
    assert is_json_lines(ROWS)
    assert not is_json_lines(b"a,b")
    assert first_object(ROWS, PATH)["n"] == 1
    assert [line_of(ROWS, row) for row in (0, 1)] == [2, 4]


def test_a_field_may_be_missing_from_all_lines_only():
    fields = {"a": "text", "c": "text"}
    assert json_rows(ROWS, PATH, fields, "c")["c"].to_list() == [None, None]
    mixed = b'{"a": "x", "c": "y"}\n{"a": "x"}\n'
    with pytest.raises(InputError, match=r"a\.jsonl line 2: no 'c'; a string is needed"):
        json_rows(mixed, PATH, fields, "c")


def test_texts_of_several_fields_are_one_list():
    assert json_texts(ROWS, PATH, ["b", "a", "c"]).to_list() == [["y", "z", "x"], ["\ufffd"]]


def test_rows_are_chosen_by_their_values():
    assert matching_rows(ROWS, PATH, {"n": "true"}).to_list() == [False, True]
    with pytest.raises(InputError, match=r"no row with n = 2; n is 1, true\."):
        matching_rows(ROWS, PATH, {"n": "2"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1}', "line 1: 'a' is '1'; a string is needed"),
        (b"[]", "line 1: a JSON list; an object on each line"),
        (b'{"a": "x"}\n{', "line 2: '{' is not JSON"),
        (b'{"a": "\xff"}', "it is not UTF-8"),
    ],
)
def test_a_fault_names_its_line(content, said):
    with pytest.raises(InputError) as caught:
        json_rows(content, PATH, {"a": "text"})
    assert said in str(caught.value)
