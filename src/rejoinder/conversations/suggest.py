"""`Suggestions`: suggests replies to a message, from past messages with known replies.

`Suggester`: suggests replies from the past of an index prepared by `explore`.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations import replies as known_replies
from rejoinder.conversations import suggestions as voting
from rejoinder.conversations.answers import with_answers
from rejoinder.conversations.collection import Collection, Given, Model, open_collection
from rejoinder.conversations.replies import PastReplies
from rejoinder.conversations.suggestions import Suggested, Suggestion, Tried, Voted
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.index.files import FILE as INDEX
from rejoinder.index.where import Where, fields_of
from rejoinder.inference.inputs import check_share, whole_number
from rejoinder.inference.outputs import one_core_each
from rejoinder.inference.sentence_stream import EncodingProgress
from rejoinder.io.files.claims import stamp_of
from rejoinder.links.linker import Linker
from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings
from rejoinder.text.normalize import as_strings

_MOST_HELD_OUT = 1_000
_FOREIGN = 0.01
"""Factor for the weight of a reply in another language than the message: a multilingual
model finds the right answer in the wrong language (notebook/finetuning.md)."""
_LONG, _STEP = 20_000, 50
"""Number of replies from which fitting takes a while; number of messages per progress report."""
_LEAST_HELD_OUT = 40
"""Least held-out messages to fit on."""
LEAST = 0.3
"""Confidence of a good answer. The true reply is one of several good ones, so more are usable
(notebook/explore.md)."""


class Suggestions:
    """Past messages and replies, or canned answers, to suggest replies from."""

    def __init__(
        self,
        past: PastReplies | None,
        answers: Collection | None,
        confidence: float = LEAST,
        tried: Tried | None = None,
        *,
        stage: ExtractProgress = lambda _stage, _done, _all: None,
    ) -> None:
        """Prepares suggestions, and fits confidences on held-out threads unless `tried` is given.

        `open` reads these arguments from a source.
        """
        self._past, self._answers, self._stage = past, answers, stage
        made = answers if past is None else past.collection
        if made is None:
            raise InputError("past replies or answers are needed.")
        self.encoder = made.encoder
        """The model of the embeddings."""
        self.left_out = made.left_out if isinstance(made, Collection) else {}
        """Number of messages of an export that were left out, by reason."""
        if answers is not None:
            self._canned = known_replies.replies_of(answers, np.arange(len(answers)))
            self._responses = self.encoder.encode_response(answers.texts)
        if past is not None and tried is None:
            tried = self._fit(past)
        self.tried = tried
        """How suggestions did on held-out threads; None: too few past messages to hold any out."""
        self.fitted = None if tried is None else tried.fitted(confidence)
        """How good suggestions are from the requested confidence on."""

    @classmethod
    def open(
        cls,
        source: Given,
        encoder: Model = None,
        *,
        answers: Given | None = None,
        columns: str | None = None,
        where: Where | None = None,
        confidence: float = LEAST,
        links: str | Path | None = None,
        threads: int | None = None,
        progress: EncodingProgress = lambda _done, _read, _all: None,
        stage: ExtractProgress = lambda _stage, _done, _all: None,
    ) -> "Suggestions":
        """Reads past messages and their replies, or canned answers.

        Args:
            source: A folder of pairs, an export, or an index of one; or a file of answers, one per
                line, or a list of them (`open_collection`).
            encoder: The model, or its name or folder. Default: from the index, or by language,
                as in `Index.create`.
            answers: Suggest only these, by the answers in the past of `source`.
            columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
            where: Suggest only replies that meet these conditions, such as `{"author": "anna"}`;
                see `Index.search`.
            confidence: The least confidence of a good answer, from 0 to 1.
            links: File of `own_links.fit_links`, which chooses likely answers; by
                default the linker of the package.
            threads: Number of CPU cores; None means all that the process may use.
            progress: Called with the progress of encoding.
            stage: Called while confidences are fitted on a long past: with the name of the step,
                the messages done, and the total.

        Raises:
            InputError: an argument is not valid, the source can't be read, or none of its messages
                answers another.
            ModelError: the model can't be loaded, or has no response side.
            MissingExtraError: a package to read the source is missing.
        """
        check_share("confidence", confidence)
        conditions = fields_of(where)
        index = Path(source) if isinstance(source, str | Path) else None
        if index is None or (columns or links) is not None or not (index / INDEX).is_file():
            index = None
        kept = None if index is None else known_replies.read_kept(index, encoder, threads)
        past, tried = kept or (None, None)
        if past is None:
            made = open_collection(
                source, encoder, columns=columns, threads=threads, progress=progress
            )
            if not any(made.about):
                if where or answers is not None:
                    name = "where" if where else "answers"
                    raise InputError(f"{name}: these texts have no replies and no authors.")
                return cls(None, made)
            linker = None if links is None else Linker(links)
            if linker and any(made.column("confidence")):
                raise InputError(f"links: {made.name} was linked already, by `rejoinder explore`.")
            past = known_replies.past_replies(with_answers(made, linker))
        name, whole = past.collection.name, past
        if where:
            past, tried = past.only(past.collection.meeting(conditions)), None
        if not len(past):
            raise _no_replies(name, where if len(whole) else None)
        if answers is not None:
            canned = open_collection(answers, past.collection.encoder)
            return cls(past, canned, confidence, stage=stage)
        opened = cls(past, None, confidence, tried, stage=stage)
        if index is not None and kept is None and not where:
            known_replies.keep(index, past, opened.tried)
        return opened

    @property
    def has_past(self) -> bool:
        """Whether there are past messages with replies, not only answers."""
        return self._past is not None

    def suggest(self, message: str, top_k: int = 3) -> Suggested:
        """Returns the `top_k` best replies to a message that say different things.

        >>> past = Suggestions.open(["We open at nine.", "Parcels take three days."])
        >>> past.suggest("When does the shop open?").suggestions[0].reply
        'We open at nine.'

        Raises:
            InputError: `message` is not a string, or `top_k` not a whole number of at least 1.
        """
        if not isinstance(message, str):
            raise InputError(f"message must be a string; got a {type(message).__name__}.")
        top_k = whole_number("top_k", top_k)
        [message] = as_strings([message])
        query = self.encoder.encode([message])
        [(pairs, cosines, voted)] = self._voted([message], query, None)
        found = [self._suggestion(voted, one, pairs, cosines) for one in voted.folded(top_k)]
        if self.fitted is None:
            return Suggested(message, found, None, None)
        least = self.fitted.threshold
        is_good = bool(found) and (found[0].confidence or 0.0) >= least
        return Suggested(message, found, least, is_good)

    def _suggestion(
        self, voted: Voted, group: Indices, pairs: Indices, cosines: Embeddings
    ) -> Suggestion:
        made: known_replies.Messages | None = self._answers
        row = place = voted.shown(group)
        asked = similarity = None
        if made is None:
            past = self._past
            assert past is not None  # noqa: S101 -- without answers there is a past
            made, row = past.collection, int(past.replied[pairs[place]])
            asked = made.texts[int(past.asked[pairs[place]])]
            similarity = float(cosines[place])
        best = group[:1]
        fitted = self.fitted
        chance = None if fitted is None else float(fitted.confidence(voted.scores[best])[0])
        return Suggestion(
            made.texts[row], chance, float(voted.scores[best[0]]), int(voted.alike[best[0]]),
            asked, similarity, made.ids[row], made.about[row],
        )  # fmt: skip

    def _voted(
        self, messages: Sequence[str], queries: Embeddings, known: NDArray[np.bool_] | None
    ) -> Iterator[tuple[Indices, Embeddings, Voted]]:
        """Yields for each message the nearest pairs, their similarities, and scored candidates.

        Candidates are the replies of these pairs, or the canned answers. Only the pairs in
        `known`, (P,) bool, count; None means all.
        """
        none, zero = np.empty(0, np.int64), np.empty(0, np.float32)
        if self._past is None:
            for query in queries:
                yield none, zero, voting.by_response(self._canned, self._fits(query))
            return
        past = self._past
        found = list(past.nearest(queries, voting.NEIGHBOURS, known))
        past.replies.prepare(np.concatenate([none, *(near for near, _ in found)]))
        with one_core_each():  # two cores took 34 times the processor time for such small products
            for message, query, (near, cosines) in zip(messages, queries, found, strict=True):
                replies = past.replies.at(near)
                alike, asked = replies.alike(replies), past.collection.rows(past.asked[near])
                same = alike >= voting.SAME
                weights = voting.weights_of(voting.nearness(query, asked, same))
                weights[past.foreign(message, near)] *= _FOREIGN
                ties = weights
                if self._answers is not None:
                    alike, ties = self._canned.alike(replies), self._fits(query)
                    same = self._canned.same(self._canned)
                yield near, cosines, voting.vote(alike, weights, ties, same)

    def _fits(self, query: Embeddings) -> Floats:
        """Returns the (C,) response scores of canned answers."""
        return np.asarray(self._responses @ query, np.float64)

    def _fit(self, past: PastReplies) -> Tried | None:
        """Fits confidences on one part of the past, and tests them on another.

        Both are answered from the rest. Returns None if the rest is too small.
        """
        scores, right, _ = self._tried(past, known_replies.FIT)
        history = int((past.parts == known_replies.HISTORY).sum())
        if min(len(scores), history) < _LEAST_HELD_OUT:
            return None
        confidence = voting.fit_confidence(scores, right)
        others, rightly, same_words = self._tried(past, known_replies.CHECK)
        return Tried(confidence, len(scores), confidence(others), rightly, same_words)

    def _tried(
        self, past: PastReplies, part: int
    ) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        """Suggests replies to held-out messages, from the pairs that are not held out.

        Returns:
            (N,) float64 scores of the best suggestions, (N,) bool: whether it says nearly the same
            as a true reply, and (N,) bool: whether it does so in the same words.
        """
        messages = past.held_out(part, _MOST_HELD_OUT)
        doing = "fitting" if part == known_replies.FIT else "trying"
        stage = self._stage if len(past) > _LONG else (lambda _stage, _done, _all: None)
        stage(doing, 0, len(messages))
        rows = past.collection.rows(messages)
        asked = [past.collection.texts[row] for row in messages.tolist()]
        found = self._voted(asked, rows, past.parts == known_replies.HISTORY)
        scores = np.zeros(len(messages))
        best = np.zeros(len(messages), np.int64)
        for at, (pairs, _, voted) in enumerate(found):
            [group] = voted.folded(1)
            scores[at], place = voted.scores[group[0]], voted.shown(group)
            if not (at + 1) % _STEP:
                stage(doing, at + 1, len(messages))
            best[at] = place if self._answers is not None else pairs[place]
        if self._answers is None:
            return scores, *past.judged(messages, past.replies.at(best), past.texts(best))
        texts = [self._answers.texts[row] for row in best.tolist()]
        return scores, *past.judged(messages, self._canned.at(best), texts)


def _no_replies(name: str, where: Where | None) -> InputError:
    """Returns the error for a past without replies, or without replies that meet conditions."""
    if not where:
        return InputError(
            f"{name or 'what was given'}: no message answers another; extract pairs first "
            "(`pair='adjacent'`, `within`), and name their folder."
        )
    asked = ", ".join(f"{key}={value}" for key, value in where.items())
    return InputError(f"{name} has no reply with {asked} to a message by somebody else.")


_MOST = 4
"""Number of authors whose replies are kept ready."""


class Suggester:
    """Suggests replies by all authors or by one, from the latest state. Threads take turns."""

    def __init__(self, index: Path, threads: int | None = None) -> None:
        """Prepares for the messages of an index, which are opened on first use.

        Args:
            index: Folder of the index.
            threads: Number of CPU cores; None means all that the process may use.
        """
        self._index, self._threads = index, threads
        self._encoder: Model = None
        self._stamp: object = None
        self._lock, self._of = Lock(), lru_cache(_MOST)(self._open)

    def __call__(self, message: str, top_k: int, author: str | None) -> Suggested:
        """Returns the `top_k` best replies to a message, by an author if one is given.

        Raises:
            RejoinderError: the index is damaged, or has no such reply.
        """
        with self._lock:
            if (stamp := stamp_of(self._index / INDEX)) != self._stamp:
                self._of.cache_clear()
                self._stamp, self._encoder = stamp, None
            return self._of(author).suggest(message, top_k)

    def _open(self, author: str | None) -> Suggestions:
        where = None if author is None else {"author": author}
        opened = Suggestions.open(self._index, self._encoder, where=where, threads=self._threads)
        self._encoder = opened.encoder
        return opened
