"""Submissions with comments are an export of Reddit; comments alone are not."""

import json

from rejoinder.corpus.exports import format_of_export

COMMENT = {"id": "c", "author": "a", "subreddit": "s", "body": "b", "link_id": "t3_p"}
SUBMISSION = {"id": "p", "author": "a", "subreddit": "s", "title": "t", "selftext": ""}


def test_comments_alone_are_no_export(tmp_path):
    (tmp_path / "RC_2024-03").write_text(json.dumps(COMMENT) + "\n")
    (tmp_path / "RC_2024-04").write_text(json.dumps(COMMENT) + "\n")
    assert format_of_export(tmp_path) is None
    assert format_of_export(tmp_path / "RC_2024-03") is None
    (tmp_path / "RS_2024-03").write_text(json.dumps(SUBMISSION) + "\n")
    found = format_of_export(tmp_path)
    assert found is not None
    assert found.name == "reddit"


def test_both_may_be_in_one_file(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(f"{json.dumps(SUBMISSION)}\n{json.dumps(COMMENT)}\n")
    found = format_of_export(path)
    assert found is not None
    assert found.name == "reddit"
