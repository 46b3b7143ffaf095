"""`links/ubuntu-irc`: who answers whom in #ubuntu, with names in the texts and without.

The network of the package reads the encoder's embeddings, next to times, turns and words. The score
is F of links as the scripts of Kummerfeld et al. 2019 (P19-1374) count them.
"""

from collections.abc import Sequence
from threading import Lock

import numpy as np

from rejoinder.datasets.catalogue import missing
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.metrics import LINKS, Items
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of_file, sha256_of_folder
from rejoinder.links.linker import Linker
from rejoinder.links.scores import AnnotatedLogs, link_scores, read_logs
from rejoinder.measures import unit_rows
from rejoinder.protocols import Embeddings

_WITH, _WITHOUT = "links/ubuntu-irc", "links/ubuntu-irc-nameless"


class _Both:
    """Both sides of the encoder that is judged."""

    def __init__(self, embedder: Embedder, task: str) -> None:
        self._embedder, self._task, self._lock = embedder, task, Lock()
        self._texts: dict[int, Sequence[str]] = {}

    def encode(self, texts: Sequence[str]) -> Embeddings:
        with self._lock:
            rows = unit_rows(self._embedder.embed(texts, self._task))
            self._texts[id(rows)] = texts
        return rows

    def as_responses(self, rows: Embeddings) -> Embeddings:
        with self._lock:
            texts = self._texts.pop(id(rows))
            found, places = self._embedder.embed_responses(texts, self._task)
        return unit_rows(found)[places]


def _run(embedder: Embedder, context: Context, part: Part, data: AnnotatedLogs) -> Scored:
    task = part[0]
    embedder.prepare(task, [text for log in data.logs for text in log.texts])
    linker = Linker(encoder=_Both(embedder, task), names=task == _WITH)
    ids, right, wanted, found = list[str](), list[float](), list[float](), []
    for log in data.logs:
        links = linker.link(log.texts, log.authors, log.times)
        said = log.predicted(links.parents.tolist())
        found.append((log.answers, said))
        for line, answered in log.answers.items():
            ids.append(f"{log.name}:{line}")
            right.append(float(said[line][0] in answered))
            wanted.append(float(len({*answered})))
    items = Items(ids, np.array(right), np.array(wanted))
    scale = 2 * len(ids) / (len(ids) + sum(wanted))
    told = link_scores(found)
    return Scored(
        main=LINKS.name,
        scores=LINKS.recompute(items),
        items=items,
        intervals={LINKS.name: resampled_interval(items.predictions, context.seed, 100 * scale)},
        data={"name": "irc-disentanglement", "logs": len(data.logs)},
        notes=[
            f"conversations: VI {100 * told.vi:.1f}, one-to-one {100 * told.one_to_one:.1f}, "
            f"exact F {100 * told.exact_f:.1f}",
            "the network of the package, fitted on train, reads the embeddings",
        ],
    )


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    read: dict[Part, AnnotatedLogs] = {}
    for split in context.splits:
        places = [
            folder / "links" / f"ubuntu_irc_{split}.tar.zst",
            folder / "irc-disentanglement/data" / split,
        ]
        path = next((place for place in places if place.exists()), None)
        if path is None:
            raise missing(
                f"Annotated links of {split}", places,
                "Put github.com/jkkummerfeld/irc-disentanglement (CC BY 4.0) there.",
            )  # fmt: skip
        sha256 = sha256_of_file(path) if path.is_file() else sha256_of_folder(path)
        logs = AnnotatedLogs([*read_logs(path)], sha256)
        read |= {(task, split): logs for task in ids}
    return read


FAMILIES = (Family({_WITH: ("links",), _WITHOUT: ("links",)}, _read, _run),)
