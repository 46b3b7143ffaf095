"""Write `small.jsonl`: a made-up dump of comments in the public Reddit schema.

    python examples/make_dump.py examples/small.jsonl

Standard library only; the same bytes each time. Threads of two to six comments about the things
in `intents.py`, and among them whatever a rule of extraction has to drop.
"""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from intents import INTENTS, SLOTS

THREADS = 2_600
SUBREDDITS = ("SmallTalk", "AskANeighbour", "TeaAndToast", "EverydayHelp")
PEOPLE = ("maple_tree", "quiet_otter", "late_bus", "blue_kettle", "two_left_socks", "old_map")
OPENERS = ("", "", "", "Hi! ", "Well, ", "Hm, ", "Oh, ", "By the way, ")
CLOSERS = ("", "", "", " :)", " Honestly.", " I think.", " What about you?")

Comment = dict[str, Any]


def say(templates: tuple[str, ...], chance: random.Random) -> str:
    """One of the templates with its words in braces chosen."""
    filled = re.sub(
        r"\{(\w+)\}", lambda slot: chance.choice(SLOTS[slot[1]]), chance.choice(templates)
    )
    return filled[0].upper() + filled[1:]


def conversation(number: int, chance: random.Random) -> list[Comment]:
    """A post's comments: a message, replies to it, and perhaps the next topic."""
    thread = f"t3_p{number:05d}"
    comments: list[Comment] = []

    def add(parent: str, body: str) -> str:
        name = f"c{number:05d}{len(comments):02d}"
        comments.append(
            {
                "id": name,
                "parent_id": parent,
                "link_id": thread,
                "author": chance.choice(PEOPLE),
                "subreddit": SUBREDDITS[number % len(SUBREDDITS)],
                "created_utc": 1_600_000_000 + 3_600 * number + 60 * len(comments),
                "body": body,
            }
        )
        return f"t1_{name}"

    here = thread
    for _ in range(chance.choice((1, 1, 1, 2))):
        messages, replies = INTENTS[chance.choice(sorted(INTENTS))]
        asked = add(here, chance.choice(OPENERS) + say(messages, chance))
        for _ in range(chance.choice((1, 1, 2))):
            here = add(asked, say(replies, chance) + chance.choice(CLOSERS))
    return comments


def flawed(number: int, parent: str, thread: str) -> Comment:
    """A comment that some rule drops, the rules in turn."""
    bodies = (
        "[deleted]",
        "[removed]",
        "",
        "And then we went on and on about it. " * 10,
        "1234 5678 :-) 90!!! 2 + 2 = 4",
        "https is how this comment starts, as links do",
        "/r/SmallTalk is the place for that question",
        "@quiet_otter did you see what they wrote here",
        "I am a machine and this action was performed by one",
    )
    kind = number % len(bodies)
    return {
        "id": f"x{number:05d}",
        "parent_id": parent,
        "link_id": thread,
        "author": "HelpfulBot" if kind == len(bodies) - 1 else "old_map",
        "subreddit": SUBREDDITS[0],
        "created_utc": 1_600_000_000,
        "body": bodies[kind],
    }


def dump() -> list[str]:
    """The lines of the dump."""
    chance = random.Random(2018)  # noqa: S311 -- chance, not secrecy
    comments: list[Comment] = []
    for number in range(THREADS):
        thread = conversation(number, chance)
        comments += thread
        if number % 10 == 0:
            parent = f"t1_{thread[0]['id']}"
            comments.append(flawed(number // 10, parent, thread[0]["link_id"]))
        if number % 50 == 0:
            lost = dict(thread[-1], id=f"y{number:05d}", parent_id="t1_elsewhere")
            comments.append(lost)
        if number % 70 == 0:
            entity = "Bread &amp; butter is all I need, said the fox &gt; the hen"
            comments.append(dict(thread[-1], id=f"z{number:05d}", body=entity))
    comments.append(dict(comments[5]))  # the same comment twice
    comments.append(dict(comments[7], body="Another text under an id that is taken"))
    lines = [json.dumps(comment, ensure_ascii=False) for comment in comments]
    lines.insert(100, '{"id": "broken", "body": "a line that was cut')
    return lines


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(dump()) + "\n", "utf-8")
