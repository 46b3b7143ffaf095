"""`rejoinder encode`: writes or prints the embeddings of sentences, a chunk at a time."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.lines import as_text, read_lines
from rejoinder.cli.models import open_encoder
from rejoinder.cli.options import (
    JsonOption,
    ModelOption,
    ModelSha256Option,
    QuietOption,
    TsvOption,
    set_quiet,
)
from rejoinder.cli.output import form_of, note_unknown, print_lines, print_rows, status_line
from rejoinder.cli.words import is_file
from rejoinder.errors import InputError
from rejoinder.files.claims import claim

if TYPE_CHECKING:
    from rejoinder.protocols import Embeddings
    from rejoinder.runtime.encoder import SentenceEncoder

_CHUNK = 32_768
"""Number of sentences whose embeddings are in memory at a time (all for a .parquet file)."""

EXAMPLES = """Examples:

rejoinder encode 'How old are you?' --json

rejoinder encode --model model/ --sentences sentences.txt --out embeddings.npy

echo 'How old are you?' | rejoinder encode --json
"""

Chunks = Iterable[tuple[list[str], "Embeddings"]]
"""Sentences with their embeddings, in order."""


def encode(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences. Without any, or with -, lines of standard input."),
    ] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    sentences: Annotated[
        str | None, typer.Option(help="File with one sentence per line; - is standard input.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write: .npy (N x D float32), .parquet or .jsonl."),
    ] = None,
    response: Annotated[
        bool, typer.Option("--response", help="Encode as responses (v' of the paper).")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Sentences per batch: affects memory, not results.")
    ] = 4_096,
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute embeddings of sentences: write them to a file, or print a line for each sentence."""
    set_quiet(quiet)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    file = _input_file(texts or [], sentences)
    load = partial(open_encoder, model, model_sha256)
    if out is None:
        _encode(load, texts, file, None, form, response=response, batch_size=batch_size)
        return
    _check_out(out, prints=as_json or as_tsv)
    with claim(out):
        _encode(load, texts, file, out, form, response=response, batch_size=batch_size)


def _input_file(texts: list[str], sentences: str | None) -> str | None:
    """Returns the file to read (`-` is standard input), or None if `texts` are to be encoded."""
    if texts and sentences is not None:
        raise InputError("sentences are given as arguments or by --sentences FILE, not both.")
    if not texts or texts == ["-"]:
        return sentences or "-"
    file = next((text for text in texts if is_file(Path(text))), None)
    if file is not None:
        raise InputError(f"{file} is a file; its lines are encoded by --sentences {file}.")
    return None


def _check_out(out: Path, *, prints: bool) -> None:
    if out.suffix not in _WRITERS:
        raise InputError(f"--out {out}: the name must end in one of {', '.join(_WRITERS)}.")
    if prints:
        raise InputError("--out writes a file, --json and --tsv print: leave one of them out.")
    if out.is_dir():
        raise InputError(f"--out {out} is a folder; name a file in it.")


def _encode(
    load: "Callable[[], SentenceEncoder]",
    texts: list[str] | None,
    file: str | None,
    out: Path | None,
    form: str,
    *,
    response: bool,
    batch_size: int,
) -> None:
    sentences = [as_text(text) for text in texts or []] if file is None else read_lines(file)
    encoder = load()
    run = encoder.encode_response if response else encoder.encode
    unknown = 0

    def chunks() -> Iterator[tuple[list[str], "Embeddings"]]:
        nonlocal unknown
        for start in _with_bar(range(0, len(sentences), _CHUNK)):
            chunk = sentences[start : start + _CHUNK]
            embeddings = run(chunk, batch_size=batch_size)
            unknown += int((~embeddings.any(axis=1)).sum())
            yield chunk, embeddings

    if out is not None:
        _write(out, chunks(), (len(sentences), encoder.dim))
    elif form == "table":
        _print_table(chunks(), encoder.dim)
    else:
        print_lines(_json_lines(chunks()) if form == "json" else _tsv_lines(chunks()))
    note_unknown(unknown, len(sentences), "sentences", "their vectors are zero")


def _write(out: Path, chunks: Chunks, shape: tuple[int, int]) -> None:
    from rejoinder.files.atomic import new_file

    with new_file(out) as file:
        _WRITERS[out.suffix](file, chunks, shape)
    status_line(f"wrote {out}: {shape[0]} x {shape[1]} float32")


def _write_npy(file: IO[bytes], chunks: Chunks, shape: tuple[int, int]) -> None:
    import numpy as np

    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for _, embeddings in chunks:
        file.write(embeddings.astype("<f4", copy=False).tobytes())


def _write_jsonl(file: IO[bytes], chunks: Chunks, _shape: tuple[int, int]) -> None:
    for line in _json_lines(chunks):
        file.write(f"{line}\n".encode())


def _write_parquet(file: IO[bytes], chunks: Chunks, shape: tuple[int, int]) -> None:
    import polars as pl

    vector = pl.Array(pl.Float32, shape[1])
    frames = [
        pl.DataFrame({"text": texts, "embedding": pl.Series(embeddings, dtype=vector)})
        for texts, embeddings in chunks
    ]
    pl.concat(frames).write_parquet(file)


_WRITERS: dict[str, Callable[[IO[bytes], Chunks, tuple[int, int]], None]] = {
    ".npy": _write_npy,
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}


def _json_lines(chunks: Chunks) -> Iterator[str]:
    for texts, embeddings in chunks:
        for text, row in zip(texts, embeddings, strict=True):
            numbers = ", ".join(map(_exact, row.tolist()))
            yield f'{{"text": {json.dumps(text, ensure_ascii=False)}, "embedding": [{numbers}]}}'


def _tsv_lines(chunks: Chunks) -> Iterator[str]:
    for _, embeddings in chunks:
        for row in embeddings:
            yield "\t".join(map(_exact, row.tolist()))


# nine digits identify a float32
_exact = "{:.9g}".format


def _print_table(chunks: Chunks, dim: int) -> None:
    rows = [
        (text, " ".join(f"{value:+.3f}" for value in row[:6]) + (" …" if dim > 6 else ""))
        for texts, embeddings in chunks
        for text, row in zip(texts, embeddings, strict=True)
    ]
    print_rows(("sentence", f"first {min(6, dim)} of {dim}"), rows, "table")


def _with_bar(starts: Sequence[int]) -> Iterable[int]:
    """Returns `starts`, with a progress bar on a terminal if there are several."""
    if not sys.stderr.isatty() or len(starts) < 2:
        return starts
    from rich.progress import track

    from rejoinder.cli.output import stderr

    return track(starts, "encoding", console=stderr())
