"""Write `small.jsonl`: a made-up dump of comments in the public Reddit schema.

    python examples/make_dump.py examples/small.jsonl

Standard library only; the same bytes each time. Threads of two to six comments about the things
in `intents.toml`, and among them whatever a rule of extraction has to drop or to mend.
"""

import json
import random
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

THREADS = 2_200
SUBREDDITS = ("SmallTalk", "AskANeighbour", "TeaAndToast", "EverydayHelp", "LateNightChat")
PEOPLE = ("maple_tree", "quiet_otter", "late_bus", "blue_kettle", "two_left_socks", "old_map")
OPENERS = ("Hi! ", "Hello there. ", "Quick question: ", "Hey everyone! ", "One more thing. ")
FIRST_WORDS = ("Ha! ", "Hm. ", "Oh! ", "Honestly? ", "Good question. ")
THIRD_TURNS = ("Ah, good to know.", "Same here.", "That makes sense.", "Interesting, tell me more.",
               "Oh, really?", "Lucky you.", "I see.", "That made me smile.")  # fmt: skip
FLAWS: tuple[tuple[str, str], ...] = (
    ("[deleted]", "[deleted]"),
    ("old_map", "[removed]"),
    ("old_map", ""),
    ("old_map", "And then we went on and on about it. " * 10),
    ("old_map", "1234 5678 :-) 90!!! 2 + 2 = 4"),
    ("old_map", "https://example.org/a-page-that-explains-all-of-this"),
    ("old_map", "/r/SmallTalk is the place for that question"),
    ("old_map", "@quiet_otter did you see what they wrote here"),
    ("HelpfulBot", "I am a machine and this action was performed by one"),
)
"""Author and body of comments that are dropped: deleted ones, then one a rule of the paper."""
ENTITIES = (
    "Bread &amp; butter is all I need.",
    "&gt; Which one is better?\n\nThe second one, I would say.",
)

Comment = dict[str, Any]


class Speaker:
    """Fills in templates, by chance."""

    def __init__(self, intents: dict[str, dict[str, list[str]]], seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 -- chance, not secrecy
        self.slots: dict[str, Any] = intents["slots"]
        self.intents = [intents[name] for name in sorted(intents) if name != "slots"]

    def say(self, templates: list[str], starts: tuple[str, ...]) -> str:
        """One of the templates, now and then with one of the starts before it."""
        template = self.chance.choice(templates)
        text = re.sub(r"\{(\w+)\}", lambda slot: self.chance.choice(self.slots[slot[1]]), template)
        text = text[0].upper() + text[1:]
        if self.chance.random() < 0.2:
            text = self.chance.choice(starts) + text
        return text if self.chance.random() < 0.9 else text.rstrip(".").lower()


def conversation(number: int, speaker: Speaker) -> list[Comment]:
    """The comments on one post: a message, replies, perhaps a word on them or another topic."""
    chance = speaker.chance
    thread = f"t3_p{number:05d}"
    comments: list[Comment] = []

    def add(parent: str, body: str) -> str:
        comment = {
            "id": f"c{number:05d}{len(comments):02d}",
            "parent_id": parent,
            "link_id": thread,
            "author": chance.choice(PEOPLE),
            "subreddit": SUBREDDITS[number % len(SUBREDDITS)],
            "created_utc": 1_600_000_000 + 3_600 * number + 60 * len(comments),
            "body": body,
        }
        comments.append(comment)
        return f"t1_{comment['id']}"

    here = thread
    for _ in range(chance.choice((1, 1, 1, 2))):
        intent = chance.choice(speaker.intents)
        asked = add(here, speaker.say(intent["messages"], OPENERS))
        for _ in range(chance.choice((1, 2, 2))):
            here = add(asked, speaker.say(intent["replies"], FIRST_WORDS))
    if len(comments) < 5 and chance.random() < 0.1:
        add(here, chance.choice(THIRD_TURNS))
    return comments


def oddities(number: int, thread: list[Comment]) -> list[Comment]:
    """What real dumps hold besides conversation, one kind after the other."""
    answer = dict(thread[-1], parent_id=f"t1_{thread[0]['id']}")
    odd: list[Comment] = []
    if number % 10 == 0:
        author, body = FLAWS[number // 10 % len(FLAWS)]
        odd.append(dict(answer, id=f"x{number:05d}", author=author, body=body))
    if number % 50 == 0:
        odd.append(dict(answer, id=f"y{number:05d}", parent_id="t1_elsewhere"))
    if number % 70 == 0:
        odd.append(dict(answer, id=f"z{number:05d}", body=ENTITIES[number // 70 % len(ENTITIES)]))
    return odd


def dump(intents: dict[str, Any]) -> str:
    """The whole dump."""
    speaker = Speaker(intents, seed=2018)
    comments: list[Comment] = []
    for number in range(THREADS):
        thread = conversation(number, speaker)
        comments += [*thread, *oddities(number, thread)]
    comments.append(dict(comments[5]))  # the same comment twice
    comments.append(dict(comments[7], body="Another text under an id that is taken"))
    lines = [json.dumps(comment, ensure_ascii=False) for comment in comments]
    lines.insert(100, '{"id": "broken", "body": "a line that was cut')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    definitions = Path(__file__).with_name("intents.toml").read_text("utf-8")
    Path(sys.argv[1]).write_bytes(dump(tomllib.loads(definitions)).encode("utf-8"))
