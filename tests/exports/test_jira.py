"""Texts of Jira, and its tables."""

from typing import Any

from rejoinder.exports.base import Message
from rejoinder.exports.jira import document_text, wiki_text

TABLE = '''\
\ufeffSummary,Issue key,Issue id,Project key,Reporter,Reporter Id,Created,Description,Comment,Comment
Sign-in fails,WEB-1,500,WEB,Ann,a:1,01/Mar/24 8:00 AM,"Since *today*:
""Stop""",01/Mar/24 8:05 AM;b:2;Which browser; and when?,"01/Mar/24 8:06 AM;a:1;{quote}Which{quote}
All of them"
Slow,WEB-2,501,WEB,Bob,b:2,2024-03-01 09:00,,,
,,,,,,,,,
'''  # noqa: E501


def said(messages: list[Message]) -> list[tuple[str, str, str]]:
    return [(message.id, message.author, message.text) for message in messages]


def test_texts_of_jira():
    deep: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(500):
        deep = {"type": "paragraph", "content": [deep]}
    assert document_text(deep) == ""
    assert document_text({"type": "doc", "content": None}) == ""
    text = "bq. So?\nh2. No\n{code}a_b_ *c*{code} a_b_c _d_ {color:red}*e*{color} !x.png|thumbnail!"
    assert wiki_text(text) == "No\na_b_ *c* a_b_c d e"
    assert wiki_text("||a||b||\n|1|{{2}}|\n* one\n# two\n-no") == "a||b\n1|2\none\ntwo\n-no"


def test_jira_exports_a_table_with_a_column_for_each_comment(read):
    *found, malformed = read("jira", {"issues.csv": TABLE})
    assert said(found) == [
        ("500", "Ann", 'Sign-in fails\nSince today:\n"Stop"'),
        ("500/comment-1", "Bob", "Which browser; and when?"),
        ("500/comment-2", "Ann", "All of them"),
        ("501", "Bob", "Slow"),
    ]
    assert [one.time for one in found] == [1709280000.0 + 60 * minute for minute in (0, 5, 6, 60)]
    assert malformed.file == "issues.csv"
    assert {one.source for one in found} == {"WEB"}


def test_other_tables_of_jira(read):
    table = TABLE.replace(",", ";").replace("Comment", "Labels", 1)
    found = read("jira", {"a.csv": table, "b.csv": "Summary,Key\nx,y\n"})
    assert [one.id for one in found[:-1]] == ["500", "500/comment-1", "501"]
