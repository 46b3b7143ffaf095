"""Files of exports: what folders and archives hold that is not theirs."""

import io
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from export_samples import jira, maildir, mbox, slack, write, zendesk
from rejoinder.corpus.extract import extract
from rejoinder.corpus.reading.files import find_files
from rejoinder.corpus.texts import entries_of
from rejoinder.errors import InputError, LeftOutWarning
from rejoinder.exports import exports_of, format_of_export
from rejoinder.exports.files import opened


def content_of(path: Path) -> dict[str, bytes]:
    with opened(path) as files:
        content = {}
        for name in files.names:
            with files.open(name) as file:
                content[name] = file.read()
        return content


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.txt").write_text("secret")
    made = tmp_path / "export"
    (made / "in").mkdir(parents=True)
    (made / "in/a.txt").write_text("ours")
    return made


@pytest.mark.parametrize(
    "target", ["../../secret.txt", "../../other", "chain", "{}/secret.txt"], ids=lambda one: one
)
def test_a_link_out_of_a_folder_is_left_out_and_named(folder, target):
    (folder / "in/chain").symlink_to("../../secret.txt")
    (folder / "in/link.txt").symlink_to(target.format(folder.parent))
    with pytest.warns(LeftOutWarning, match=r"2 links.*in/chain, in/link\.txt"):
        assert content_of(folder) == {"a.txt": b"ours"}


def test_links_within_a_folder_are_read_and_loops_are_not(folder, recwarn):
    (folder / "again.txt").symlink_to("in/a.txt")
    (folder / "chain.txt").symlink_to(folder / "again.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "in/itself").symlink_to(".")
    (folder / "in/.hidden").symlink_to("../../secret.txt")
    (folder.parent / "named").symlink_to(folder)
    names = {"again.txt", "chain.txt", "in/a.txt"}
    assert content_of(folder.parent / "named") == dict.fromkeys(names, b"ours")
    assert not recwarn.list


@pytest.mark.parametrize("sample", [slack, maildir, mbox], ids=["slack", "maildir", "mbox"])
def test_messages_that_a_link_leads_to_are_not_read(sample, tmp_path):
    folder = write(sample.FILES, tmp_path / "export")
    for number, file in enumerate(sorted(one for one in folder.rglob("*") if one.is_file())):
        file.symlink_to(file.rename(tmp_path / str(number)))
    with pytest.warns(LeftOutWarning, match="left out"):
        assert format_of_export(folder) is None


def test_a_folder_of_dumps_has_no_links_to_others(folder):
    (folder / "a.csv").write_text("a,b\n")
    (folder / "b.csv").symlink_to("a.csv")
    (folder / "c.csv").symlink_to("../secret.txt")
    with pytest.warns(LeftOutWarning, match=r"c\.csv"):
        assert find_files([folder]) == [folder / "a.csv", folder / "b.csv"]


@pytest.mark.parametrize(("one", "other"), [(slack, mbox), (mbox, slack), (zendesk, jira)])
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_files_of_several_programs_are_read(one, other, kind, tmp_path):
    folder = tmp_path / "export"
    write(one.FILES, folder / "a")
    write(other.FILES, folder / "b")
    path = Path(shutil.make_archive(str(folder), "zip", folder)) if kind == "zip" else folder
    names = {sample.__name__.rpartition(".")[2] for sample in (one, other)}
    assert {export.name for export in exports_of(path)} == names
    read, alone = [*entries_of(path)], [[*entries_of(folder / name)] for name in "ab"]
    assert Counter(entry.text for entry in read) == Counter(
        entry.text for entries in alone for entry in entries
    )
    ids = {entry.id for entry in read}
    assert {name.partition(":")[0] for name in ids} == names
    answered = [entry.about["answers"] for entry in read if "answers" in entry.about]
    assert len(answered) == sum("answers" in one.about for entries in alone for one in entries)
    assert ids.issuperset(answered)
    found = extract(path, tmp_path / "pairs", rules="none").counts.pairs
    parts = [extract(folder / name, tmp_path / f"{name}-pairs", rules="none") for name in "ab"]
    assert found == sum(part.counts.pairs for part in parts)


def packed(path: Path, *entries: tuple[str, bytes, bytes | str], mode: str = "w") -> Path:
    """Writes a tar of names, kinds, and their content or the target of a link."""
    with tarfile.open(path, mode) as tar:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if isinstance(content, str):
                entry.linkname = content
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


OURS = ("top/a.txt", tarfile.REGTYPE, b"ours")


def test_names_in_a_tar_stay_within_it_and_the_last_of_a_name_counts(tmp_path):
    path = packed(
        tmp_path / "a.tar",
        ("top/a.txt", tarfile.REGTYPE, b"old"),
        OURS,
        ("../../top/b.txt", tarfile.REGTYPE, b"up"),
        ("/top/c.txt", tarfile.REGTYPE, b"absolute"),
        ("top/a.txt/d.txt", tarfile.REGTYPE, b"in a file"),
        ("top/device", tarfile.CHRTYPE, ""),
        ("top/pipe", tarfile.FIFOTYPE, ""),
    )
    assert content_of(path) == {
        "a.txt": b"ours", "b.txt": b"up", "c.txt": b"absolute", "a.txt/d.txt": b"in a file",
    }  # fmt: skip


def test_links_within_a_tar_are_read(tmp_path, recwarn):
    path = packed(
        tmp_path / "a.tar",
        ("top/in/soft", tarfile.SYMTYPE, "../a.txt"),
        OURS,
        ("top/hard", tarfile.LNKTYPE, "top/a.txt"),
        ("top/chain", tarfile.SYMTYPE, "in/soft"),
        ("top/folder", tarfile.SYMTYPE, "in"),
        ("top/loop", tarfile.SYMTYPE, "pool"),
        ("top/pool", tarfile.SYMTYPE, "loop"),
    )
    assert content_of(path) == dict.fromkeys(["a.txt", "chain", "hard", "in/soft"], b"ours")
    assert not recwarn.list


def test_links_out_of_a_tar_are_left_out_and_named(tmp_path):
    (tmp_path / "secret").write_text("secret")
    path = packed(
        tmp_path / "a.tar",
        OURS,
        ("top/b", tarfile.SYMTYPE, str(tmp_path / "secret")),
        ("top/c", tarfile.SYMTYPE, "../../secret"),
        ("top/d", tarfile.SYMTYPE, "c"),
    )
    with pytest.warns(LeftOutWarning, match="3 links.*top/b, top/c, top/d"):
        assert content_of(path) == {"a.txt": b"ours"}


def zeros(path: Path) -> None:
    packed(path, ("top/a.txt", tarfile.REGTYPE, bytes(70 << 20)), mode="w:gz")


def sparse(path: Path) -> None:
    entry = tarfile.TarInfo("top/a.txt")
    entry.type, entry.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 512)  # where its only piece is
    header[483:495] = b"%011o\0" % (1 << 30)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(bytes(header) + bytes(512 + 1_024))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "itself": lambda path: packed(path, OURS, ("top/b", tarfile.LNKTYPE, "top/b")),
    "nothing": lambda path: packed(path, OURS, ("top/b", tarfile.LNKTYPE, "top/c")),
    "cut": lambda path: path.write_bytes(packed(path, OURS).read_bytes()[:514]),
    "noise": lambda path: path.write_bytes(b"noise" * 500),
    "many names": lambda path: path.write_bytes(_LONG_NAME * 5_000),
    "zeros": zeros,
    "sparse": sparse,
}
_NAME = tarfile.TarInfo("././@LongLink")
_NAME.type, _NAME.size = tarfile.GNUTYPE_LONGNAME, 1
_LONG_NAME = _NAME.tobuf(tarfile.GNU_FORMAT) + bytes(512)


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_tar_that_is_damaged_or_a_bomb_is_one_sentence(tmp_path, kind):
    path = tmp_path / "a.tar"
    DAMAGES[kind](path)
    with pytest.raises(InputError, match=re.escape(str(path))):
        content_of(path)
