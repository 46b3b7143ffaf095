"""What Python and notebooks show of large results."""

from rejoinder.io.formats.shown import MOST_ROWS, Shown, View


class Many(Shown):
    def view(self):
        rows = [(f"<b>{row}</b>\n{'x' * 100}", row * 1_000) for row in range(MOST_ROWS)]
        return View("a & b", ("text", "n"), rows, 1_234)


def test_a_table_is_short():
    title, header, *rows, rest = repr(Many()).splitlines()
    assert (title, header.split(), rest) == ("a & b", ["text", "n"], "… and 1,224 more")
    assert len(rows) == MOST_ROWS
    assert max(map(len, rows)) < 80
    assert rows[9].endswith(" 9,000")


def test_a_notebook_gets_html_in_which_texts_are_escaped():
    html = Many()._repr_html_()
    assert html.startswith("<table><caption>a &amp; b</caption>")
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "<td>&lt;b&gt;0&lt;/b&gt; xx" in html
    assert "1,224 more" in html
