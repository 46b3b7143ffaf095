"""Makes exports of any size, whose texts are those of real comments.

    python benchmarks/large_exports.py mbox ../shared/data/conversations/reddit_2015.jsonl.zst \
        --size 2GB --out big.mbox

The comments are copied as often as needed under other ids; one is said every 20 seconds, by one of
10,000 people. The same arguments give the same bytes.
"""

import argparse
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

from rejoinder.io.files.addresses import AnyPath
from rejoinder.io.formats.compression import decompressed
from rejoinder.io.formats.shown import parse_bytes

BEGIN, PAUSE, PEOPLE = 1_420_070_400, 20, 10_000


class Said(NamedTuple):
    """A message."""

    number: int
    """From 1."""
    answers: int
    """The number of the message that it answers; 0 for none."""
    first: int
    """The number of the first message of its thread."""
    author: int
    channel: str
    text: str

    @property
    def time(self) -> int:
        return BEGIN + self.number * PAUSE

    @property
    def when(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


def messages(comments: AnyPath) -> Iterator[Said]:
    """Yields the comments of a dump, of which the threads stand together, again and again."""
    numbers = count(1)
    while True:
        thread, known = "", dict[str, int]()
        rest = b""
        for piece in decompressed(comments):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                row = json.loads(line)
                if row["link_id"] != thread:
                    thread, known = row["link_id"], {}
                number = known[row["id"]] = next(numbers)
                yield Said(
                    number,
                    known.get(row.get("parent_id", "").removeprefix("t1_"), 0),
                    next(iter(known.values())),
                    number * 7_919 % PEOPLE,
                    row.get("subreddit", "general"),
                    row["body"],
                )


def slack(said: Iterator[Said], size: int, out: Path) -> None:
    """A zip archive with a file for each channel and day."""
    written, day = 0, 0
    days: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    people = [{"id": f"U{one:06}", "name": f"person{one}"} for one in range(PEOPLE)]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("users.json", json.dumps(people))
        archive.writestr("channels.json", "[]")
        for one in said:
            if one.time // 86_400 != day:
                for name, rows in days.items():
                    content = json.dumps(rows)
                    archive.writestr(name, content)
                    written += len(content)
                if written > size:
                    return
                day = one.time // 86_400
                days.clear()
            thread = {"thread_ts": f"{BEGIN + one.first * PAUSE}.000100"}
            days[f"{one.channel}/{one.when:%Y-%m-%d}.json"].append(
                {
                    "type": "message",
                    "user": f"U{one.author:06}",
                    "ts": f"{one.time}.000100",
                    "text": one.text,
                    **thread,
                }
            )


def telegram(said: Iterator[Said], size: int, out: Path) -> None:
    """A document with one group."""
    with out.open("w") as file:
        file.write('{"name": "Group", "type": "private_supergroup", "id": 7, "messages": [\n')
        for one in said:
            row: dict[str, Any] = {
                "id": one.number,
                "type": "message",
                "date": f"{one.when:%Y-%m-%dT%H:%M:%S}",
                "date_unixtime": str(one.time),
                "from": f"Person {one.author}",
                "from_id": f"user{one.author}",
                "text": one.text,
                "text_entities": [{"type": "plain", "text": one.text}],
            }
            if one.answers:
                row["reply_to_message_id"] = one.answers
            file.write(json.dumps(row, ensure_ascii=False))
            if file.tell() > size:
                file.write("]}\n")
                return
            file.write(",\n")


def discord(said: Iterator[Said], size: int, out: Path) -> None:
    """A folder with a document for each channel."""
    out.mkdir()
    files: dict[str, IO[str]] = {}
    written = 0
    for one in said:
        begins = one.channel not in files
        if begins:
            files[one.channel] = (out / f"{one.channel}.json").open("w")
            about = {"id": one.channel, "type": "GuildTextChat", "name": one.channel}
            head = {"guild": {"id": "1", "name": "Made up"}, "channel": about}
            files[one.channel].write(json.dumps(head)[:-1] + ', "messages": [\n')
        row: dict[str, Any] = {
            "id": str(one.number),
            "type": "Reply" if one.answers else "Default",
            "timestamp": one.when.isoformat(),
            "timestampEdited": None,
            "isPinned": False,
            "content": one.text,
            "author": {
                "id": str(one.author),
                "name": f"person{one.author}",
                "nickname": f"Person {one.author}",
                "isBot": False,
            },
            "attachments": [],
            "embeds": [],
            "reactions": [],
        }
        if one.answers:
            row["reference"] = {"messageId": str(one.answers), "channelId": one.channel}
        text = ("" if begins else ",\n") + json.dumps(row, ensure_ascii=False)
        written += files[one.channel].write(text)
        if written > size:
            break
    for file in files.values():
        file.write("]}\n")
        file.close()


def whatsapp(said: Iterator[Said], size: int, out: Path) -> None:
    """A chat as Android writes it."""
    with out.open("w") as file:
        for one in said:
            file.write(f"{one.when:%d/%m/%Y, %H:%M} - Person {one.author}: {one.text}\n")
            if file.tell() > size:
                return


def irc(said: Iterator[Said], size: int, out: Path) -> None:
    """A folder with a log for each channel; answers begin with a name."""
    out.mkdir()
    files: dict[str, IO[str]] = {}
    authors: dict[int, int] = {}
    written = 0
    for one in said:
        if one.number == one.first:
            authors.clear()
        authors[one.number] = one.author
        if one.channel not in files:
            files[one.channel] = (out / f"#{one.channel}.log").open("w")
        name = f"person{authors[one.answers]}: " if one.answers else ""
        text = f"{name}{one.text}".replace("\n", " ")
        line = f"{one.when:%Y-%m-%d %H:%M:%S} <person{one.author}> {text}\n"
        written += files[one.channel].write(line)
        if written > size:
            break
    for file in files.values():
        file.close()


def mbox(said: Iterator[Said], size: int, out: Path) -> None:
    """An archive of a list; answers quote what they answer."""
    texts: dict[int, str] = {}
    with out.open("w") as file:
        for one in said:
            if one.number == one.first:
                texts.clear()
            texts[one.number] = one.text
            host = "lists.example.org"
            lines = [
                f"From person{one.author}@{host}  {one.when:%a %b %d %H:%M:%S %Y}",
                f"Received: from mail.example.org by {host}; {format_datetime(one.when)}",
                f"From: Person {one.author} <person{one.author}@example.org>",
                f"To: {one.channel}@{host}",
                f"Date: {format_datetime(one.when)}",
                f"Subject: {'Re: ' if one.answers else ''}about {one.first}",
                f"Message-ID: <{one.number}@example.org>",
                f"List-Id: <{one.channel}.{host}>",
                "MIME-Version: 1.0",
                "Content-Type: text/plain; charset=utf-8",
            ]
            if one.answers:
                lines += [
                    f"In-Reply-To: <{one.answers}@example.org>",
                    f"References: <{one.first}@example.org> <{one.answers}@example.org>",
                    "",
                    f"On {one.when:%d %b %Y}, somebody wrote:",
                    *(f"> {line}" for line in texts[one.answers].split("\n")),
                ]
            lines += ["", one.text.replace("\nFrom ", "\n>From "), "-- ", f"Person {one.author}"]
            file.write("\n".join(lines) + "\n\n")
            if file.tell() > size:
                return


FORMATS: Mapping[str, Callable[[Iterator[Said], int, Path], None]] = {
    "slack": slack, "telegram": telegram, "discord": discord, "whatsapp": whatsapp, "irc": irc,
    "mbox": mbox,
}  # fmt: skip
ENDINGS = {"slack": ".zip", "telegram": ".json", "whatsapp": ".txt", "mbox": ".mbox"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("comments", type=Path)
    parser.add_argument("--size", required=True, help="of the content, such as 2GB")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    size = int(parse_bytes(chosen.size, "--size"))
    FORMATS[chosen.format](messages(chosen.comments), size, chosen.out)


if __name__ == "__main__":
    main()
