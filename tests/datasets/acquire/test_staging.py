"""Several files at once: all or none, through failures, kills and full disks."""

import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.datasets.acquire.staging import held, scratch, write_together
from rejoinder.errors import BusyError, InputError, StorageError

KILLED = """
import os, sys
from pathlib import Path
from rejoinder.datasets.acquire.staging import held, write_together
root, left = Path(sys.argv[1]), int(sys.argv[2])
replace = Path.replace
def dying(self, target):
    global left
    if self.suffix in (".part", ".old") or Path(target).suffix == ".old":
        left -= 1
        if left < 0:
            os._exit(9)
    return replace(self, target)
Path.replace = dying
with held(root):
    write_together(root, {root / "a/one": b"new", root / "two": b"new", root / "b/c/three": b"new"})
os._exit(0)
"""
FULL = """
import resource, sys
from pathlib import Path
from rejoinder.datasets.acquire.staging import held, write_together
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
root = Path(sys.argv[1])
with held(root):
    write_together(root, {root / "a/one": b"new", root / "b": bytes(200_000), root / "two": b"new"})
"""


def state(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def contents(root: Path) -> dict[Path, bytes]:
    return {root / name: b"new" for name in ("a/one", "two", "b/c/three")}


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "data/a").mkdir(parents=True)
    (tmp_path / "data/a/one").write_bytes(b"old")
    (tmp_path / "data/kept").write_bytes(b"old")
    return tmp_path / "data"


OLD = {"a/one": b"old", "kept": b"old"}
NEW = {"a/one": b"new", "two": b"new", "b/c/three": b"new", "kept": b"old"}


def test_files_in_new_and_old_folders(root):
    with held(root):
        write_together(root, contents(root))
    assert state(root) == NEW
    with held(root):
        write_together(root, {})
    assert state(root) == NEW


@pytest.mark.parametrize("steps", range(8))
def test_what_a_kill_left_is_undone_or_finished(root, steps):
    """Whatever it was doing; renames of the journal are among the steps."""
    done = subprocess.run([sys.executable, "-c", KILLED, root, str(steps)], check=False)
    with held(root):
        found = state(root)
    found.pop(".adding.lock", None)
    assert found in (OLD, NEW)
    assert (found == NEW) == (done.returncode == 0 or steps > 1)
    assert (root / "b").exists() == (found == NEW)


def test_a_full_disk_leaves_what_was_there(root):
    said = subprocess.run(
        [sys.executable, "-c", FULL, root], capture_output=True, text=True, check=False
    ).stderr.splitlines()[-1]
    assert said.endswith(
        "StorageError: " + f"{root}/b can't be written: a file would exceed the size limit. "
        "Name another output."
    )
    assert state(root) == OLD


def test_a_failure_in_the_middle_of_the_renames_is_taken_back(root, monkeypatch):
    replace = Path.replace

    def failing(self, target):
        if target == root / "b/c/three":
            raise PermissionError(13, "no")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with held(root), pytest.raises(StorageError, match=r"three can't be written: permission den"):
        write_together(root, contents(root))
    assert state(root) == OLD
    assert not (root / "b").exists()


def test_obstacles(root):
    (root / "two").mkdir()
    with held(root), pytest.raises(InputError, match="two is a folder; a file is written there"):
        write_together(root, contents(root))
    (root / "two").rmdir()
    (root / "b").write_bytes(b"x")
    with held(root), pytest.raises(InputError, match="/b is a file; a folder is needed there"):
        write_together(root, contents(root))
    with (
        pytest.raises(InputError, match="is a file; a folder of data sets is needed"),
        held(root / "kept"),
    ):
        pass


@pytest.mark.parametrize(
    "journal",
    [
        *(b"", b"{}", b"\xff", b"[" * 9999),
        *(
            b'{"complete": true, "files": ["%s"], "folders": []}' % name
            for name in (b"../x", b"\\ud800", b"\\u0000")
        ),
    ],
)
def test_a_damaged_journal_is_an_error(root, journal):
    (root / ".adding.json").write_bytes(journal)
    with pytest.raises(InputError, match=r"adding\.json is damaged"), held(root):
        pass


def test_a_second_command_is_told_who_holds_the_folder(root):
    hold = "import sys; from pathlib import Path\n"
    hold += "from rejoinder.datasets.acquire.staging import held\n"
    hold += "with held(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        message = rf"^{root} is being written by another command \(process {other.pid} on .*-c"
        with pytest.raises(BusyError, match=message), held(root):
            pass
        other.communicate()
    with held(root), held(root), scratch(root) as folder:
        (folder / "x").write_bytes(b"x")
    assert state(root) == OLD
