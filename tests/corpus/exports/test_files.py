"""Files of exports: what folders and archives hold that is not theirs."""

import os
from pathlib import Path

import pytest

from export_samples import maildir, mbox, slack, write
from rejoinder.corpus.exports import format_of_export
from rejoinder.corpus.exports.files import opened
from rejoinder.corpus.reading.files import find_files
from rejoinder.errors import LeftOutWarning


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
    os.symlink("../../secret.txt", folder / "in/chain")
    os.symlink(target.format(folder.parent), folder / "in/link.txt")
    with pytest.warns(LeftOutWarning, match=r"2 links.*in/chain, in/link\.txt"):
        assert content_of(folder) == {"a.txt": b"ours"}


def test_links_within_a_folder_are_read_and_loops_are_not(folder, recwarn):
    os.symlink("in/a.txt", folder / "again.txt")
    os.symlink(folder / "again.txt", folder / "chain.txt")
    os.symlink("loop", folder / "loop")
    os.symlink(".", folder / "in/itself")
    os.symlink("../../secret.txt", folder / "in/.hidden")
    os.symlink(folder, folder.parent / "named")
    names = {"again.txt", "chain.txt", "in/a.txt"}
    assert content_of(folder.parent / "named") == dict.fromkeys(names, b"ours")
    assert not recwarn.list


@pytest.mark.parametrize("sample", [slack, maildir, mbox], ids=["slack", "maildir", "mbox"])
def test_messages_that_a_link_leads_to_are_not_read(sample, tmp_path):
    folder = write(sample.FILES, tmp_path / "export")
    for number, file in enumerate(sorted(one for one in folder.rglob("*") if one.is_file())):
        os.symlink(file.rename(tmp_path / str(number)), file)
    with pytest.warns(LeftOutWarning, match="left out"):
        assert format_of_export(folder) is None


def test_a_folder_of_dumps_has_no_links_to_others(folder):
    (folder / "a.csv").write_text("a,b\n")
    os.symlink("a.csv", folder / "b.csv")
    os.symlink("../secret.txt", folder / "c.csv")
    with pytest.warns(LeftOutWarning, match=r"c\.csv"):
        assert find_files([folder]) == [folder / "a.csv", folder / "b.csv"]
