"""A limited address space ends a command with one sentence."""

import resource
import subprocess
import sys

import pytest

from rejoinder.kernels import kernel

built = pytest.mark.skipif(kernel("cli._ending") is None, reason="the kernel is not built")


def limited(code, megabytes, folder=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000,) * 2)

    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, preexec_fn=limit)


@pytest.mark.parametrize(("command", "least"), [("train", "3,000"), ("similarity", "600")])
def test_too_few_addresses_are_refused_before_the_work(command, least):
    code = f"import sys; from rejoinder.cli.main import run; sys.argv[1:] = ['{command}']; run()"
    ended = limited(code, 400)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "rejoinder: the address space is limited to 400 MB (ulimit -v), and the libraries of "
        f"{command} reserve {least} MB, though they use less memory; raise the limit, or limit the "
        "memory itself (MemoryMax of systemd, --memory of containers).\n"
    )


@built
@pytest.mark.parametrize(
    "fault",
    [
        "import polars; polars.int_range(0, 10**12, eager=True)",  # Rust aborts
        "import os; os.abort()",
        "import ctypes; ctypes.string_at(0)",
    ],
)
def test_a_library_that_ends_the_process_is_one_sentence(fault):
    prepare = "from rejoinder.cli.memory import prepare_for_limits; prepare_for_limits('train')"
    ended = limited(f"{prepare}; {fault}", 4_000)
    assert ended.returncode == 2
    assert ended.stderr.endswith(
        "rejoinder: a library ended the process, most likely because the address space is limited "
        "to 4,000 MB (ulimit -v); raise the limit, or ask for less at a time.\n"
    )


@pytest.mark.parametrize("words", ["encode --sentences", "index --out index"])
def test_a_window_for_which_memory_does_not_suffice_is_no_damage(tmp_path, words):
    content = b"How old are you?\n"
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3])  # a window of 2 GiB
    frame += ((len(content) << 3) | 1).to_bytes(3, "little") + content
    (tmp_path / "texts.txt.zst").write_bytes(frame)
    given = [*words.split(), "texts.txt.zst"]
    code = f"import sys; from rejoinder.cli.main import run; sys.argv[1:] = {given}; run()"
    ended = limited(code, 1_500, tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("rejoinder: memory does not suffice; ")


@built
def test_nothing_changes_without_a_limit():
    code = (
        "from rejoinder.cli.memory import prepare_for_limits; prepare_for_limits('train')\n"
        "import os; os.abort()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (-6, "")


@built
def test_a_sentence_has_bounds():
    with pytest.raises(ValueError, match="1025 bytes; at most 1024 are allowed"):
        kernel("cli._ending").tell(bytes(1_025), 2)


def test_too_few_threads_are_refused_before_the_work():
    code = "from rejoinder.cli.memory import _refuse_few_threads as refuse; refuse('train', 400)"
    ended = limited(code, 1_500)  # no room for so many stacks
    assert "InputError: 400 threads can't be started, and the libraries of train" in ended.stderr
