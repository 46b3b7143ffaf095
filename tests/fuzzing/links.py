"""Outputs and inputs by links: what is read stays, and what is refused changes nothing."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from rejoinder.errors import RejoinderError
from rejoinder.io.files.atomic import new_file, new_folder

NAMES = ("a", "b", "c", "a/x", "a/y", "b/x", "b/x/z", "c/d/e")


def checker(folder: Path) -> Callable[[Random], bool]:
    """The check of this area: one output of a command, among files, folders and links."""
    root = folder.resolve() / "links"

    def check(random: Random) -> bool:
        shutil.rmtree(root, ignore_errors=True)
        _grow(random, root)
        out = root / random.choice(NAMES)
        inputs = [root / random.choice(NAMES) for _ in range(random.randint(0, 2))]
        real = [Path(os.path.realpath(path)) for path in inputs]
        before, read = _tree(root), [_content(path) for path in real]
        place = Path(os.path.realpath(out))  # a link to the folder that it lies in is replaced too
        try:
            if random.random() < 0.7:
                with new_folder(out, overwrite=random.random() < 0.7, inputs=inputs) as part:
                    (part / "new").write_text("new")
            else:
                with new_file(out) as file:
                    file.write(b"new")
                real, read = [], []  # only commands that write a folder know what they read
        except RejoinderError:
            assert _tree(root) == before, "refused, and changed"
            return False
        for path, there in zip(real, read, strict=True):
            now = _content(path)
            kept = there.items() <= now.items() if isinstance(there, dict) else there in (None, now)
            assert kept, f"{path} was lost"
        written = place.read_text() if place.is_file() else (place / "new").read_text()
        assert written == "new", "something else is there"
        hidden = [path for path in root.rglob(".*") if path.suffix != ".old"]
        assert not hidden, f"left over: {hidden}"
        return True

    return check


def _grow(random: Random, root: Path) -> None:
    """Makes files, folders and links, some of which lead nowhere or back to themselves."""
    root.mkdir(parents=True)
    for name in random.sample(NAMES, random.randint(2, len(NAMES))):
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = random.random()
            if kind < 0.4:
                path.write_text(name)
            elif kind < 0.6:
                path.mkdir()
            else:
                target = root / random.choice(NAMES)
                relative = os.path.relpath(target, path.parent)
                path.symlink_to(target if random.random() < 0.5 else relative)
        except OSError:  # another file, folder or link is in its way
            continue


def _tree(root: Path) -> dict[str, str]:
    """What is at every path: a link's target, a file's text, or that it is a folder."""
    found = {}
    for path in root.rglob("*"):
        if path.is_symlink():
            text = f"-> {path.readlink()}"
        else:
            text = path.read_text() if path.is_file() else "/"
        found[str(path.relative_to(root))] = text
    return found


def _content(path: Path) -> Any:
    """What reading a path gives, through links: a text, the texts of a folder, or nothing."""
    try:
        if path.is_file():
            return path.read_text()
        real = path.resolve()
        return _tree(real) if real.is_dir() else None
    except (OSError, RuntimeError):  # a link leads back to itself
        return None
