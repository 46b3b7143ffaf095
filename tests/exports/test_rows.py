"""Rows of JSON files: what lines, pages and damaged documents give."""

import pytest

from export_samples import write
from rejoinder.errors import InputError
from rejoinder.exports.files import opened
from rejoinder.exports.rows import Layout, rows, shape


def read(folder, content, path=""):
    with opened(write({"a.json": content}, folder)) as files:
        return [value for _, value in rows(files, "a.json", path)]


@pytest.mark.parametrize(
    "content", [b"[" + b"9" * 5_000 + b"]", b"[1e999", b"[\xff]", b"[" * 9_999]
)
def test_the_shape_of_damaged_json_is_empty(tmp_path, content):
    """An integer of more than 4,300 digits once ended the process."""
    with opened(write({"a.json": content}, tmp_path)) as files:
        assert shape(files, "a.json") == {}


def test_lines_pages_and_documents(tmp_path):
    assert read(tmp_path, '{"a": 1}\n\n{"a": 2\n{"a": 3}\n') == [{"a": 1}, None, {"a": 3}]
    assert read(tmp_path, '{\n"a": 1\n}\n{\n"a": 2\n}') == [{"a": 1}, {"a": 2}]
    assert read(tmp_path, '\ufeff{"a": [1]}{"a": [2]}', "a.item") == [1, 2]
    assert read(tmp_path, '{"a": "\\ud800"}\n{"a": "\t"}\n') == [{"a": "\ufffd"}, {"a": "\t"}]
    assert read(tmp_path, " \n") == []


def test_a_cut_page_is_an_error_after_its_rows(tmp_path):
    with pytest.raises(InputError, match="not complete JSON"):
        read(tmp_path, '{"a": [1, 2', "a.item")


def test_a_layout_is_found_by_keys_of_rows_and_within_them(tmp_path):
    layout = Layout(("", "item", "all.item"), [{"id", "fields.title"}, {"id", "replies.item.by"}])
    files = {
        "a.json": '[{"id": 1, "fields": {"title": "x"}}]',
        "b.json": '{"all": [{"id": 2, "replies": [{"by": "ann"}]}]}',
        "c.json": '{"id": 3, "fields": {"by": "ann"}, "title": "x"}',
    }
    with opened(write(files, tmp_path)) as found:
        assert layout.recognises(found)
        assert list(layout.places(found)) == [("a.json", "item"), ("b.json", "all.item")]
        assert [(name, number) for name, number, _ in layout.rows(found)] == [
            ("a.json", 1),
            ("b.json", 1),
        ]
