"""Which readers are asked: never fewer than those that recognise an export."""

import pytest

from export_samples import slack, write
from rejoinder.exports import FORMATS
from rejoinder.exports.__init__ import candidates
from rejoinder.exports.files import opened

AROUND = 60
"""Files on both sides: more than are looked at for their place alone."""


@pytest.mark.parametrize(
    ("name", "file"),
    [("rocketchat", "rocketchat_message.bson"), ("reddit", "m/RC_2020-01.zst"), ("irc", "m/#rust")],
)
def test_a_file_among_many_is_seen_by_its_name(tmp_path, name, file):
    content = b'{"id": "a", "subreddit": "b", "author": "c", "title": "d", "selftext": "e"}\n'
    rows = {f"{letter}/{n}.png": b"" for letter in "az" for n in range(AROUND)}
    write({**rows, file: content}, tmp_path / "export")
    with opened(tmp_path / "export") as files:
        assert name in candidates(files, FORMATS)


def test_other_readers_are_not_asked(tmp_path):
    write(slack.FILES, tmp_path / "export")
    with opened(tmp_path / "export") as files:
        assert candidates(files, FORMATS) == ["slack"]
