"""What differs between systems, as far as one of them can tell."""

import ast
from pathlib import Path, PureWindowsPath

import pytest

import rejoinder
from rejoinder.io.files import system
from rejoinder.io.files.addresses import any_path
from rejoinder.io.files.system import refused_name, rename
from rejoinder.models.find import is_address

PACKAGE = Path(rejoinder.__file__).parent
ELSEWHERE = {"fcntl", "msvcrt", "pwd", "resource", "termios"}
NOT_EVERYWHERE = {"SIGALRM", "SIGHUP", "fork", "madvise", "sched_getaffinity", "sysconf"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r"C:\runs\first run", None),
        (r"..\a.b\.x", None),
        (r"\\server\share\COM10", None),
        ("console", None),
        (r"C:\aux.tar.gz", "aux.tar.gz"),
        (r"lpt1\x", "lpt1"),
        ("Con .txt", "Con .txt"),
        (r"C:\what?", "what?"),
        ("x/a:b", "a:b"),
        ("a.", "a."),
        ("a ", "a "),
    ],
)
def test_names_that_windows_refuses(path, name):
    assert refused_name(PureWindowsPath(path)) == name


@pytest.mark.parametrize("text", [r"C:\dumps\RC_*.zst", "C:/dumps", "c://x", r"\\server\share"])
def test_a_drive_is_not_a_scheme(text):
    assert isinstance(any_path(text), Path)
    assert not is_address(text)


def test_a_rename_waits_on_windows_for_readers(tmp_path, monkeypatch):
    really, tries = Path.replace, []

    def replace(path, target):
        tries.append(path)
        if len(tries) < 3:
            raise PermissionError
        return really(path, target)

    (tmp_path / "a").write_text("a")
    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(PermissionError):
        rename(tmp_path / "a", tmp_path / "b")
    monkeypatch.setattr(system, "WINDOWS", True)
    rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "a"
    tries.clear()
    monkeypatch.setattr(system, "_REPLACING_SECONDS", 0)
    with pytest.raises(PermissionError):
        rename(tmp_path / "b", tmp_path / "a")


def test_only_one_module_asks_for_what_some_systems_lack():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if ELSEWHERE & {*names} or getattr(node, "attr", None) in NOT_EVERYWHERE:
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == {"io/files/system.py"}
