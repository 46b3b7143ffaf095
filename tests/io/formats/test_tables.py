"""Lines and tables: what ends a line, and the line at fault in an error."""

from pathlib import Path

import pytest

from rejoinder.errors import InputError
from rejoinder.io.formats.tables import Row, below_header, decoded_lines, table_rows

PATH = Path("a.tsv")


def test_lines_end_with_line_feeds_only():
    content = b"\xef\xbb\xbfa\x0cb\r\n\xc2\x85\xe2\x80\xa8c\n\nd"
    assert decoded_lines(content, PATH) == ["a\x0cb", "\x85\u2028c", "", "d"]
    assert decoded_lines(b"", PATH) == []
    assert decoded_lines(b"\xe9\n", PATH, "latin-1") == ["é"]
    with pytest.raises(InputError, match=r"^a\.tsv line 8.*0xff.*utf-8"):
        decoded_lines(b"a\n\xff\n", PATH, first_line=7)


def test_columns_are_counted():
    assert [row.fields for row in table_rows(b"a\tb\n\n1\t2\t3\n", PATH, (2, 3))] == [
        ["a", "b"],
        ["1", "2", "3"],
    ]
    with pytest.raises(InputError, match=r"line 3.*\b1\b.*2 or 3"):
        list(table_rows(b"a\tb\n\na\n", PATH, (2, 3)))


def test_fields_are_checked():
    row = Row([" b ", "5.5"], 7, PATH)
    assert (row.one_of(0, "ab"), row.score(1, 0, 6)) == ("b", 5.5)
    with pytest.raises(InputError, match=r"a\.tsv line 7.*'b'.*c, d"):
        row.one_of(0, "cd")
    for text in ("5.5", "nan", "1_0", "x"):
        with pytest.raises(InputError, match=rf"a\.tsv line 7.*'{text}'.*0 to 5"):
            Row([text], 7, PATH).score(0, 0, 5)


def test_columns_below_a_header_are_strings_with_quotes_as_they_are():
    content = b'b\ta\tc\r\n"1\t02\tx\r\n\t2"\ty\textra\r\n3\t4\r\n'
    rows = [row.fields for row in below_header(content, PATH, ("a", "b"), exact=False)]
    assert rows == [["02", '"1'], ['2"', ""], ["4", "3"]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a\tb\n1\t2\n3\n", "line 3: found 1 columns .* 2"),
        (b"a\tb\n1\t2\t3\n", "line 2: found 3 columns .* 2"),
        (b"a\tc\n", "line 1: the header 'a c' lacks 'b'"),
        (b"", "line 1: .*'a', 'b'"),
    ],
)
def test_a_line_with_other_columns_and_a_missing_column_are_named(content, said):
    with pytest.raises(InputError, match=said):
        list(below_header(content, PATH, ("a", "b")))
