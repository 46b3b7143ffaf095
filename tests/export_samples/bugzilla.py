"""The page of a bug in XML, and pages of the interface: bugs, and comments by bug."""

from functools import partial
from typing import Any

from export_samples import message

_XML = """<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>
<!DOCTYPE bugzilla SYSTEM "https://bugs.example.org/page.cgi?id=bugzilla.dtd">
<bugzilla version="5.0" urlbase="https://bugs.example.org/">
 <bug>
  <bug_id>7</bug_id>
  <short_desc>Crash on start</short_desc>
  <product>Viewer</product>
  <long_desc isprivate="0">
   <commentid>70</commentid><comment_count>0</comment_count>
   <who name="Ann A.">ann@example.org</who>
   <bug_when>2024-03-01 10:00:00 +0200</bug_when>
   <thetext>Created attachment 3 [details]
a trace

It says &lt;null&gt;</thetext>
  </long_desc>
  <long_desc isprivate="1">
   <commentid>71</commentid>
   <who>bob@example.org</who>
   <bug_when>2024-03-01 00:01 PST</bug_when>
   <thetext>(In reply to Ann A. from comment #0)
&gt; It says &lt;null&gt;

Not again</thetext>
  </long_desc>
 </bug>
</bugzilla>
"""


def _comment(number: int, text: str, **others: Any) -> dict[str, Any]:
    return {
        "id": 80 + number,
        "bug_id": 8,
        "count": number,
        "creator": "ann@example.org",
        "time": f"2024-03-01T08:1{number}:00Z",
        "text": text,
        "is_private": False,
        **others,
    }


def _bug(number: int, minute: int) -> dict[str, Any]:
    return {
        "id": number,
        "summary": f"Bug {number}",
        "product": "Viewer",
        "creator": "ann@example.org",
        "creator_detail": {"real_name": "Ann A."},
        "creation_time": f"2024-03-01T08:{minute}:00Z",
    }


_COMMENTS = [
    _comment(0, "It is slow"),
    _comment(1, "Since when?", creator="bob@example.org"),
    _comment(2, "(In reply to bob from comment #1)\n> Since when?\n\nSince 2.0"),
    _comment(3, "*** This bug has been marked as a duplicate of bug 7 ***"),
    _comment(4, "Pushed", creator="pulse@bots.example.org"),
]
FILES: dict[str, Any] = {
    "bug7.xml": _XML,
    "bugs.json": {"bugs": [_bug(8, 10), _bug(9, 30)]},
    "comments.json": {"bugs": {"8": {"comments": _COMMENTS}, "9": {"comments": []}}},
}
_message = partial(message, source="Viewer")
_ANN, _BOB = "ann@example.org", "bob@example.org"
MESSAGES = [
    _message("7/70", "Crash on start\na trace\n\nIt says <null>", "Ann A.", 0),
    _message("7/71", "Not again", _BOB, 1, parent="7/70", is_private=True),
    _message("8/80", "Bug 8\nIt is slow", _ANN, 10),
    _message("8/81", "Since when?", _BOB, 11),
    _message("8/82", "Since 2.0", _ANN, 12, parent="8/81"),
    _message("8/83", _COMMENTS[3]["text"], _ANN, 13, is_system=True),
    _message("8/84", "Pushed", "pulse@bots.example.org", 14, is_bot=True),
    _message("9", "Bug 9", "Ann A.", 30),
]
BROKEN = {
    "bugs.json": {"bugs": [{"id": 5}, *FILES["bugs.json"]["bugs"], "none"]},
    "comments.json": {"bugs": {"8": {"comments": [*_COMMENTS, {"id": 99}, None]}, "10": 4}},
}
EMPTY = {"bugs.json": {"bugs": []}}
REAL = {
    "bugzilla/bugzilla_bugs_details.xml": (9, 0, 0, 0),
    "bugzilla/bugzilla_rest_bugs.json": (2, 0, 0, 0),
    "bugzilla/bugzilla_rest_bugs_comments.json": (7, 0, 0, 0),
    "bugzilla": (17, 0, 0, 0),
}
