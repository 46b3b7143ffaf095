"""The examples of docs/interfaces.md, one after another in a folder: each prints what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/interfaces.md"
_BLOCK = re.compile(
    r"^## (?P<title>[^\n]+)$|^```(?P<kind>python|sh)\n(?P<code>.*?)^```$", re.M | re.S
)


def examples():
    title = ""
    for number, found in enumerate(_BLOCK.finditer(PAGE.read_text("utf-8"))):
        title = found["title"] or title
        if found["kind"]:
            yield pytest.param(found["kind"], found["code"], id=f"{title} {number}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.mark.parametrize(("kind", "code"), examples())
def test_an_example_prints_what_it_says(folder, kind, code):
    programs = str(Path(sys.executable).parent)
    command = ["sh", "-ec", code] if kind == "sh" else [sys.executable, "-W", "ignore", "-c", code]
    shown = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    expected = re.findall(r"^print\(.*\)  # (.+)$", code, re.M)
    if kind == "python":
        assert expected
        assert shown.stdout.splitlines() == expected


def test_every_library_of_the_page_has_an_example():
    titles = {parameter.id.rsplit(" ", 1)[0] for parameter in examples()}
    assert titles == set(re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.M))
    assert len(titles) == 10
