"""What an output path means, and what would be lost there."""

import os
from pathlib import Path

import pytest

from rejoinder.errors import InputError, LeftOutWarning, StorageError
from rejoinder.io.files.addresses import Address
from rejoinder.io.files.atomic import new_file, new_folder, unfinished_folder, write_text
from rejoinder.io.files.claims import refuse_inputs, refuse_occupied
from rejoinder.io.files.storage import inside, resolved, scratch_folder, storage_errors


@pytest.mark.parametrize("target", ["full", "absent"])
def test_an_output_that_is_a_link_is_written_where_it_leads(tmp_path, target):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    out = tmp_path / "out"
    out.symlink_to(tmp_path / target)
    with new_folder(out, overwrite=True) as folder:
        (folder / "yours").write_text("yours")
    assert out.readlink() == tmp_path / target
    assert [path.name for path in (tmp_path / target).iterdir()] == ["yours"]
    file = tmp_path / "file"
    file.symlink_to(tmp_path / target / "text")
    write_text(file, "text")
    assert file.is_symlink()
    assert (tmp_path / target / "text").read_text() == "text"


def test_links_that_lead_back_to_themselves_are_one_sentence(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for write in (new_folder, new_file):
        loop = write(tmp_path / "loop")
        with pytest.raises(StorageError, match=r"loop .*link"), loop:
            raise AssertionError("the block ran")


def test_the_root_and_the_current_folder_are_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for path in (".", "..", str(tmp_path)):
        with pytest.raises(InputError, match="current folder"):
            refuse_occupied(Path(path), overwrite=True)
    for use in (resolved, unfinished_folder, lambda path: write_text(path, "text")):
        with pytest.raises(StorageError, match=r"/ .*root folder"):
            use(Path("/"))


def test_a_current_folder_that_is_gone_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StorageError, match="out can't be written"):
        resolved(Path("out"))


def test_inputs_are_not_replaced(tmp_path):
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    shard = pairs / "train.parquet"
    shard.write_text("rows")
    (tmp_path / "file").symlink_to(shard)
    (tmp_path / "folder").symlink_to(pairs)
    lost = [
        (pairs, pairs),
        (pairs, shard),
        (tmp_path, shard),
        (shard, shard),
        (shard, pairs),  # the output is a file of the input folder
        (tmp_path / "folder", pairs),
        (tmp_path / "folder" / "train.parquet", pairs),
        (pairs, tmp_path / "file"),
        (tmp_path / "file", pairs),
        (Path(os.path.relpath(pairs)), str(shard)),
        (Address("s3", "b", "a"), Address("s3", "b", "a")),
        (Address("s3", "b", "a"), Address("s3", "b", "a/x")),
    ]
    for out, read in lost:
        with pytest.raises(InputError, match=r"read.*replace"):
            refuse_inputs(out, ["rejoinder-base", None, read])
    (pairs / "empty").mkdir()
    kept = [
        (pairs / "new", pairs),
        (pairs / "empty", pairs),
        (tmp_path / "out", shard),
        (pairs, tmp_path / "absent"),
        (pairs, "https://host/model.tar"),
        (pairs, "half\0"),
        (pairs, None),
        (Path.cwd(), ""),
        (Address("s3", "b", "a"), pairs),
        (Address("s3", "b", "a"), Address("s3", "b", "ab")),
    ]
    for out, read in kept:
        refuse_inputs(out, [read])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_a_full_disk_is_one_sentence_with_the_free_space(tmp_path):
    out = tmp_path / "new" / "out"
    with (
        pytest.raises(StorageError, match=r"out can't be written: no space .* MB free\)\."),
        storage_errors(out),
        Path("/dev/full").open("wb", buffering=0) as device,
    ):
        device.write(b"a")


def test_links_that_lead_out_of_a_folder_are_left_out(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "own").write_text("own")
    (folder / "within").symlink_to(folder / "own")
    (tmp_path / "other").write_text("other")
    (folder / "out").symlink_to(tmp_path / "other")
    with pytest.warns(LeftOutWarning, match="1 link leads out of it and is left out: out"):
        kept = inside(sorted(folder.iterdir()), folder)
    assert [path.name for path in kept] == ["own", "within"]


def test_a_scratch_folder_is_where_spark_has_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/other")
    with scratch_folder() as folder:
        assert folder.parent == tmp_path
        (folder / "a").write_text("a")
    assert not folder.exists()
