"""Lines and tables: what ends a line, and the line at fault in an error."""

from pathlib import Path

import pytest

from rejoinder.errors import InputError
from rejoinder.io.formats.tables import tab_separated, table_columns, text_lines

PATH = Path("a.tsv")


def test_lines_end_with_line_feeds_only():
    content = b"\xef\xbb\xbfa\x0cb\r\n\xc2\x85\xe2\x80\xa8c\n\nd"
    assert text_lines(content, PATH) == ["a\x0cb", "\x85\u2028c", "", "d"]
    assert text_lines(b"", PATH) == []
    assert text_lines(b"\xe9\n", PATH, "latin-1") == ["é"]
    with pytest.raises(InputError, match=r"^a\.tsv line 8: byte 0xff is not utf-8\.$"):
        text_lines(b"a\n\xff\n", PATH, first_line=7)


def test_columns_are_counted():
    assert tab_separated("a\tb", (2, 3), PATH, 1) == ["a", "b"]
    with pytest.raises(InputError, match="line 4: 1 columns between tabs; 2 or 3 are needed"):
        tab_separated("a", (2, 3), PATH, 4)


def test_columns_of_a_table_are_strings_with_quotes_as_they_are():
    content = b'b\ta\tc\r\n"1\t02\tx\r\n\t2"\ty\textra\r\n'
    frame = table_columns(content, PATH, ("a", "b"))
    assert frame.select("a", "b").rows() == [("02", '"1'), ('2"', "")]


def test_a_short_line_and_a_lacking_column_are_named():
    with pytest.raises(InputError, match="line 3: 1 columns between tabs; the header has 2"):
        table_columns(b"a\tb\n1\t2\n3\n", PATH, ("a", "b"))
    with pytest.raises(InputError, match="neither a JSON object nor a header"):
        table_columns(b"a\tb\n", PATH, ("a", "c"))
