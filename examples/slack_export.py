"""Writes a made-up export of Slack.

    python examples/slack_export.py [slack-export.zip]

The threads of `small.jsonl`, small talk, become threads of channels. In one more channel, people
ask what `support_desk.py` answers, over and over.
"""

import json
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support_desk import NAMES, rows

CONVERSATIONS = Path(__file__).resolve().parent / "small.jsonl"
QUESTIONS = 800
"""Number of questions in the channel of the support desk."""


def write_export(path: Path) -> None:
    """Writes the zip archive: `users.json`, `channels.json`, and a file for each channel's day."""
    comments = [*_comments(), *_desk()]
    people = sorted({comment["author"] for comment in comments})
    users = {name: f"U{number:05}" for number, name in enumerate(people, 1)}
    days: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    first: dict[str, str] = {}
    for number, comment in enumerate(comments):
        ts = f"{comment['created_utc']}.{number:06}"
        day = datetime.fromtimestamp(comment["created_utc"], UTC).date()
        days[f"{comment['subreddit']}/{day}.json"].append(
            {
                "type": "message",
                "user": users[comment["author"]],
                "ts": ts,
                "thread_ts": first.setdefault(comment["link_id"], ts),
                "text": comment["body"],
            }
        )
    channels = {name.partition("/")[0] for name in days}
    contents: dict[str, list[dict[str, Any]]] = {
        "users.json": [{"id": key, "name": name} for name, key in users.items()],
        "channels.json": [{"name": name} for name in sorted(channels)],
        **days,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            packed = json.dumps(content)
            archive.writestr(zipfile.ZipInfo(name), packed, zipfile.ZIP_DEFLATED)


def _comments() -> list[dict[str, Any]]:
    comments = []
    for line in CONVERSATIONS.read_text("utf-8").splitlines():
        try:
            comment = json.loads(line)
        except ValueError:
            continue  # a few lines are broken on purpose
        if isinstance(comment, dict) and {"author", "created_utc", "body", "link_id"} <= {*comment}:
            comments.append(comment)
    return comments


def _desk() -> Iterator[dict[str, Any]]:
    for number, (question, answer) in enumerate(rows(QUESTIONS)):
        asked = 1_600_000_000 + 9_900 * number
        by = NAMES[number % len(NAMES)].lower()
        for author, time, body in ((by, asked, question), ("help_desk", asked + 300, answer)):
            yield {
                "author": author,
                "subreddit": "Customers",
                "link_id": f"desk{number}",
                "created_utc": time,
                "body": body,
            }


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "slack-export.zip")
    write_export(target)
    print(target)
