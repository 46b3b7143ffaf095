"""Addresses: what they are made of, and files and folders at them, on a server of the test."""

import gzip
import json
import os
from pathlib import Path
from uuid import uuid4

import pytest

from rejoinder.errors import BusyError, InputError, StorageError
from rejoinder.io.files.addresses import (
    MARKER,
    Address,
    any_path,
    check_ours,
    clear,
    local_copy,
    new_folder_at,
    size_of,
    write_whole,
)
from rejoinder.io.formats.compression import compression, decompressed
from s3_server import check_keys


@pytest.fixture
def folder(s3) -> Address:
    """An address where nothing is."""
    return Address("s3", "tests", uuid4().hex)


def names(folder: Address) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("s3://bucket/a/RC_*.zst", ("s3", "bucket", "a/RC_*.zst", "")),
        ("S3A://bucket/a/", ("s3", "bucket", "a", "")),
        ("s3://bucket", ("s3", "bucket", "", "")),
        ("s3://bucket/a b#c?d%20", ("s3", "bucket", "a b#c?d%20", "")),
        ("s3://bucket/RC_0?.zst", ("s3", "bucket", "RC_0?.zst", "")),
        (
            "s3://bucket/RC_0?.zst?endpoint_override=localhost:9000&scheme=http",
            ("s3", "bucket", "RC_0?.zst", "endpoint_override=localhost:9000&scheme=http"),
        ),
        (
            "abfss://container@account.dfs.core.windows.net/a",
            ("abfss", "container@account.dfs.core.windows.net", "a", ""),
        ),
        ("hdfs:///a/b", ("hdfs", "", "a/b", "")),
    ],
)
def test_an_address_is_taken_apart(text, parts):
    address = any_path(text)
    assert isinstance(address, Address)
    assert (address.scheme, address.store, address.key, address.query) == parts


def test_paths_stay_paths():
    for text in ("a/b", "/a/b", "a:b", "C:\\a", ".", "a//b", "RC_*"):
        assert any_path(text) == Path(text)
    assert any_path("file:///a/b") == Path("/a/b")
    assert any_path(Path("s3://bucket/key")) == Address("s3", "bucket", "key")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ftp://host/a", "'ftp'.*s3://, s3a://, gs://"),
        ("s3:///a", "s3:///a .*bucket.*s3://BUCKET/KEY"),
        ("s3://name:word@bucket/a", r"^s3://…@bucket.*password"),
    ],
)
def test_text_that_is_not_an_address_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        any_path(text)


def test_a_file_is_written_read_and_removed(folder):
    content = os.urandom(20 << 20)  # several requests, each way
    file = folder / "a.b.zst"
    assert not file.exists()
    file.put(content)
    assert (file.is_file(), file.is_dir(), size_of(file)) == (True, False, len(content))
    assert (file.name, file.suffixes) == ("a.b.zst", [".b", ".zst"])
    with file.open("rb") as opened:
        assert opened.read(8) == content[:8]
        assert opened.read() == content[8:]
    with local_copy(file) as copy:
        assert copy.read_bytes() == content
    assert not copy.parent.exists()
    file.remove()
    file.remove()
    assert not file.exists()


def test_compressed_files_are_read_as_on_disk(folder):
    text = b"".join(b"%d\n" % number for number in range(100_000))
    file = folder / "numbers"
    file.put(gzip.compress(text))
    assert compression(file) == ".gz"
    read: list[int] = []
    assert b"".join(decompressed(file, read.append)) == text
    assert sum(read) == size_of(file)
    file.put(gzip.compress(text)[:-9])
    with pytest.raises(InputError, match=rf"^{file} is cut short"):
        list(decompressed(file))


def test_patterns_match_within_parts_of_a_key(folder):
    for name in ("RC_1.zst", "RC_2.zst", "RC_10.zst", ".RC_3.zst", "in/RC_4.zst", "in/a#[1] é?"):
        (folder / name).put(b"")

    def found(pattern: str) -> list[str]:
        return sorted(str(at).removeprefix(f"{folder}/") for at in (folder / pattern).matches())

    assert found("RC_*.zst") == ["RC_1.zst", "RC_10.zst", "RC_2.zst"]
    assert found("RC_?.zst") == ["RC_1.zst", "RC_2.zst"]
    assert found("RC_[2-9]*") == ["RC_2.zst"]
    assert found("*/RC_4.zst") == found("i[n]/*.zst") == ["in/RC_4.zst"]
    assert found("*") == ["RC_1.zst", "RC_10.zst", "RC_2.zst", "in"]
    assert found(".RC*") == [".RC_3.zst"]
    assert found("in/a*") == ["in/a#[1] é?"]
    assert found("*/none") == found("none/*") == []
    assert {entry.name: entry.kind for entry in folder.iterdir()}["in"] == "folder"


def test_what_a_store_refuses_is_one_sentence(s3, folder, monkeypatch):
    with pytest.raises(InputError, match=r"read.*bucket 'nobody'"):
        any_path("s3://nobody/a").looked_up()
    with pytest.raises(StorageError, match=r"written.*bucket 'nobody'"):
        any_path("s3://nobody/a").put(b"")
    with pytest.raises(InputError, match=r"/none .*no such file"):
        (folder / "none").open()
    with pytest.raises(InputError, match="'colour'"):
        any_path("s3://tests/a?colour=red").looked_up()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    check_keys(s3, requests="0")
    try:
        with pytest.raises(InputError, match=r"denied.*AWS_PROFILE"):
            any_path("s3://tests/a?region=eu-west-1").looked_up()
    finally:
        check_keys(s3, requests="inf")


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_one_sentence(monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    address = any_path("s3://bucket/a?endpoint_override=127.0.0.1:9&scheme=http")
    with pytest.raises(InputError, match=r"AWS_ENDPOINT_URL.*endpoint_override"):
        address.looked_up()


def test_files_of_other_file_systems_are_renamed_when_they_are_whole(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    write_whole(fs.LocalFileSystem(), f"{tmp_path}/in/a", f"{tmp_path}/in/a.part", b"content")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["a"]
    assert (tmp_path / "in" / "a").read_bytes() == b"content"


def write(folder: Address, *, marker: bytes = b"", fails: bool = False, **options: bool) -> None:
    with new_folder_at(folder, **options):
        clear(folder, "last")
        (folder / "a").put(b"a")
        if marker:
            (folder / MARKER).put(marker)
        if fails:
            raise ZeroDivisionError
        check_ours(folder)
        (folder / "last").put(b"last")


def test_a_folder_is_marked_until_it_is_whole(folder):
    with new_folder_at(folder):
        assert names(folder) == [MARKER]
        clear(folder, "last")
        (folder / "a").put(b"a")
    assert names(folder) == ["a"]
    with pytest.raises(InputError, match="exists and is not empty"):
        write(folder)
    (folder / "in/b").put(b"b")
    write(folder, overwrite=True)
    assert names(folder) == ["a", "last"]


def test_a_folder_that_fails_is_as_it_was_until_it_is_cleared(folder):
    write(folder)
    with pytest.raises(ZeroDivisionError), new_folder_at(folder, overwrite=True):
        raise ZeroDivisionError
    assert names(folder) == ["a", "last"]
    with pytest.raises(ZeroDivisionError):
        write(folder, overwrite=True, fails=True)
    assert names(folder) == []
    write(folder)


def test_what_a_killed_run_left_is_replaced_unless_it_is_of_others(folder):
    (folder / MARKER).put(json.dumps({"run": "1", "all_is_of_unfinished_runs": True}).encode())
    (folder / "b").put(b"b")
    write(folder)
    assert names(folder) == ["a", "last"]
    for marker in ({"run": "1", "all_is_of_unfinished_runs": False}, []):
        (folder / MARKER).put(json.dumps(marker).encode())
        with pytest.raises(InputError, match="exists and is not empty"):
            write(folder)
    (folder / MARKER).put(b"no JSON")
    write(folder, overwrite=True)
    assert names(folder) == ["a", "last"]


def test_two_commands_do_not_mix_what_they_write(folder):
    other = {"run": "2", "by": "process 2", "all_is_of_unfinished_runs": True}
    with pytest.raises(BusyError, match="process 2"):
        write(folder, marker=json.dumps(other).encode())
    assert names(folder) == [MARKER, "a"]


def test_files_and_buckets_are_refused_as_output_folders(folder):
    (folder / "a").put(b"a")
    with pytest.raises(InputError, match="/a is a file"):
        write(folder / "a", overwrite=True)
    with pytest.raises(InputError, match=r"s3://tests/ .*bucket"):
        write(Address("s3", "tests", ""), overwrite=True)
    with pytest.raises(InputError, match="bucket 'nobody'"):
        write(Address("s3", "nobody", "a"))
