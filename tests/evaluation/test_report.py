"""Reports: the files, the page, and what a name must not do to them."""

import json
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.evaluation.report import Table, beside_published, overview
from rejoinder.evaluation.results import Result, write_results


def result(name, task="trec/senteval", value=80.0, **more):
    return Result(
        task,
        "test",
        500,
        "accuracy",
        {"accuracy": value},
        {"accuracy": (value - 2, value + 2)},
        {},
        1,
        {"sha256": "0"},
        encoder={"name": name},
        **more,
    )


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


class Text(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_encoders_and_published_rows_stand_beside_each_other():
    runs = [[result("a")], [result("b", value=90.0)], [result("a", value=70.0)]]
    table = overview(runs)
    assert table.columns == ("task", "a 1", "b", "a 2")
    assert table.rows == (
        (
            "trec/senteval test, accuracy",
            "80.00 (78.00 to 82.00)",
            "90.00 (88.00 to 92.00)",
            "70.00 (68.00 to 72.00)",
        ),
    )
    [published] = beside_published(runs)
    names = [row[0] for row in published.rows]
    assert names[-3:] == ["a 1", "b", "a 2"]
    assert "InferSent" in names
    assert published.rows[-1][published.columns.index("trec/senteval")] == "70.0"


def test_the_cells_of_a_table_are_escaped():
    table = Table("A & B", ("name", "100 %"), (("a|b_c", "–"), ("x, y", '"1"')), "A note.")
    assert "| a/b_c | – |" in table.markdown()
    assert table.markdown().endswith("\nA note.\n")


def test_the_page_is_one_file_with_every_table_and_plot(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    name = "<script>alert('x')</script> & co"
    write_results(tmp_path / "a.json", [result(name, versions={"rejoinder": "1.2"})])
    write_results(tmp_path / "b.json", [result("b")])
    words = ("report", tmp_path / "a.json", tmp_path / "b.json", "--out", tmp_path / "out")
    written = json.loads(run(*words, "--json").stdout)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"index.html", "tables.md", "bars.svg"}
    assert written["files"] == [str(tmp_path / "out" / file) for file in sorted(files)]
    page = Text((tmp_path / "out" / "index.html").read_text("utf-8"))
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert page.tags.count("svg") == page.tags.count("figure") == 1
    assert page.tags.count("table") == 2
    assert f"{name}: 1 results" in page.text
    assert "rejoinder 1.2, seed 1" in page.text
    assert "InferSent" in page.text


def test_a_report_is_replaced_only_when_asked(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    write_results(tmp_path / "a.json", [result("a")])
    words = ("report", tmp_path / "a.json", "--out", tmp_path / "out")
    first = run(*words)
    assert first.stderr == f"wrote {tmp_path / 'out' / 'index.html'}\n"
    assert "overwrite=True" in str(run(*words).exception)
    assert run(*words, "--no-overwrite").exit_code == 2
    again = run(*words, "--overwrite", "--quiet")
    assert (again.exit_code, again.output) == (0, "")
