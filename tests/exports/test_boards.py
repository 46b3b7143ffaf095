"""Submissions with comments are an export of Reddit; comments alone are not."""

import json

from rejoinder.exports import format_of_export

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


def listing(*children: object) -> dict[str, object]:
    return {"kind": "Listing", "data": {"after": None, "children": list(children)}}


def thing(kind: str, id_: str, time: float, **others: object) -> dict[str, object]:
    data = {"id": id_, "author": "ann", "subreddit": "help", "created_utc": time, **others}
    return {"kind": kind, "data": data}


def test_a_page_holds_a_submission_and_its_comments(read):
    post = thing("t3", "p", 1.0, title="Open?", selftext="", num_comments=3)
    answer = {"body": "No", "parent_id": "t1_c1", "link_id": "t3_p", "edited": False}
    inner = listing(thing("t1", "c2", 3.0, **answer), {"kind": "more", "data": {"count": 1}})
    comment = {"body": "At R&amp;D", "parent_id": "t3_p", "link_id": "t3_p", "replies": inner}
    page = [listing(post), listing(thing("t1", "c1", 2.0, **comment), {"kind": "t1", "data": 7})]
    malformed, *found = read("reddit", {"page.json": page})
    assert [(one.id, one.parent, one.thread, one.text) for one in found] == [
        ("post/p", None, "post/p", "Open?"),
        ("c1", "post/p", "post/p", "At R&D"),
        ("c2", "c1", "post/p", "No"),
    ]
    assert malformed.line == 4


def test_comments_alone_may_be_a_page(read):
    body = {"body": "Yes", "parent_id": "t1_x", "link_id": "t3_p", "replies": ""}
    [found] = read("reddit", {"comments.json": listing(thing("t1", "c", 1.0, **body))})
    assert (found.id, found.parent) == ("c", "x")
