"""Parts that grow over several runs: what is saved comes back, whatever came after is cut off."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest

from rejoinder.errors import InputError
from rejoinder.io.files.atomic import (
    discard_unfinished,
    growing,
    publish,
    read_unfinished,
    unfinished_folder,
)
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import sealed

PARTS = ("a", "b")


def grow(out, texts, *, saved=None, then=b"", error=KeyboardInterrupt):
    """Appends the texts, marks, appends `then` and fails."""
    with suppress(error), growing(out, PARTS, saved) as parts:
        for file, text in zip(parts.files, texts, strict=True):
            file.write(text)
        parts.mark({"n": 1})
        parts.files[0].write(then)
        raise error


def sizes(saved):
    return {name: part.bytes for name, part in saved.parts.items()}


def contents(out):
    folder = unfinished_folder(out)
    return [(folder / name).read_bytes() for name in PARTS]


def test_what_was_marked_is_continued_and_the_rest_is_cut_off(tmp_path):
    out = tmp_path / "out.npy"
    assert read_unfinished(out) is None
    grow(out, [b"one", b"1"], then=b"half")
    saved = read_unfinished(out)
    assert (dict(saved.facts), sizes(saved)) == ({"n": 1}, {"a": 3, "b": 1})
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
        assert sizes(read_unfinished(out)) == {"a": 3, "b": 1}


def test_parts_that_were_never_marked_are_removed(tmp_path):
    out = tmp_path / "out.npy"
    with suppress(ZeroDivisionError), growing(out, PARTS, None) as parts:
        parts.files[0].write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_what_it_saved(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from rejoinder.io.files.atomic import growing\n"
        "with growing(Path(sys.argv[1]), ('a', 'b'), None) as parts:\n"
        "    parts.files[0].write(b'one'); parts.mark({'n': 1}); parts.save()\n"
        "    parts.files[0].write(b'half'); parts.files[0].flush()\n"
        "    parts.mark({'n': 2}); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    out = tmp_path / "out.npy"
    subprocess.run([sys.executable, "-c", script, out], check=False)
    saved = read_unfinished(out)
    assert (saved.facts, sizes(saved)) == ({"n": 1}, {"a": 3, "b": 0})
    with growing(out, PARTS, saved):
        assert contents(out) == [b"one", b""]


def test_a_process_that_ended_after_publishing_left_nothing(tmp_path):
    out = tmp_path / "out.npy"
    with suppress(ZeroDivisionError), growing(out, ("a",), None) as parts:
        parts.files[0].write(b"whole")
        parts.mark({})
        parts.save()
        parts.close()
        (parts.folder / "a").replace(out)
        raise ZeroDivisionError
    assert unfinished_folder(out).exists()
    assert read_unfinished(out) is None
    assert out.read_bytes() == b"whole"


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
    with pytest.raises(InputError, match=rf"{said}.*overwrite=True"):
        read_unfinished(out)


def test_a_changed_byte_is_one_sentence_wherever_it_is(tmp_path):
    out = tmp_path / "out.npy"
    grow(out, [b"header one", b"1"])
    grow(out, [b" two", b" 2"], saved=read_unfinished(out))
    saved, folder = read_unfinished(out), unfinished_folder(out)
    for name, size in sizes(saved).items():
        whole = (folder / name).read_bytes()
        for place in range(size):
            (folder / name).write_bytes(
                whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
            )
            opened = growing(out, PARTS, saved)
            said = rf"{name} was changed .*overwrite=True"
            with pytest.raises(InputError, match=said), opened:
                raise AssertionError("the block ran")
        (folder / name).write_bytes(whole + b"more")
    with growing(out, PARTS, saved):
        assert contents(out) == [b"header one two", b"1 2"]


def test_a_header_that_was_finished_may_differ(tmp_path):
    out = tmp_path / "out.npy"
    with suppress(ZeroDivisionError), growing(out, ("a",), None, header_bytes=6) as parts:
        for text in (b"hea", b"der ", b"rows"):
            parts.files[0].write(text)
        parts.mark({})
        raise ZeroDivisionError
    part, saved = unfinished_folder(out) / "a", read_unfinished(out)
    part.write_bytes(b"HEADER rows")
    with growing(out, ("a",), saved, header_bytes=6):
        pass
    part.write_bytes(b"header Rows")
    opened = growing(out, ("a",), saved, header_bytes=6)
    with pytest.raises(InputError, match="a was changed"), opened:
        pass


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"facts": []}, "object.*array.*facts"),
        ({"parts": {"a": {"bytes": -1, "crc32": 0}}}, r"int.* >= 0.*parts.*\.bytes"),
        ({"parts": {"a": {"bytes": True, "crc32": 0}}}, r"int.*bool.*parts.*\.bytes"),
        ({"parts": {"a": {"bytes": 1}}}, "missing.*crc32.*parts"),
        ({"parts": {"../a": {"bytes": 0, "crc32": 0}}}, "str.*parts"),
        ({"parts": {"a": 1}}, "object.*int.*parts"),
        ({"more": 1}, "unknown.*more"),
    ],
)
def test_a_wrong_value_with_its_hash_is_one_sentence(tmp_path, tree, said):
    out = tmp_path / "out.npy"
    grow(out, [b"one", b"1"])
    state = unfinished_folder(out) / "state.json"
    values = json.loads(state.read_text())
    del values["sha256"]
    state.write_text(json.dumps(sealed({**values, **tree})))
    with pytest.raises(InputError, match=rf"state\.json.*{said}.*overwrite=True"):
        read_unfinished(out)


def test_the_parts_of_another_format_are_refused(tmp_path):
    out = tmp_path / "out.npy"
    grow(out, [b"one", b"1"])
    opened = growing(out, ("c",), read_unfinished(out))
    with pytest.raises(InputError, match=r"state\.json .*a, b.*c"), opened:
        pass


def test_a_full_disk_is_one_sentence_and_the_saved_state_stands(tmp_path):
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from rejoinder.errors import StorageError\n"
        "from rejoinder.io.files.atomic import growing\n"
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
    saved = read_unfinished(out)
    assert (saved.facts, sizes(saved)) == ({"n": 1}, {"a": 3, "b": 0})


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
