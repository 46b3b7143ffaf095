"""The README's Python runs, its commands exist, and the site documents every public name."""

import re
from pathlib import Path

from typer.testing import CliRunner

import rejoinder
from rejoinder.cli.main import app
from rejoinder.training.config.loading import shipped_names

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25_000
PAGES = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "notebook").rglob("*.md")]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_of_the_readme_runs(capsys):
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 -- it is our own
    shape, similarities, best, *_, nearest = capsys.readouterr().out.strip().split("\n")
    assert shape == "(2, 512)"
    same, other = map(float, re.findall(r"-?\d+\.\d*", similarities))
    assert same > other
    assert best.endswith("I am twenty years old.")
    assert nearest == "How old are you?"


def test_the_commands_of_the_readme_exist():
    commands = set(re.findall(r"^rejoinder (\w+)", README, re.MULTILINE))
    assert len(commands) >= 5
    for command in commands:
        result = CliRunner().invoke(app, [command, "--help"])
        assert result.exit_code == 0
        assert "Examples:" in result.output


def test_every_page_that_is_linked_exists():
    for page in (*ROOT.glob("*.md"), *PAGES):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links {link}"


def test_the_api_reference_has_every_public_name():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    documented = set(re.findall(r"^::: rejoinder\.(\w+)$", pages, re.MULTILINE))
    assert {name for name in rejoinder.__all__ if not name.startswith("_")} <= documented


def test_the_page_on_training_names_every_shipped_config():
    page = (ROOT / "docs/train.md").read_text("utf-8")
    assert {*shipped_names()} <= {*re.findall(r"`([a-z-]+)`", page)}


def test_lists_follow_a_blank_line_or_the_site_shows_them_as_plain_text():
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "```", page.read_text("utf-8"), flags=re.DOTALL | re.M)
        for before, item in re.findall(r"^(.+)\n((?:- |\d+\. ).*)$", text, re.MULTILINE):
            continued = before.startswith(("- ", "  ", "#")) or re.match(r"\d+\. ", before)
            assert continued, f"{page.name}: a blank line is missing before: {item[:60]}"


def test_pages_of_the_notebook_begin_with_their_answer():
    for page in (ROOT / "notebook").glob("*.md"):
        heading, answer, *_ = page.read_text("utf-8").split("\n\n")
        lines = answer.splitlines()
        assert re.fullmatch(r"# .+", heading), f"{page.name} begins with a heading"
        assert answer[0].isalnum() or answer[0] in "*`", f"{page.name} answers in a sentence first"
        assert len(lines) <= 3, f"{page.name}: the answer has at most three lines"
        assert max(map(len, lines)) <= 160, f"{page.name}: a line of the answer is too long"


def test_pages_that_grew_too_long_stay_short():
    for name in ("recipes.md", "scaling.md"):
        words = (ROOT / "notebook" / name).read_text("utf-8").split()
        assert len(words) <= 2_500, f"{name}: put what failed in one line of its last table"
    assert len((ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()) <= 60


def test_the_pages_have_few_enough_words():
    words = sum(len(page.read_text("utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))
    assert words <= MOST_WORDS
