"""Parts that grow over several runs: what is saved comes back, whatever came after is cut off."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest

from rejoinder.errors import InputError
from rejoinder.io.files.claims import claim
from rejoinder.io.files.unfinished import (
    discard_unfinished,
    growing,
    publish,
    read_unfinished,
    unfinished_folder,
)

PARTS = ("a", "b")


def grow(out, texts, *, saved=None, then=b"", error=KeyboardInterrupt):
    """Appends the texts, marks, appends `then` and fails."""
    with suppress(error), growing(out, PARTS, saved) as parts:
        for file, text in zip(parts.files, texts, strict=True):
            file.write(text)
        parts.mark({"n": 1})
        parts.files[0].write(then)
        raise error


def contents(out):
    folder = unfinished_folder(out)
    return [(folder / name).read_bytes() for name in PARTS]


def test_what_was_marked_is_continued_and_the_rest_is_cut_off(tmp_path):
    out = tmp_path / "out.npy"
    assert read_unfinished(out) is None
    grow(out, [b"one", b"1"], then=b"half")
    saved = read_unfinished(out)
    assert (dict(saved.facts), dict(saved.sizes)) == ({"n": 1}, {"a": 3, "b": 1})
    grow(out, [b" two", b" 2"], saved=saved, then=b"half", error=SystemExit)
    saved = read_unfinished(out)
    with claim(out), growing(out, PARTS, saved) as parts:
        assert contents(out) == [b"one two", b"1 2"]
        parts.files[0].write(b" three")
        parts.files[0].flush()
        publish(parts.folder / "a", out)
    assert out.read_bytes() == b"one two three"
    assert [path.name for path in tmp_path.iterdir()] == ["out.npy"]


def test_a_claim_leaves_it_alone(tmp_path):
    out = tmp_path / "out.npy"
    grow(out, [b"one", b"1"])
    with claim(out):
        assert read_unfinished(out).sizes == {"a": 3, "b": 1}


def test_parts_that_were_never_marked_are_removed(tmp_path):
    out = tmp_path / "out.npy"
    with suppress(ZeroDivisionError), growing(out, PARTS, None) as parts:
        parts.files[0].write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_what_it_saved(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from rejoinder.io.files.unfinished import growing\n"
        "with growing(Path(sys.argv[1]), ('a', 'b'), None) as parts:\n"
        "    parts.files[0].write(b'one'); parts.mark({'n': 1}); parts.save()\n"
        "    parts.files[0].write(b'half'); parts.files[0].flush()\n"
        "    parts.mark({'n': 2}); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    out = tmp_path / "out.npy"
    subprocess.run([sys.executable, "-c", script, out], check=False)
    saved = read_unfinished(out)
    assert (saved.facts, saved.sizes) == ({"n": 1}, {"a": 3, "b": 0})
    with growing(out, PARTS, saved):
        assert contents(out) == [b"one", b""]


def test_new_parts_replace_old_ones(tmp_path):
    out = tmp_path / "out.npy"
    grow(out, [b"one", b"1"])
    grow(out, [b"x", b"y"])
    assert contents(out) == [b"x", b"y"]
    discard_unfinished(out)
    assert read_unfinished(out) is None


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "a").unlink(), "a is missing or cut"),
        (lambda folder: (folder / "a").write_bytes(b"on"), "a is missing or cut"),
        (lambda folder: (folder / "state.json").write_text("{"), "can't be read"),
        (
            lambda folder: (folder / "state.json").write_text(
                (folder / "state.json").read_text().replace('"n": 1', '"n": 9')
            ),
            "was changed after it was written",
        ),
        (
            lambda folder: (folder / "state.json").write_text(json.dumps({"format_version": 9})),
            "format version 9",
        ),
    ],
)
def test_damage_is_named(tmp_path, damage, said):
    out = tmp_path / "out.npy"
    grow(out, [b"one", b"1"])
    damage(unfinished_folder(out))
    with pytest.raises(InputError, match=rf"{said}.* Begin again with --overwrite\."):
        read_unfinished(out)


def test_a_full_disk_is_one_sentence_and_the_saved_state_stands(tmp_path):
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from rejoinder.errors import StorageError\n"
        "from rejoinder.io.files.unfinished import growing\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "try:\n"
        "    with growing(Path(sys.argv[1]), ('a', 'b'), None) as parts:\n"
        "        parts.files[0].write(b'one'); parts.mark({'n': 1}); parts.save()\n"
        "        parts.files[0].write(bytes(1_000)); parts.mark({'n': 2})\n"
        "        parts.save()\n"
        "except StorageError as error:\n"
        "    print(error)\n"
    )
    out = tmp_path / "out.npy"
    run = subprocess.run([sys.executable, "-c", script, out], capture_output=True, text=True)
    assert run.stderr == ""
    assert "out.npy can't be written: a file would exceed the size limit" in run.stdout
    assert (read_unfinished(out).facts, read_unfinished(out).sizes) == ({"n": 1}, {"a": 3, "b": 0})


def test_a_pipe_gets_the_whole_content_at_the_end(tmp_path):
    out = tmp_path / "pipe.npy"
    os.mkfifo(out)
    with subprocess.Popen(["cat", out], stdout=subprocess.PIPE) as reader:
        with growing(out, PARTS, None) as parts:
            parts.files[0].write(b"all of it")
            parts.files[0].flush()
            publish(parts.folder / "a", out)
        assert reader.communicate()[0] == b"all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.npy"]
