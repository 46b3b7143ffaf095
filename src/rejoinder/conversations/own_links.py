"""Trains a linker on a user's exports: it learns from stated links, which are hidden from it."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rejoinder.conversations.reading import Reading
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.claims import refuse_inputs
from rejoinder.io.files.storage import scratch_folder
from rejoinder.links import threads
from rejoinder.links.fitting import Recipe, fit
from rejoinder.links.linker import Linker, shipped_links

LEAST, MOST = 200, 60_000
"""Least number of messages with a known answer, and the most (the latest) that are used: 1 GB."""
_PIECE = 1_000
_ENOUGH, _EPOCHS = 20_000, 8
"""Number of messages for the default number of passes; fewer get more, up to this factor."""


@dataclass(frozen=True)
class OwnLinks:
    """How many links of held-out messages were found."""

    messages: int
    """Number of messages that the linker learned from."""
    found: dict[str, threads.FoundAgain]
    """Accuracy of choosing the preceding message, of the default linker, and of the new linker."""
    is_better: bool
    """Whether the new linker was right more often than the package's, and was written."""


def fit_links(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    columns: str | None = None,
    seed: int = 0,
    stage: Callable[[str], object] = lambda _doing: None,
) -> OwnLinks:
    """Fits a linker on threads and replies of exports, and writes it if it finds links better.

    Training starts from the package's linker. Three of five stretches of messages are for training,
    as they are and thinned out to quiet chats; one calibrates the confidence, and one tests the
    result.

    Args:
        sources: Exports, or tables with the columns id, time, and answers or thread.
        out: File of the linker to write.
        columns: Columns of tables, see `read_texts`.
        seed: Seed of all random draws.
        stage: Called with the name of the next step.

    Raises:
        InputError: a source can't be read, or would be replaced, or too few messages say what they
            answer.
        MissingExtraError: torch is not installed.
    """
    path = Path(out)
    refuse_inputs(path, sources)
    stage("reading")
    parts = [part for one in sources for part in Reading([Path(one)], columns).parts()]
    channels = [one for part in parts for one in known_links(part.entries)]
    count = sum(len(one.labels) for one in channels)
    if count < LEAST:
        raise InputError(
            f"{' and '.join(map(str, sources))}: {count:,} messages say what they answer, "
            f"by replies or threads, and {LEAST} are needed; name larger exports, too."
        )
    cut = [one for each in channels for one in threads.pieces(each, min(_PIECE, count // 10))]
    cut.sort(key=lambda one: one.times[-1])
    while sum(len(one.labels) for one in cut) > MOST:
        del cut[0]
    shipped, tried = Linker(), cut[4::5]
    stage("finding beginnings")
    stated = [one for at, one in enumerate(cut) if at % 5 < 3]
    learned = [(at, threads.with_beginnings(one, shipped)) for at, one in enumerate(stated)]
    calibrated = [threads.with_beginnings(one, shipped) for one in cut[3::5]]
    draw = random.Random(seed)  # noqa: S311 - no secret depends on it
    learned += [(at, quiet) for at, one in learned for quiet in threads.quiet_chats(one, draw)]
    size = sum(len(one.labels) for _, one in learned)
    times = min(max(_ENOUGH // size, 1), _EPOCHS)
    recipe = Recipe(rate=0.001, epochs=(3 * times, 4 * times), seed=seed)
    stage("fitting")
    with scratch_folder() as scratch:
        new = scratch / path.name
        fit(
            [one for _, one in learned],
            SentenceEncoder.load(shipped.settings["encoder"]),
            new,
            learned_from=", ".join(Path(one).name for one in sources),
            held_out=calibrated,
            groups=[at for at, _ in learned],
            begin_with=shipped_links(),
            recipe=recipe,
        )
        stage("finding hidden links")
        linkers = {"message before": None, "shipped": shipped, "own": Linker(new)}
        found = {name: threads.found_again(one, tried) for name, one in linkers.items()}
        is_better = found["own"].right > found["shipped"].right
        if is_better:
            write_bytes(path, new.read_bytes())
    return OwnLinks(sum(len(one.labels) for one in stated), found, is_better)


def known_links(entries: Sequence[Entry]) -> Iterator[threads.Channel]:
    """Yields the channels of messages in time order, with the stated answers.

    The first message of a thread starts a conversation. In threads whose messages state no answers,
    or all name the first message, the last message and the last by another author are right, too.
    Messages without a time are left out.
    """
    channels: dict[str, list[Entry]] = {}
    for one in sorted(
        (one for one in entries if "time" in one.about), key=lambda one: float(one.about["time"])
    ):
        channels.setdefault(one.about.get("source", ""), []).append(one)
    for said in channels.values():
        yield threads.Channel(
            [one.about.get("author", "") for one in said],
            [float(one.about["time"]) for one in said],
            [one.text for one in said],
            _labels(said),
        )


def _labels(said: Sequence[Entry]) -> dict[int, list[int]]:
    place = {one.id: at for at, one in enumerate(said)}
    answers = [one.about.get("answers") for one in said]
    labels = {at: [place[one]] for at, one in enumerate(answers) if one and place.get(one, at) < at}
    by_thread: dict[str, list[int]] = {}
    for at, one in enumerate(said):
        if thread := one.about.get("thread"):
            by_thread.setdefault(thread, []).append(at)
    first_ids = {said[rows[0]].id for rows in by_thread.values()}
    are_flat = all(answers[at] in {None, *first_ids} for rows in by_thread.values() for at in rows)
    for rows in by_thread.values():
        if not answers[rows[0]]:
            labels[rows[0]] = [rows[0]]
        for before, at in pairwise(rows) if are_flat else ():
            mine = said[at].about.get("author")
            others = [one for one in rows if one < at and said[one].about.get("author") != mine]
            labels[at] = [*{*labels.get(at, ()), before, *others[-1:]}]
    return labels
