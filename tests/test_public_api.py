"""The public API: what it is, that it is documented, and that importing it costs nothing."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rejoinder
from rejoinder import errors

DOCS = Path(__file__).resolve().parent.parent / "docs"
FUNCTIONS = {
    *(
        "adapt",
        "cluster",
        "compare",
        "dedupe",
        "encode_file",
        "encode_files",
        "evaluate",
        "export",
        "extract",
        "finetune",
        "fit_scorer",
        "load_encoder",
        "train",
    )
}
CLASSES = {
    "Duplicates",
    "EncodedFile",
    "Hit",
    "Index",
    "IndexHit",
    "ScoredPair",
    "Scorer",
    "SentenceEmbedder",
    "SentenceEncoder",
    "Suggestions",
    "Topic",
    "Topics",
}
ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type)
    and issubclass(value, (errors.RejoinderError, errors.ForeignTextWarning))
}


def test_the_public_names_are_these():
    assert set(rejoinder.__all__) == FUNCTIONS | CLASSES | ERRORS | {"__version__"}
    assert dir(rejoinder) == sorted(rejoinder.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", rejoinder.__version__)
    with pytest.raises(AttributeError, match="module 'rejoinder' has no attribute 'encode'"):
        _ = rejoinder.encode


@pytest.mark.parametrize("name", sorted(FUNCTIONS | CLASSES | ERRORS))
def test_each_name_has_a_docstring_and_is_found_once(name):
    value = getattr(rejoinder, name)
    assert value is getattr(rejoinder, name)
    assert value.__name__ == name
    assert inspect.getdoc(value)
    assert inspect.isfunction(value) == (name in FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS | CLASSES | ERRORS | {"__version__"}))
def test_each_name_is_documented(name):
    pages = "\n".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    if name == "__version__":
        assert f"`{name}`" in pages
    else:
        assert re.search(rf"^::: rejoinder\.{name}$", pages, re.MULTILINE)


def test_public_methods_have_docstrings():
    for name, member in inspect.getmembers(rejoinder.SentenceEncoder):
        if not name.startswith("_"):
            assert inspect.getdoc(member), name
    assert not [
        name for name in vars(rejoinder.SentenceEncoder) if name in ("model", "fitted_pairs")
    ]


def test_importing_loads_nothing_but_the_package():
    """Less than 0.15 s, whatever the machine: no dependency is loaded, not even `typing`."""
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import rejoinder\n"
        "from rejoinder import RejoinderError\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(Path(rejoinder.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"rejoinder"}
    assert "typing" not in loaded
