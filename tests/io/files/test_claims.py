"""One command at a time writes an output; what a killed one left is mended."""

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rejoinder.errors import BusyError, InputError, StorageError
from rejoinder.io.files import claims
from rejoinder.io.files.atomic import new_file, new_folder, write_text
from rejoinder.io.files.claims import claim, claim_output, sweep
from rejoinder.io.files.storage import is_device

HOLD = (
    "import sys, pathlib; from rejoinder.io.files.claims import claim\n"
    "with claim(pathlib.Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def holder(path: Path) -> "subprocess.Popen[bytes]":
    """Another process that holds `path` until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def test_a_second_process_is_told_who_writes(tmp_path):
    out = tmp_path / "out"
    with holder(out) as other:
        with pytest.raises(BusyError, match=rf"process {other.pid} .*20\d\d"):
            write_text(out, "mine")
        assert not out.exists()
        other.stdin.close()
    write_text(out, "mine")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("way", ["link", "parent", "dangling"])
def test_all_ways_to_one_place_share_a_lock(tmp_path, way):
    (tmp_path / "disk").mkdir()
    place = tmp_path / "disk" / "out"
    if way == "link":
        place.mkdir()
    if way == "parent":
        (tmp_path / "home").symlink_to("disk")
        other_way = tmp_path / "home" / "out"
    else:
        other_way = tmp_path / "x"
        other_way.symlink_to(place)
    with holder(place) as other:
        with pytest.raises(BusyError, match=rf"process {other.pid} "), claim(other_way):
            raise AssertionError("the block ran")
        other.stdin.close()
    with holder(other_way) as other:
        with pytest.raises(BusyError, match=rf"process {other.pid} "), claim(place):
            raise AssertionError("the block ran")
        other.stdin.close()
    with claim(place), claim(other_way):  # of one process, they are one claim
        assert names(tmp_path / "disk") == [".out.lock", *(["out"] if way == "link" else [])]


def test_a_killed_process_holds_nothing(tmp_path):
    out = tmp_path / "out"
    with holder(out) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert names(tmp_path) == [".out.lock"]
    with claim(out):
        assert names(tmp_path) == [".out.lock"]
    assert names(tmp_path) == []


def test_claims_nest_within_a_thread_and_threads_take_turns(tmp_path):
    out, inside, most = tmp_path / "new" / "out.txt", [], []

    def write(text):
        with claim(out), claim(out):
            inside.append(text)
            write_text(out, text)
            most.append(len(inside))
            assert out.read_text() == text
            inside.remove(text)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [str(number) * 10_000 for number in range(80)]))
    assert most == [1] * 80
    assert names(out.parent) == ["out.txt"]
    assert claims._TURNS == {}


def test_a_thread_that_waited_does_not_replace_what_another_wrote(tmp_path):
    def write(name):
        with new_folder(tmp_path / "out") as part:
            (part / "name").write_text(name)
        return name

    with ThreadPoolExecutor(2) as pool, claim(tmp_path / "out"):  # both wait before they begin
        both = [pool.submit(write, name) for name in ("first", "second")]
    refusals = [one.exception() for one in both]
    [refused] = [one for one in refusals if one is not None]
    assert isinstance(refused, InputError)
    [written] = [one.result() for one in both if one.exception() is None]
    assert (tmp_path / "out" / "name").read_text() == written
    assert names(tmp_path) == ["out"]


def test_a_thread_that_another_process_keeps_out_leaves_its_turn(tmp_path):
    with holder(tmp_path / "out") as other:

        def refuse(_number):
            with pytest.raises(BusyError, match=rf"process {other.pid} "), claim(tmp_path / "out"):
                raise AssertionError("the block ran")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(refuse, range(8)))
        other.stdin.close()
    with claim(tmp_path / "out"):
        pass
    assert (names(tmp_path), claims._TURNS) == ([], {})


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_mended(tmp_path, kind):
    def make(path: Path, text: str) -> None:
        if kind == "folder":
            path.mkdir()
            path = path / "content"
        path.write_text(text)

    def text_of(path: Path) -> str:
        return (path / "content" if kind == "folder" else path).read_text()

    out = tmp_path / "out"
    make(tmp_path / ".out.part", "half")
    make(tmp_path / ".out.old", "old")
    with claim(out):  # killed between its two renames: the old content comes back
        assert text_of(out) == "old"
    make(tmp_path / ".out.old", "older")
    with claim(out):  # killed before it removed the old content
        assert text_of(out) == "old"
    assert names(tmp_path) == ["out"]


def test_a_sweep_mends_whatever_lies_below(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / ".model.part").mkdir()
    (inner / ".model.part" / ".x.part").write_text("half")
    (inner / ".best.old").mkdir()
    (inner / ".x.lock").write_text("process 1")
    (inner / ".keep").write_text("somebody's own")
    sweep(tmp_path)
    assert names(inner) == [".keep", "best"]


def test_a_failed_block_leaves_the_old_content_and_nothing_else(tmp_path):
    write_text(tmp_path / "file", "old")

    def fail_in_file() -> None:
        with new_file(tmp_path / "file") as file:
            file.write(b"new")
            raise ZeroDivisionError

    def fail_in_folder() -> None:
        with new_folder(tmp_path / "x" / "y" / "folder") as folder:
            (folder / "a").write_text("new")
            raise ZeroDivisionError

    for fail in (fail_in_file, fail_in_folder):
        with pytest.raises(ZeroDivisionError):
            fail()
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_full_folder_is_refused_before_the_block(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for path, said in (("out", "not empty"), ("file", "is a file")):
        with pytest.raises(InputError, match=said), claim_output(tmp_path / path):
            raise AssertionError("the block ran")
    with new_folder(tmp_path / "out", overwrite=True) as folder:
        (folder / "yours").write_text("yours")
    assert names(tmp_path / "out") == ["yours"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_are_those_that_the_umask_allows(tmp_path, mask):
    before = os.umask(mask)
    try:
        with new_folder(tmp_path / "folder") as folder:
            os.close(os.open(folder / "private", os.O_CREAT | os.O_WRONLY, 0o600))
        write_text(tmp_path / "file", "text")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes[tmp_path / "folder"] == 0o777 & ~mask
    assert modes[tmp_path / "folder" / "private"] == 0o666 & ~mask
    assert modes[tmp_path / "file"] == 0o666 & ~mask


def test_what_can_t_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, said in (
        (tmp_path / "file" / "out", "a part of the path is a file"),
        (tmp_path / "loop" / "out", "can't be written: a"),
        (tmp_path / ("x" * 300), "the name is too long"),
        (Path("/proc/nothing/out"), "can't be written"),
    ):
        for write in (claim_output, new_folder, new_file):
            with pytest.raises(StorageError, match=said), write(path):
                raise AssertionError("the block ran")
    assert names(tmp_path) == ["file", "loop"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied"), claim(tmp_path / "out"):
        raise AssertionError("the block ran")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_a_disk_that_fills_is_one_sentence_and_leaves_nothing(tmp_path, number):
    def fill(error: Exception) -> None:
        with new_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("half")
            raise error

    for error in (OSError(number, "x"), RuntimeError(f"I/O error (os error {number})")):
        with pytest.raises(StorageError, match=r"out .*MB"):
            fill(error)
    with pytest.raises(OSError, match="No such file"), new_folder(tmp_path / "out"):
        (tmp_path / "absent").read_text()  # a missing input is not the fault of the output
    assert names(tmp_path) == []


def test_a_file_size_limit_is_one_sentence(tmp_path):
    program = (
        "import resource, pathlib, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from rejoinder.io.files.atomic import write_bytes\n"
        "write_bytes(pathlib.Path(sys.argv[1]), bytes(5000))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "StorageError" in told.stderr
    assert "a file would exceed the size limit" in told.stderr
    assert names(tmp_path) == []


def test_devices_are_written_as_they_are():
    with new_file(Path("/dev/null")) as file:
        file.write(b"x")
    with claim(Path("/dev/null")):
        pass
    assert not Path("/dev/null").is_file()
    assert not Path("/dev/.null.lock").exists()
    assert is_device(Path("/dev/null"))


def test_a_claim_that_failed_leaves_the_lock_of_the_holder(tmp_path):
    with holder(tmp_path / "out") as other:
        for _ in range(2):
            with pytest.raises(BusyError, match=rf"process {other.pid} "), claim(tmp_path / "out"):
                raise AssertionError("the block ran")
        other.stdin.close()
    assert names(tmp_path) == []


def test_a_claim_that_can_not_be_made_leaves_no_lock(tmp_path, monkeypatch):
    def fail(_path):
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(claims, "recover", fail)
    with pytest.raises(StorageError, match="input/output"), claim(tmp_path / "new" / "out"):
        raise AssertionError("the block ran")
    assert (names(tmp_path), claims._TURNS) == ([], {})


def test_a_lock_that_its_holder_removed_is_made_again(tmp_path, monkeypatch):
    lock, opened = tmp_path / ".out.lock", []

    def open_and_remove(*arguments, **named):
        handle = os_open(*arguments, **named)
        opened.append(handle)
        if len(opened) == 1:  # as another process does between the two calls
            lock.unlink()
        return handle

    os_open = os.open
    monkeypatch.setattr(os, "open", open_and_remove)
    with claim(tmp_path / "out"):
        assert len(opened) == 2
        assert names(tmp_path) == [".out.lock"]


def test_a_folder_that_another_release_removes_is_made_again(tmp_path, monkeypatch):
    real, removed = os.open, []

    def after_a_release(name, flags, mode=0o777):
        if str(name).endswith(".lock") and not removed:
            removed.append(name)
            (tmp_path / "new").rmdir()
        return real(name, flags, mode)

    monkeypatch.setattr("rejoinder.io.files.claims.os.open", after_a_release)
    with claim(tmp_path / "new" / "out"):
        assert (tmp_path / "new" / ".out.lock").is_file()
    assert removed
    assert not (tmp_path / "new").exists()
