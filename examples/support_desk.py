"""Writes a made-up table of questions to a shop and of its answers.

    python examples/support_desk.py [support.csv]

Each topic has questions in several words, and one or two answers with names and numbers. Every
tenth question is about something else, and is answered in other words each time.
"""

import csv
import random
import sys
from pathlib import Path

TOPICS = (
    (
        ("Where is my parcel?", "My order has not arrived yet.", "When does my parcel arrive?",
         "Still no parcel here, where is it?"),
        ("Sorry for the wait, {name}. Your parcel {number} arrives tomorrow.",),
    ),
    (
        ("How do I return a pair of shoes?", "I want to send the shoes back.",
         "Can I return what I bought?", "The jacket is too small, how do I return it?"),
        ("Hello {name}, print the return label in your account, and bring the box to any shop.",),
    ),
    (
        ("I forgot my password.", "How can I reset my password?", "I can't log in any more.",
         "My password does not work."),
        ("Choose 'Forgot password' on the login page, and we send you a link.",
         "You can reset it on the login page, {name}: choose 'Forgot password'."),
    ),
    (
        ("When do you open?", "What are your opening hours?", "Are you open on Sunday?",
         "Is the shop open today?"),
        ("We open from nine to six, and are closed on Sundays.",),
    ),
    (
        ("I was charged twice.", "You took the money two times.", "Why are there two payments?",
         "My card was charged double."),
        ("Thanks for telling us, {name}. We pay the {number} euros back within five days.",),
    ),
    (
        ("Please cancel my order.", "Can I still cancel the order?", "I don't want it any more.",
         "How do I cancel what I ordered?"),
        ("I cancelled order {number} for you, {name}.",
         "It has left our warehouse, {name}, so please send it back when it arrives."),
    ),
)  # fmt: skip
OTHER = (
    "Do you sell {thing}?", "Who makes your {thing}?", "Is the {thing} vegan?",
    "Does the {thing} fit a child of six?",
)  # fmt: skip
REPLIES = (
    "I have asked the team for {thing} and will write again.", "The {thing} is out of stock.",
    "As far as I know, the {thing} comes from Portugal.", "Yes, the {thing} comes in blue, too.",
)  # fmt: skip
THINGS = "socks hat scarf belt umbrella backpack tent lamp mug raincoat".split()  # noqa: SIM905
NAMES = "Anna Tom Zoe Ben Maria Ali Chen Fatima Lena Omar".split()  # noqa: SIM905
OPENINGS = ("", "", "Hi! ", "Hello, ", "Good morning, ")
ENDINGS = ("", "", " Thanks!", " Can you help?")


def rows(count: int = 1_200, seed: int = 0) -> list[tuple[str, str]]:
    """Returns questions and answers."""
    draw = random.Random(seed)  # noqa: S311 -- made-up conversations need no secrets
    found = []
    for _ in range(count):
        if draw.random() < 0.1:
            thing = draw.choice(THINGS)
            question, answer = draw.choice(OTHER), draw.choice(REPLIES)
        else:
            thing = ""
            questions, answers = draw.choice(TOPICS)
            question, answer = draw.choice(questions), draw.choice(answers)
        question = draw.choice(OPENINGS) + question + draw.choice(ENDINGS)
        known = {"name": draw.choice(NAMES), "number": draw.randrange(10, 10_000), "thing": thing}
        found.append((question.format(**known), answer.format(**known)))
    return found


def main(path: Path) -> None:
    """Writes the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("question", "answer"))
        table.writerows(rows())


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "support.csv")
    main(target)
    print(target)
