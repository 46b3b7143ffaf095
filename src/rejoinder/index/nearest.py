"""Search by meaning in several segments together."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.index.hits import Found, best_of, is_large, placed
from rejoinder.index.lists import Lists
from rejoinder.index.segment import Absent, Segment
from rejoinder.protocols import Embeddings

_QUERIES = 1_024
"""Queries whose candidates are in memory at a time."""


def search_segments(
    segments: Sequence[Segment],
    queries: Embeddings,
    top_k: int,
    *,
    absent: Sequence[Absent],
    exact: bool = False,
) -> list[Found]:
    """Returns for each query the `top_k` best texts of all segments, best first.

    Segments with lists are searched approximately unless `exact`: the best candidates of all of
    them get true scores. A segment is scanned if its lists give too few candidates for a query.

    Args:
        segments: The segments.
        queries: (Q, D) float32.
        top_k: Number of texts per query.
        absent: Texts of each segment that are not found, among them the deleted ones.
        exact: Compare each query with all texts. Lists know only the deleted ones, so a search
            with other `absent` texts is exact.

    Raises:
        InputError: the index is damaged.
        MissingExtraError: FAISS is not installed, and a segment has lists.
    """
    for segment in segments:
        segment.refuse_cut()
    results: list[list[Found]] = [[] for _ in queries]
    listed = {i: segment.lists for i, segment in enumerate(segments) if segment.lists and not exact}
    for number, segment in enumerate(segments):
        if number not in listed:
            rows, scores = segment.nearest(queries, top_k, absent[number])
            for parts, *found in zip(results, placed(number, rows), scores, strict=True):
                parts.append(Found(*found))
    large = is_large(segments)
    for begin in range(0, len(queries) if listed else 0, _QUERIES):
        block = queries[begin : begin + _QUERIES]
        rough = _candidates(segments, listed, block, top_k)
        for index, (query, places) in enumerate(zip(block, rough, strict=True)):
            results[begin + index] += _scored(segments, places, query, top_k, large=large)
    return [best_of(parts, top_k) for parts in results]


def _candidates(
    segments: Sequence[Segment], listed: dict[int, Lists], queries: Embeddings, top_k: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Returns for each query the segments and rows of the best candidates of all lists."""
    counts = [lists.probing.candidates_for(top_k) for lists in listed.values()]
    # N segments need fewer candidates each: the best of all lie in any of them
    wanted = math.ceil(max(counts) * math.sqrt(len(counts)))
    all_rows, all_scores, all_numbers = [], [], []
    for count, (number, lists) in zip(counts, listed.items(), strict=True):
        rows, scores = _present(segments[number], lists, queries, count, top_k)
        all_rows.append(rows)
        all_scores.append(scores)
        all_numbers.append(np.full(rows.shape, number))
    rows, scores = np.concatenate(all_rows, axis=1), np.concatenate(all_scores, axis=1)
    numbers = np.concatenate(all_numbers, axis=1)
    if rows.shape[1] > wanted:
        best = np.argpartition(-scores, wanted - 1, axis=1)[:, :wanted]
        rows, scores, numbers = (
            np.take_along_axis(array, best, axis=1) for array in (rows, scores, numbers)
        )
    kept = np.isfinite(scores)
    return [(numbers[q][kept[q]], rows[q][kept[q]]) for q in range(len(queries))]


def _present(
    segment: Segment, lists: Lists, queries: Embeddings, wanted: int, top_k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns candidates of a segment; missing and deleted ones have the score -inf."""
    left = segment.entry.count
    # more, because some candidates are deleted
    count = min(-(-wanted * segment.entry.rows // max(left, 1)), segment.entry.rows)
    rows, scores = lists.candidates(queries, count)
    absent = (rows < 0) | segment.deleted[rows]
    scores = np.where(absent, np.float32(-np.inf), scores)
    short = np.flatnonzero((~absent).sum(axis=1) < min(top_k, left))
    if len(short):
        exact, values = segment.nearest(queries[short], top_k, segment.absent())
        scores[short] = -np.inf
        rows[short, : exact.shape[1]], scores[short, : exact.shape[1]] = exact, values
    return rows, scores


def _scored(
    segments: Sequence[Segment],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    query: Embeddings,
    top_k: int,
    *,
    large: bool,
) -> list[Found]:
    """Returns the `top_k` best of candidates by their true scores, of each segment."""
    numbers, rows = places
    found = []
    for number in np.flatnonzero(np.bincount(numbers)).tolist():
        here = np.sort(rows[numbers == number])
        scores = segments[number].scores(here, query, map_file=not large)
        if top_k < len(scores):
            kept = scores >= np.partition(scores, -top_k)[-top_k]
            here, scores = here[kept], scores[kept]
        best = np.argsort(-scores, kind="stable")[:top_k]
        found.append(Found(placed(number, here[best]), scores[best]))
    return found
