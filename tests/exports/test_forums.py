"""Pages of the interface of Stack Exchange hold the same messages as a dump."""

from rejoinder.exports.base import Message

OWNER = {"user_id": 7, "display_name": "Ann &amp; Bob", "link": "https://ports.example.org/users/7"}
COMMENT = {"comment_id": 30, "post_id": 2, "owner": OWNER, "creation_date": 300, "body": "Thanks"}
ANSWER = {
    "answer_id": 2,
    "question_id": 1,
    "owner": {"user_type": "does_not_exist", "display_name": "user9"},
    "creation_date": 200,
    "last_edit_date": 250,
    "body": "<blockquote><p>Which</p></blockquote><p>Port <code>8000</code></p>",
}
QUESTION = {
    "question_id": 1,
    "title": "Which &quot;port&quot;?",
    "owner": OWNER,
    "creation_date": 100,
    "link": "https://ports.example.org/questions/1/which-port",
    "body_markdown": "For **R&amp;D**",
}
SITE = "ports.example.org"


def page(*items: object) -> dict[str, object]:
    return {"items": list(items), "has_more": False, "quota_max": 300, "quota_remaining": 299}


MESSAGES = [
    Message(
        id=f"{SITE}/1",
        text='Which "port"?\nFor R&D',
        thread=f"{SITE}/1",
        author="Ann & Bob",
        time=100,
        source=SITE,
        link=f"https://{SITE}/q/1",
    ),
    Message(
        id=f"{SITE}/2",
        text="Port 8000",
        parent=f"{SITE}/1",
        thread=f"{SITE}/1",
        author="user9",
        time=200,
        source=SITE,
        link=f"https://{SITE}/q/2",
        edited=True,
    ),
    Message(
        id=f"{SITE}/comment/30",
        text="Thanks",
        parent=f"{SITE}/2",
        thread=f"{SITE}/1",
        author="Ann & Bob",
        time=300,
        source=SITE,
    ),
]


def test_a_question_holds_its_answers_and_comments(read):
    whole = {**QUESTION, "answers": [{**ANSWER, "comments": [COMMENT]}]}
    assert read("stackexchange", {"page-1.json": page(whole)}) == MESSAGES


def test_answers_and_comments_may_be_in_other_pages(read):
    linked = {**ANSWER, "link": f"https://{SITE}/questions/1/which-port/2#2"}
    files = {"a.json": page(COMMENT), "b.json": page(linked), "c.json": page(QUESTION)}
    assert read("stackexchange", files) == MESSAGES


def test_what_makes_no_sense_is_told(read):
    whole = {**QUESTION, "answers": [ANSWER, {"answer_id": 4}, 5], "comments": None}
    found = read("stackexchange", {"page-1.json": page(whole, {"question_id": "x"})})
    assert [one for one in found if isinstance(one, Message)] == MESSAGES[:2]
    assert len(found) == 5
