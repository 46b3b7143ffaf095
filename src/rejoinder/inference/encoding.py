"""Encodes a stream of sentences to a file, in runs that can be interrupted and resumed."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.inference import sentence_stream
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import whole_number
from rejoinder.inference.outputs import BATCH_SIZE, OnTooLong, checked_way
from rejoinder.io.files.atomic import Saved, growing, publish, read_unfinished
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import Count, Digest, Record, Sha256, decoded
from rejoinder.io.files.storage import is_device
from rejoinder.io.formats.embedding_files import format_of

_SAVE_SECONDS = 10.0
"""Seconds between saved states."""


@dataclass(frozen=True)
class EncodedFile:
    """A file of embeddings that `encode_file` wrote."""

    path: Path
    n: int
    """Number of sentences."""
    dim: int
    """Dimension of the embeddings."""
    unknown: int
    """Number of sentences without a known word, whose vectors are zero."""
    too_long: int
    """Number of sentences of more tokens than the model reads, which were cut or split."""
    resumed: int
    """Number of sentences that an interrupted run had encoded."""
    seconds: float
    """Duration of this run."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of messages of an export that were left out, by the reason."""


def encode_file(
    encoder: SentenceEncoder,
    sentences: str | Path | Iterable[sentence_stream.GivenText | Entry],
    out: str | Path,
    *,
    columns: str | None = None,
    response: bool = False,
    batch_size: int = BATCH_SIZE,
    on_too_long: OnTooLong | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: sentence_stream.EncodingProgress = lambda _done, _read, _all: None,
) -> EncodedFile:
    """Encodes any number of sentences to a file. The file appears when it is complete.

    The work of an interrupted or killed run is kept next to `out` until it is resumed, except the
    last ten seconds, or the last 8,192 sentences if they took longer. A resumed run writes the
    same bytes as an uninterrupted one.

    Args:
        encoder: The model.
        sentences: Path of a file, plain or compressed: UTF-8 text with a sentence on each line, a
            table (`.csv`, `.tsv`, `.parquet`) or JSON lines; or path of an export of conversations,
            or of a folder of pairs, whose replies are encoded. Or strings or entries.
        out: File to write: `.npy` (N x D float32), `.parquet` or `.jsonl` (`text`, `embedding`).
        columns: The column of a table, or field of JSON lines, with the sentences, as
            `text=COLUMN`. Default: `text`.
        response: Encode by `encode_response`.
        batch_size: See `SentenceEncoder.encode`.
        on_too_long: Likewise.
        resume: Continue an interrupted run of the same input, model and arguments, if there was
            one. The sentences are read again from the start.
        overwrite: Replace a file at `out`, and drop what an interrupted run wrote unless `resume`.
        progress: Told how far the work is.

    Raises:
        InputError: an argument is not valid, `out` exists, an interrupted run was begun there
            (neither `resume` nor `overwrite`) or had another input, model or arguments (`resume`),
            or a line is not UTF-8 text.
        ModelError: the model has no response side, or gives embeddings that are not finite.
        MissingExtraError: the format needs a package that is not installed.
        BusyError: another process writes `out`.
        StorageError: `out` can't be written.
    """
    begun = time.perf_counter()
    path = Path(out)
    way = encoder.on_too_long if on_too_long is None else checked_way(on_too_long)
    batch_size = whole_number("batch_size", batch_size)
    form = format_of(path)
    source = sentence_stream.Source(sentences, columns)
    with claim(path, inputs=[sentences] if isinstance(sentences, str | Path) else ()):
        check_output(path, resume=resume, overwrite=overwrite)
        settings = settings_of(encoder, response, batch_size, way)
        saved = _continued(path, settings, resume=resume, overwrite=overwrite)
        before = None if saved is None else _facts(saved)
        n, unknown, too_long = (before.n, before.unknown, before.too_long) if before else (0, 0, 0)
        digest, resumed, last = Sha256(), n, -math.inf
        with growing(path, form.parts, saved, header_bytes=form.header_bytes) as parts:
            if before is None:
                form.begin(parts.files, encoder.dim)
            else:
                _skip(iter(source), before, digest, source.name)
            chunks = sentence_stream.encoded_chunks(
                encoder,
                source,
                progress,
                response=response,
                batch_size=batch_size,
                on_too_long=way,
                done=resumed,
            )
            for chunk in chunks:
                form.append(parts.files, chunk.texts, chunk.embeddings, chunk.known)
                digest.add(sentence_stream.bytes_of(chunk.texts))
                n += len(chunk.texts)
                unknown += chunk.unknown
                too_long += chunk.too_long
                parts.mark(to_builtins(_Facts(settings, n, unknown, too_long, digest.hexadecimal)))
                if time.monotonic() - last > _SAVE_SECONDS:
                    parts.save()
                    last = time.monotonic()
            parts.save()
            parts.close()
            publish(form.finish(parts.folder, n, encoder.dim), path)
    seconds = time.perf_counter() - begun
    left_out = dict(source.left_out)
    return EncodedFile(path, n, encoder.dim, unknown, too_long, resumed, seconds, left_out)


def check_output(path: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Checks that a file of embeddings can be written at `path`.

    Raises:
        InputError: no format has the suffix, a file exists and `overwrite` is False, it
            is a folder, or a device, which can't be resumed.
        MissingExtraError: the format needs a package that is not installed.
    """
    format_of(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    if is_device(path) and resume:
        raise InputError(f"{path} is not a regular file, so `resume=True` has nothing to continue.")
    if path.exists() and not (overwrite or is_device(path)):
        raise InputError(f"{path} exists; name another file, or replace it with `overwrite=True`.")


def interrupted_sentences(path: Path) -> int:
    """Returns the number of sentences that an interrupted run has encoded to `path`.

    Raises:
        InputError: the state that it left is damaged.
    """
    saved = read_unfinished(path)
    return 0 if saved is None else _facts(saved).n


def settings_of(
    encoder: SentenceEncoder, response: bool, batch_size: int, way: OnTooLong
) -> dict[str, Any]:
    """Returns the settings that decide the bytes of the file, besides the sentences, as JSON."""
    about = encoder.describe()
    adaptation = about["adaptation"]
    return {
        "model (SHA-256 of its weights)": about["sha256"],
        "adaptation (SHA-256)": None if adaptation is None else adaptation["sha256"],
        "response": response,
        "batch_size": batch_size,
        "on_too_long": way,
        "sentences at a time": sentence_stream.CHUNK,
    }


def _continued(
    path: Path, settings: Mapping[str, Any], *, resume: bool, overwrite: bool
) -> Saved | None:
    """Returns the state that an interrupted run left, if `resume` asks to continue it."""
    if is_device(path) or (overwrite and not resume):
        return None
    saved = read_unfinished(path)
    if saved is None:
        return None
    if not resume:
        raise InputError(
            f"an interrupted run has encoded {_facts(saved).n:,} sentences to {path}. Continue "
            "with `resume=True`, or begin again with `overwrite=True`."
        )
    if not settings["model (SHA-256 of its weights)"]:
        raise InputError(
            "`resume=True` needs the SHA-256 of the model, which was never saved; save and load it."
        )
    refuse_changes(path, _facts(saved).settings, settings)
    return saved


def refuse_changes(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses to continue an output that was begun with other settings."""
    for name, value in now.items():
        if before.get(name) != value:
            raise InputError(
                f"{out} was begun with other settings: {name} was {before.get(name)}, now it is "
                f"{value}. Use the same, or begin again with `overwrite=True`."
            )


class _Facts(Record, frozen=True):
    """The saved facts about the sentences encoded so far."""

    settings: Mapping[str, Any]
    n: Count
    unknown: Count
    too_long: Count
    sentences_sha256: Digest


def _facts(saved: Saved) -> _Facts:
    try:
        return decoded(_Facts, saved.facts)
    except ValueError as error:
        raise InputError(
            f"the state of the stopped run is damaged: {error}. Begin again with `overwrite=True`."
        ) from None


def _skip(lines: Iterator[Entry], before: _Facts, digest: Sha256, name: str) -> None:
    """Passes over the sentences of the interrupted run, which must be the same.

    Raises:
        InputError: they differ, or the last chunk, which was not full, now has more lines.
    """
    left = before.n
    while left and (chunk := next(sentence_stream.chunks(islice(lines, left)), None)):
        digest.add(sentence_stream.bytes_of(entry.text for entry in chunk))
        left -= len(chunk)
    changed = left or digest.hexadecimal != before.sentences_sha256
    if changed or (before.n % sentence_stream.CHUNK and next(lines, None) is not None):
        raise InputError(
            f"{name or 'the input'} is not the input of the interrupted run: its first "
            f"{before.n:,} lines have changed. Begin again with `overwrite=True`."
        )
