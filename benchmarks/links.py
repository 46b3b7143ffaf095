"""Fits the linker, or scores one: `python benchmarks/links.py ../shared/data/links`.

It is fitted on train and on quiet chats made of it: some conversations of a log, without the rest,
slower than they were, as in groups of a few people. Links and conversations of dev, or of test with
`--test`, with names and with names taken out of the text, by the official scores; and messages per
second of one core or more (`OMP_NUM_THREADS`). Then the share of messages of quiet chats whose
answer is right, and precision and recall of links of other messages from a confidence of .7 on.
"""

import argparse
import random
import time
from dataclasses import astuple
from pathlib import Path

import numpy as np

from rejoinder import SentenceEncoder
from rejoinder.links.fitting import Recipe, fit
from rejoinder.links.linker import Linker
from rejoinder.links.task import AnnotatedLog, link_scores, read_logs
from rejoinder.links.threads import Channel, found_again, quiet_chats

LEARNED_FROM = (
    "#ubuntu, 67,463 messages that Kummerfeld et al. 2019 annotated (P19-1374, "
    "github.com/jkkummerfeld/irc-disentanglement, CC BY 4.0)"
)


def logs_of(folder: Path, part: str) -> list[AnnotatedLog]:
    """Returns the logs of `train`, `dev` or `test`."""
    return list(read_logs(folder / f"ubuntu_irc_{part}.tar.zst"))


def quiet_of(logs: list[AnnotatedLog], seed: int) -> list[tuple[int, Channel]]:
    """Returns quiet chats with the number of their log."""
    draw = random.Random(seed)  # noqa: S311 - no secret depends on it
    return [(at, chat) for at, log in enumerate(logs) for chat in quiet_chats(log, draw)]


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
        quiet = quiet_of(train, args.seed + 7)
        settings = fit(
            [*train, *(chat for _, chat in quiet)],
            encoder or SentenceEncoder.load("rejoinder-base"),
            args.fit,
            learned_from=LEARNED_FROM,
            held_out=[*dev, *(chat for _, chat in quiet_of(dev, args.seed + 3))],
            groups=[*range(len(train)), *(at for at, _ in quiet)],
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
        print("quiet chats:", found_again(linker, (chat for _, chat in quiet_of(logs, 1))))


if __name__ == "__main__":
    main()
