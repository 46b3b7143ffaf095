"""`Duplicates`: which texts of a collection to keep, and which kept text replaces each other one.

It is saved as a folder of two text files, and a safetensors file with the arrays, the texts as
JSON, and how the threshold was chosen.

Groups do not chain: each row is near its kept row, not merely near another row of the group.

The cosine threshold is given, or estimated from labelled pairs or from an allowed rate of
errors.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder.encoders.layers import Array
from rejoinder.errors import InputError
from rejoinder.inference.inputs import check_share
from rejoinder.inference.near_pairs import Found, NearPairs
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import Digest, Record, decoded, sha256_of_tensors
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.shown import MOST_ROWS, Shown, View
from rejoinder.io.formats.texts import KEYS
from rejoinder.measures import Floats, Indices

if TYPE_CHECKING:
    from statistics import NormalDist

FORMAT: Literal[2] = 2
FILE = "duplicates.safetensors"
"""Name of the file that `load` reads, in the folder that `save` writes."""
_FACTS = "duplicates"
Basis = Literal["given", "examples", "false positives", "default"]
LEAST_THRESHOLD, MOST_THRESHOLD, DEFAULT_THRESHOLD = 0.85, 0.97, 0.9
"""Least and largest threshold from a rate, and the threshold where none can be estimated.

Of pairs from .85 on, 74 % of Quora's mean the same, 94 % of Twitter's and of medical questions,
96 % of PARADE's; below, texts only share a topic."""
_QUANTILES = (0.1, 0.4)
"""Quantiles of the nearest cosines that are fitted for texts without a duplicate: at most
60 % of the texts may have one."""
_CROWDED, _NEAR = 0.01, 0.95
"""If this share of texts without a duplicate would have one this near, the fit describes texts
with duplicates instead."""
_FEWEST_TEXTS = 100
_FEWEST = 1_000
"""Number of neighbouring pairs that are needed to estimate how near they are."""


@dataclass(frozen=True)
class Estimate:
    """A threshold, and what to expect of it."""

    threshold: float
    """Cosine from which texts mean the same."""
    basis: Basis
    """How it was chosen: `given`, `examples`, `false positives`, or `default`: there are few
    texts, or most have a near one, so that chance can't be estimated."""
    by_chance: float | None = None
    """Estimated share of texts without a duplicate that have one by chance at the threshold."""
    neighbours: float | None = None
    """Share of messages that are at least this near to the preceding message."""
    precision: float | None = None
    """Share of the example pairs above the threshold that mean the same (precision)."""
    recall: float | None = None
    """Share of the example pairs with the same meaning that are above the threshold (recall)."""
    f1: float | None = None


def threshold_of_examples(scores: Floats, alike: NDArray[np.bool_], least: float) -> Estimate:
    """Returns the threshold with the highest F1 on labelled pairs, between two of their scores.

    >>> alike = np.array([True, True, False])
    >>> round(threshold_of_examples(np.array([0.9, 0.8, 0.6]), alike, 0.5).threshold, 4)
    0.7

    Args:
        scores: (P,) cosines.
        alike: (P,) bool: whether the texts of a pair mean the same; at least one pair does.
        least: The least threshold.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(alike[order])
    below = np.maximum(np.append(ranked[1:], least), least)
    f1 = np.where(ranked > below, 2 * right / (np.arange(len(order)) + 1 + right[-1]), 0)
    best = int(f1.argmax())
    threshold = round(float(ranked[best] + below[best]) / 2, 4) if f1[best] else least
    chosen = scores >= threshold
    precision, recall = (
        int((chosen & alike).sum()) / max(int(x.sum()), 1) for x in (chosen, alike)
    )
    measured = (round(value, 4) for value in (precision, recall, float(f1[best])))
    return Estimate(threshold, "examples", None, None, *measured)


def threshold_of_rate(
    nearest: Array, neighbours: Array, rate: float, most: float = MOST_THRESHOLD
) -> Estimate:
    """Returns the least threshold at which at most a share `rate` is wrongly taken as duplicates.

    It holds for texts without a duplicate, by chance, and for messages and the preceding ones.

    The cosine of a text without a duplicate with its nearest other text is taken to be normal. Its
    mean and deviation come from the lower part of the nearest cosines (an empirical null, Efron
    2004), because the upper part belongs to texts with a duplicate.

    Args:
        nearest: (S,) cosines of sampled texts with their nearest others.
        neighbours: (M,) cosines of messages with the preceding ones; too few are ignored.
        rate: Above 0, below 1.
        most: The largest threshold.
    """
    wanted = [LEAST_THRESHOLD]
    if len(neighbours) >= _FEWEST:
        wanted.append(float(np.quantile(neighbours, 1 - rate)))
    if is_crowded(nearest):
        basis: Basis = "default"
        wanted.append(DEFAULT_THRESHOLD)
    else:
        basis = "false positives"
        wanted.append(_null(nearest).inv_cdf(1 - rate))
    return expected_at(round(min(max(wanted), most), 4), basis, nearest, neighbours)


def expected_at(threshold: float, basis: Basis, nearest: Array, neighbours: Array) -> Estimate:
    """Returns a threshold with what to expect of it; see `threshold_of_rate`."""
    chance = None if is_crowded(nearest) else round(1 - _null(nearest).cdf(threshold), 6)
    known = len(neighbours) >= _FEWEST
    near = round(float((neighbours >= threshold).mean()), 6) if known else None
    return Estimate(threshold, basis, chance, near)


def is_crowded(nearest: Array) -> bool:
    """Returns whether there are too few texts without a duplicate to estimate chance."""
    return len(nearest) < _FEWEST_TEXTS or _null(nearest).inv_cdf(1 - _CROWDED) > _NEAR


def _null(nearest: Array) -> "NormalDist":
    from statistics import NormalDist  # loads decimals and fractions

    low, high = np.quantile(nearest.astype(np.float64), _QUANTILES).tolist()
    unit = [NormalDist().inv_cdf(share) for share in _QUANTILES]
    deviation = (high - low) / (unit[1] - unit[0])
    return NormalDist(high - deviation * unit[1], max(deviation, 1e-6))


@dataclass(frozen=True)
class Kept:
    """Which of N rows are kept, and which row replaces each of the others."""

    heads: Indices
    """(N,) int64: the row kept in its stead; its own index if it is kept."""
    scores: Array
    """(N,) float32: the cosine with that row; 1 for a kept row."""


@dataclass(frozen=True)
class Dropped:
    """A text that is dropped because another is kept."""

    index: int
    """Its position among all texts, from 0."""
    id: str
    text: str
    kept_index: int
    kept_id: str
    kept: str
    """The text that is kept instead."""
    score: float
    """Their cosine: 1 if they differ only in greetings, case and punctuation."""


@dataclass(frozen=True)
class Group:
    """A kept text with the texts dropped because of it."""

    index: int
    id: str
    text: str
    dropped: list[Dropped] = field(repr=False)
    """The nearest first."""

    @property
    def size(self) -> int:
        """Number of texts, including the kept one."""
        return 1 + len(self.dropped)

    @property
    def kept(self) -> Dropped:
        """The kept text, in the form of a dropped one."""
        named = self.index, self.id, self.text
        return Dropped(*named, *named, 1.0)


@dataclass(frozen=True, repr=False)
class Duplicates(Shown):
    """The result of `dedupe`: the texts to keep, and the others."""

    ids: Sequence[str]
    texts: Sequence[str]
    about: Sequence[Mapping[str, Any]]
    """What is known about each text, by `corpus.texts.KEYS`."""
    rows: Indices = field(repr=False)
    """(N,) int64: number of each text's embedding; texts that say the same share an embedding."""
    pairs: NearPairs = field(repr=False)
    """Pairs of embeddings with a cosine of at least `floor`."""
    floor: float
    """The least threshold that `rethreshold` accepts."""
    estimate: Estimate
    """The threshold, how it was chosen, and what to expect of it."""
    sample: Found = field(repr=False)
    """Pairs of sampled texts with a cosine from the floor on, and whether the search found them."""
    nearest: Array = field(repr=False)
    """(S,) float32: cosines of sampled texts with their nearest other text."""
    neighbours: Array = field(repr=False)
    """(M,) float32: cosines of messages with the preceding ones."""
    least_score: float | None = None
    """Least score that a scorer gave the pairs, from 0 to 5; None without a scorer."""

    def __len__(self) -> int:
        return len(self.texts)

    def view(self) -> View:
        """Returns the largest groups."""
        dropped = len(self.filtered)
        rows = [
            (group.text, group.size, f"{group.dropped[-1].score:.3f}", group.dropped[-1].text)
            for group in self.groups[:MOST_ROWS]
        ]
        title = (
            f"{len(self):,} texts, {len(self) - dropped:,} kept, {dropped:,} dropped in "
            f"{len(self.groups):,} groups, threshold {self.threshold:.3f}"
        )
        return View(title, ("kept", "size", "least", "text"), rows, len(self.groups))

    @property
    def threshold(self) -> float:
        """Cosine with the kept text from which a text is dropped."""
        return self.estimate.threshold

    @property
    def search_recall(self) -> float:
        """Share of the pairs above the threshold that were found, from a sample; 1 if all were."""
        return round(self.sample.recall(self.threshold), 4)

    @cached_property
    def _kept(self) -> Kept:
        weights = np.bincount(self.rows, minlength=self.pairs.rows)
        return group_pairs(self.pairs, self.threshold, weights)

    @cached_property
    def kept_for(self) -> Indices:
        """(N,) int64: the text that is kept instead; its own index for a kept text."""
        first = np.zeros(self.pairs.rows, np.int64)
        first[self.rows[::-1]] = np.arange(len(self.rows))[::-1]
        found: Indices = first[self._kept.heads[self.rows]]
        return found

    @cached_property
    def scores(self) -> Array:
        """(N,) float32: the cosine of each text with the text that is kept instead."""
        return self._kept.scores[self.rows]

    @cached_property
    def is_kept(self) -> NDArray[np.bool_]:
        """(N,) bool: which texts are kept."""
        return np.asarray(self.kept_for == np.arange(len(self)))

    @property
    def selected(self) -> list[str]:
        """The texts that are kept, in order."""
        return [self.texts[row] for row in np.flatnonzero(self.is_kept).tolist()]

    @cached_property
    def filtered(self) -> list[Dropped]:
        """The texts that are dropped, in order, each with the text that is kept instead."""
        return [self._dropped(row) for row in np.flatnonzero(~self.is_kept).tolist()]

    def _dropped(self, row: int) -> Dropped:
        kept = int(self.kept_for[row])
        return Dropped(
            row, self.ids[row], self.texts[row], kept, self.ids[kept], self.texts[kept],
            round(float(self.scores[row]), 6),
        )  # fmt: skip

    @property
    def duplicate_ratio(self) -> float:
        """Share of the texts that are dropped."""
        return float((~self.is_kept).mean()) if len(self) else 0.0

    @property
    def exact_duplicate_ratio(self) -> float:
        """Share of the texts that repeat an earlier one but for greetings, case and punctuation."""
        return 1 - self.pairs.rows / len(self) if len(self) else 0.0

    @cached_property
    def groups(self) -> list[Group]:
        """The kept texts because of which others are dropped: the largest groups first."""
        members: dict[int, list[Dropped]] = {}
        for one in self.filtered:
            members.setdefault(one.kept_index, []).append(one)
        groups = [
            Group(row, self.ids[row], self.texts[row], sorted(some, key=lambda one: -one.score))
            for row, some in members.items()
        ]
        return sorted(groups, key=lambda group: (-group.size, group.index))

    def rethreshold(self, threshold: float) -> "Duplicates":
        """Returns the result for another threshold, from the pairs already found.

        Raises:
            InputError: it is below `floor`, or above 1.
        """
        check_share("threshold", threshold)
        if threshold < self.floor:
            raise InputError(
                f"threshold {threshold} is below the floor, {self.floor}; dedupe with a lower one."
            )
        expected = expected_at(float(threshold), "given", self.nearest, self.neighbours)
        return replace(self, estimate=expected)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns a row for each text, ready for pandas or Polars.

        A row has `id`, `text`, `kept_id` (its own id if kept), `kept`, `score`, `size` of its
        group, and what is known about a message.
        """
        sizes = np.bincount(self.kept_for, minlength=len(self))
        known = [key for key in KEYS if any(key in about for about in self.about)]
        places = zip(self.kept_for.tolist(), self.scores.tolist(), strict=True)
        return [
            {
                "id": self.ids[row], "text": self.texts[row], "kept_id": self.ids[kept],
                "kept": self.texts[kept], "score": round(score, 6), "size": int(sizes[kept]),
                **{key: self.about[row].get(key) for key in known},
            }
            for row, (kept, score) in enumerate(places)
        ]  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """Returns JSON values: the numbers of texts, ratios, and the threshold."""
        dropped = int((~self.is_kept).sum())
        return {
            "texts": len(self), "kept": len(self) - dropped, "dropped": dropped,
            "duplicate_ratio": round(self.duplicate_ratio, 6),
            "exact_duplicate_ratio": round(self.exact_duplicate_ratio, 6),
            **asdict(self.estimate), "floor": self.floor, "search_recall": self.search_recall,
            "least_score": self.least_score,
        }  # fmt: skip

    def save(
        self, folder: str | Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
    ) -> None:
        """Writes a folder: `kept.jsonl`, `dropped.jsonl`, and the file that `load` reads.

        A row of `kept.jsonl` has `id`, `text`, what is known about a message, and `size`, the
        number of texts it stands for. A row of `dropped.jsonl` has `kept_id`, `kept` and `score`
        instead. Every command reads both as files of texts.

        Raises:
            InputError: the folder is occupied, and `overwrite` is False; or it holds one of
                `inputs`, which must be kept.
            StorageError: it can't be written.
        """
        encode = msgspec.json.Encoder().encode
        rows: dict[str, list[bytes]] = {"kept.jsonl": [], "dropped.jsonl": []}
        for row, is_kept in zip(self.to_dicts(), self.is_kept.tolist(), strict=True):
            for name in ("kept_id", "kept", "score") if is_kept else ("size",):
                del row[name]
            rows["kept.jsonl" if is_kept else "dropped.jsonl"].append(encode(row) + b"\n")
        with new_folder(Path(folder), overwrite=overwrite, inputs=inputs) as new:
            for name, lines in rows.items():
                (new / name).write_bytes(b"".join(lines))
            (new / FILE).write_bytes(self._bytes())

    def _bytes(self) -> bytes:
        texts = msgspec.json.encode(
            [self.ids, self.texts, [*self.about] if any(self.about) else []]
        )
        tensors: dict[str, NDArray[Any]] = {
            "texts": np.frombuffer(texts, np.uint8),
            "rows": self.rows.astype(np.int32),
            "first": self.pairs.first,
            "second": self.pairs.second,
            "scores": self.pairs.scores,
            "sampled": self.sample.scores,
            "found": self.sample.found,
            "nearest": self.nearest,
            "neighbours": self.neighbours,
        }
        facts = _Facts(
            FORMAT, sha256_of_tensors(tensors), self.pairs.rows, self.floor, self.estimate,
            self.least_score,
        )  # fmt: skip
        return save(tensors, {_FACTS: msgspec.json.encode(facts).decode()})

    @classmethod
    def load(cls, folder: str | Path) -> "Duplicates":
        """Reads what `save` wrote.

        Raises:
            InputError: the folder can't be read, or has no such result.
        """
        path = Path(folder) / FILE
        try:
            with safe_open(path, "numpy") as file:
                facts = decoded(_Facts, json.loads(file.metadata()[_FACTS]))
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if facts.sha256 != sha256_of_tensors(tensors):
                raise ValueError("it was changed after it was written (SHA-256)")
        except UNREADABLE as error:
            raise InputError(f"{path} is not a result of dedupe: {error}.") from None
        ids, texts, about = msgspec.json.decode(tensors["texts"].tobytes())
        return cls(
            ids, texts, about or [{}] * len(texts), tensors["rows"].astype(np.int64),
            NearPairs(facts.rows, *(tensors[name] for name in ("first", "second", "scores"))),
            facts.floor, facts.estimate, Found(tensors["sampled"], tensors["found"]),
            tensors["nearest"], tensors["neighbours"], facts.least_score,
        )  # fmt: skip


class _Facts(Record, frozen=True):
    format_version: Literal[2]
    sha256: Digest
    """Hash of the tensors."""
    rows: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    floor: Annotated[float, Meta(ge=0, le=1)]
    estimate: Estimate
    least_score: float | None = None


_OWN = 5
"""How often a row counts in its own sum. With 1, `Yes yes yes.` replaced 2,000 times `Yes.`"""


def group_pairs(
    pairs: NearPairs, threshold: float, weights: NDArray[np.integer] | None = None
) -> Kept:
    """Chooses the rows to keep, and for each other row the nearest kept one.

    Rows with the most near ones are kept first. Each near row counts by how far its cosine is above
    the threshold, and the row itself as five, so that a text that is often repeated is preferred to
    one that resembles many. A row is dropped if its cosine with a kept one is at least `threshold`,
    so no two kept rows are that near. `weights` (N,) counts a row as several equal ones.
    """
    near = pairs.where(pairs.scores >= np.float32(threshold))
    rows = np.concatenate([near.first, near.second])
    others = np.concatenate([near.second, near.first])
    scores = np.concatenate([near.scores, near.scores])
    weight = np.ones(pairs.rows) if weights is None else weights.astype(np.float64)
    above = (scores - threshold) / max(1 - threshold, 1e-6)
    sums = _OWN * weight + np.bincount(rows, weight[others] * above, pairs.rows)
    by_row = np.argsort(rows, kind="stable")
    begins = np.searchsorted(rows[by_row], np.arange(pairs.rows + 1)).tolist()
    is_head = _heads(np.unique(rows), others[by_row], begins, sums)
    # each row goes to its nearest head; of several, to the one with the largest sum
    wanted = np.flatnonzero(is_head[others] & ~is_head[rows])
    wanted = wanted[
        np.lexsort((others[wanted], -sums[others[wanted]], -scores[wanted], rows[wanted]))
    ]
    dropped, places = np.unique(rows[wanted], return_index=True)
    heads, nearness = np.arange(pairs.rows), np.ones(pairs.rows, np.float32)
    heads[dropped] = others[wanted[places]]
    nearness[dropped] = scores[wanted[places]]
    return Kept(heads, nearness)


def _heads(
    rows: NDArray[np.integer], others: NDArray[np.integer], begins: list[int], sums: Floats
) -> NDArray[np.bool_]:
    """Returns which rows are kept; rows without a near one are."""
    covered = np.zeros(len(sums), np.bool_)
    for row in rows[np.lexsort((rows, -sums[rows]))].tolist():
        if not covered[row]:
            covered[others[begins[row] : begins[row + 1]]] = True
    return ~covered
