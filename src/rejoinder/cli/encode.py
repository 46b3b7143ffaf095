"""`rejoinder encode`: sentences to vectors, to a file or to standard output, a piece at a time."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.lines import read_lines
from rejoinder.cli.output import form_of, note_unknown, print_lines, print_rows
from rejoinder.files.claims import claim

if TYPE_CHECKING:
    from rejoinder.protocols import Embeddings

_PIECE = 32_768
"""Sentences whose embeddings are held at a time, unless the format wants all at once."""

_EXAMPLES = """Examples:

rejoinder encode model/ sentences.txt --out embeddings.npy

echo 'How old are you?' | rejoinder encode model/ - --json
"""

Pieces = Iterable[tuple[list[str], "Embeddings"]]
"""Sentences with their embeddings, in order."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("encode", epilog=_EXAMPLES)(encode)


def encode(
    model: Annotated[Path, typer.Argument(help="Model folder, as RUN/model.")],
    file: Annotated[str, typer.Argument(help="One sentence a line; - is standard input.")] = "-",
    out: Annotated[
        Path | None,
        typer.Option(help="Write .npy (N x D float32), .parquet or .jsonl (text, embedding)."),
    ] = None,
    response: Annotated[
        bool, typer.Option("--response", help="Encode as responses, v' of the paper.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Sentences at a time: memory, not results.")
    ] = 4_096,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
    as_tsv: Annotated[bool, typer.Option("--tsv", help="Print the numbers, tabs between.")] = False,
) -> None:
    """Turn sentences into vectors; off a terminal, into lines of tab-separated numbers."""
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if out is None:
        _encode(model, file, None, form, response=response, batch_size=batch_size)
        return
    _check_out(out, prints=as_json or as_tsv)
    with claim(out):
        _encode(model, file, out, form, response=response, batch_size=batch_size)


def _check_out(out: Path, *, prints: bool) -> None:
    from rejoinder.errors import InputError

    if out.suffix not in _WRITERS:
        raise InputError(f"--out {out}: the name must end in one of {', '.join(_WRITERS)}.")
    if prints:
        raise InputError("--out writes a file, --json and --tsv print: leave one of them out.")
    if out.is_dir():
        raise InputError(f"--out {out} is a folder; name a file in it.")


def _encode(
    model: Path, file: str, out: Path | None, form: str, *, response: bool, batch_size: int
) -> None:
    sentences = read_lines(file)
    from rejoinder.runtime.encoder import SentenceEncoder

    encoder = SentenceEncoder.load(model)
    run = encoder.encode_response if response else encoder.encode
    unknown = 0

    def pieces() -> Iterator[tuple[list[str], "Embeddings"]]:
        nonlocal unknown
        for start in _shown(range(0, len(sentences), _PIECE)):
            texts = sentences[start : start + _PIECE]
            embeddings = run(texts, batch_size=batch_size)
            unknown += int((~embeddings.any(axis=1)).sum())
            yield texts, embeddings

    if out is not None:
        _write(out, pieces(), (len(sentences), encoder.dim))
    elif form == "table":
        _print_table(pieces(), encoder.dim)
    else:
        print_lines(_json_lines(pieces()) if form == "json" else _tsv_lines(pieces()))
    note_unknown(unknown, len(sentences), "sentences", "their vectors are zero")


def _write(out: Path, pieces: Pieces, shape: tuple[int, int]) -> None:
    from rejoinder.files.atomic import new_file

    with new_file(out) as file:
        _WRITERS[out.suffix](file, pieces, shape)
    typer.echo(f"wrote {out}: {shape[0]} x {shape[1]} float32", err=True)


def _write_npy(file: IO[bytes], pieces: Pieces, shape: tuple[int, int]) -> None:
    import numpy as np

    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for _, embeddings in pieces:
        file.write(embeddings.astype("<f4", copy=False).tobytes())


def _write_jsonl(file: IO[bytes], pieces: Pieces, _shape: tuple[int, int]) -> None:
    for line in _json_lines(pieces):
        file.write(f"{line}\n".encode())


def _write_parquet(file: IO[bytes], pieces: Pieces, shape: tuple[int, int]) -> None:
    import polars as pl

    kind = pl.Array(pl.Float32, shape[1])
    frames = [
        pl.DataFrame({"text": texts, "embedding": pl.Series(embeddings, dtype=kind)})
        for texts, embeddings in pieces
    ]
    pl.concat(frames).write_parquet(file)


_WRITERS: dict[str, Callable[[IO[bytes], Pieces, tuple[int, int]], None]] = {
    ".npy": _write_npy,
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}


def _json_lines(pieces: Pieces) -> Iterator[str]:
    for texts, embeddings in pieces:
        for text, row in zip(texts, embeddings, strict=True):
            numbers = ", ".join(map(_exact, row.tolist()))
            yield f'{{"text": {json.dumps(text, ensure_ascii=False)}, "embedding": [{numbers}]}}'


def _tsv_lines(pieces: Pieces) -> Iterator[str]:
    for _, embeddings in pieces:
        for row in embeddings:
            yield "\t".join(map(_exact, row.tolist()))


# nine digits give the same float32 back
_exact = "{:.9g}".format


def _print_table(pieces: Pieces, dim: int) -> None:
    rows = [
        (text, " ".join(f"{value:+.3f}" for value in row[:6]) + (" …" if dim > 6 else ""))
        for texts, embeddings in pieces
        for text, row in zip(texts, embeddings, strict=True)
    ]
    print_rows(("sentence", f"first {min(6, dim)} of {dim}"), rows, "table")


def _shown(starts: Sequence[int]) -> Iterable[int]:
    """`starts`, with a bar on a terminal where there is more than one."""
    if not sys.stderr.isatty() or len(starts) < 2:
        return starts
    from rich.progress import track

    from rejoinder.cli.output import stderr

    return track(starts, "encoding", console=stderr())
