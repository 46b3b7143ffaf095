"""Fits the linker, or scores one.

`PYTHONPATH=tools python benchmarks/links.py ../shared/data/links`

It is fitted on train and on quiet chats made of it: some conversations of a log, without the rest,
slower than they were, as in groups of a few people. Links and conversations of dev, or of test with
`--test`, with names and with names taken out of the text, by the official scores; and messages per
second of one core or more (`OMP_NUM_THREADS`). Then the share of messages of quiet chats whose
answer is right, and precision and recall of links of other messages from a confidence of .7 on.
"""

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from fit_links import Recipe, fit
from rejoinder import SentenceEncoder
from rejoinder.links.linker import Linker
from rejoinder.links.scores import AnnotatedLog, link_scores, read_logs

LEARNED_FROM = (
    "#ubuntu, 67,463 messages that Kummerfeld et al. 2019 annotated (P19-1374, "
    "github.com/jkkummerfeld/irc-disentanglement, CC BY 4.0)"
)


def logs_of(folder: Path, part: str) -> list[AnnotatedLog]:
    """Returns the logs of `train`, `dev` or `test`."""
    return list(read_logs(folder / f"ubuntu_irc_{part}.tar.zst"))


SHARES, SLOWEST, LEAST = (0.04, 0.1, 0.25, 0.5), 64, 4
"""Shares of conversations of a log that are kept, how much slower they become at most, and the
fewest messages of a quiet chat."""


@dataclass(frozen=True)
class QuietChat:
    """Some conversations of a log."""

    log: int
    """The number of the log."""
    authors: list[str]
    times: list[float]
    texts: list[str]
    labels: dict[int, list[int]]


def quiet_chats(logs: list[AnnotatedLog], seed: int) -> Iterator[QuietChat]:
    """Yields quiet chats made of each log, one for each of `SHARES`."""
    draw = random.Random(seed)  # noqa: S311 - no secret depends on it
    for number, log in enumerate(logs):
        labels = log.labels
        groups: dict[int, list[int]] = {}
        for row in sorted(labels):  # what a message answers comes before it
            first = groups.get(min(labels[row], default=row), [])
            groups[row] = first
            first.append(row)
        conversations = {id(rows): rows for rows in groups.values()}.values()
        for share in SHARES:
            slower = SLOWEST ** draw.random()
            kept = sorted(row for rows in conversations if draw.random() < share for row in rows)
            place = {row: at for at, row in enumerate(kept)}
            if len(kept) >= LEAST:
                yield QuietChat(
                    number,
                    [log.authors[row] for row in kept],
                    [log.times[row] * slower for row in kept],
                    [log.texts[row] for row in kept],
                    {
                        place[row]: [place[one] for one in labels[row] if one in place]
                        or [place[row]]
                        for row in kept
                    },
                )


def scored_quiet(linker: Linker, chats: list[QuietChat]) -> str:
    """Returns how many answers of quiet chats are right, and precision and recall from .7 on."""
    right, links, sure, good = [], 0, 0, 0
    for chat in chats:
        found = linker.link(chat.texts, chat.authors, chat.times)
        for row, answered in chat.labels.items():
            parent = int(found.parents[row])
            right.append((row if parent < 0 else parent) in answered)
            links += answered != [row]
            if parent >= 0 and found.confidence[row] >= 0.7:
                sure, good = sure + 1, good + right[-1]
    return (
        f"right {np.mean(right):.3f} of {len(right):,}; from .7 on precision "
        f"{good / max(sure, 1):.3f}, recall {good / max(links, 1):.3f}"
    )


def scored(linker: Linker, logs: list[AnnotatedLog]) -> str:
    """Returns a row of scores: P, R, F, VI, one-to-one, exact F, reliability, messages a second."""
    count, start, pairs, sure, right = 0, time.perf_counter(), [], [], []
    for log in logs:
        links = linker.link(log.texts, log.authors, log.times)
        count += len(log.texts)
        pairs.append((log.answers, log.predicted(links.parents)))
        for row, answered in log.labels.items():
            sure.append(links.confidence[row])
            parent = links.parents[row]
            right.append((row if parent < 0 else parent) in answered)
    seconds = time.perf_counter() - start
    scores = " / ".join(f"{100 * value:.1f}" for value in astuple(link_scores(pairs)))
    bins = np.minimum((np.array(sure) * 10).astype(int), 9)
    table = ", ".join(
        f".{at}: {np.mean(np.array(right)[bins == at]):.2f} ({(bins == at).sum()})"
        for at in range(2, 10)
    )
    return f"{scores}; {count / seconds:,.0f} messages/s; {table}"


def before(logs: list[AnnotatedLog]) -> str:
    """Returns the same of the message before each message."""
    found = [(log.answers, log.predicted(range(-1, len(log.texts) - 1))) for log in logs]
    return " / ".join(f"{100 * value:.1f}" for value in astuple(link_scores(found)))


def main() -> None:
    """Fits, if `--fit`; prints the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fit", type=Path, help="where to write a linker fitted on train")
    parser.add_argument("--linker", type=Path, help="the linker to score, by default the shipped")
    parser.add_argument("--encoder", help="the model, by default that of the linker")
    parser.add_argument("--runs-with", help="the model that the fitted linker loads")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="score test instead of dev")
    args = parser.parse_args()
    encoder = SentenceEncoder.load(args.encoder) if args.encoder else None
    if args.fit:
        start = time.perf_counter()
        train, dev = logs_of(args.folder, "train"), logs_of(args.folder, "dev")
        quiet = list(quiet_chats(train, args.seed + 7))
        settings = fit(
            [*train, *quiet],
            encoder or SentenceEncoder.load("rejoinder-base"),
            args.fit,
            learned_from=LEARNED_FROM,
            held_out=[*dev, *quiet_chats(dev, args.seed + 3)],
            groups=[*range(len(train)), *(chat.log for chat in quiet)],
            runs_with=args.runs_with,
            recipe=Recipe(seed=args.seed),
        )
        print(settings, f"{time.perf_counter() - start:.0f} s, {args.fit.stat().st_size:,} bytes")
    logs = logs_of(args.folder, "test" if args.test else "dev")
    print("P / R / F / VI / one-to-one / exact F")
    print("message before:", before(logs))
    for names in (True, False):
        linker = Linker(args.fit or args.linker, encoder=encoder, names=names)
        print("with names:" if names else "without names:", scored(linker, logs), flush=True)
        print("quiet chats:", scored_quiet(linker, list(quiet_chats(logs, 1))), flush=True)


if __name__ == "__main__":
    main()
