"""`rejoinder encode`: writes or prints the embeddings of sentences, as a stream."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.encode_on_engine import encode_on_engine
from rejoinder.cli.lines import as_text, stream_texts
from rejoinder.cli.models import note_too_long, open_encoder
from rejoinder.cli.options import (
    ColumnsOption,
    JsonOption,
    MasterOption,
    ModelOption,
    ModelSha256Option,
    OnTooLongOption,
    OverwriteOption,
    QuietOption,
    TsvOption,
    set_quiet,
)
from rejoinder.cli.output import (
    form_of,
    note,
    note_foreign,
    note_zero,
    print_encoded,
    print_lines,
    print_rows,
)
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.inference.encoder import SentenceEncoder
    from rejoinder.inference.sentence_stream import EncodedChunk, EncodingProgress

EXAMPLES = """Examples:

rejoinder encode 'How old are you?' --json

rejoinder encode --model model/ --sentences sentences.txt --out embeddings.npy

rejoinder encode --sentences texts.txt.gz --out vectors.parquet --resume

echo 'How old are you?' | rejoinder encode --json

rejoinder encode texts/ --engine spark --master yarn --out vectors.parquet

rejoinder encode texts/ --engine ray --master auto --out vectors.parquet
"""


def encode(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sentences. Without any, or with -, lines of standard input. With --engine: files "
            "with one sentence per line, folders and patterns of them."
        ),
    ] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    sentences: Annotated[
        str | None,
        typer.Option(
            help="File of sentences, one per line, plain or compressed; - is standard input."
        ),
    ] = None,
    columns: ColumnsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .npy (N x D float32), .parquet or .jsonl. With --engine: a folder "
            "of such files."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue what an interrupted run wrote to OUT.")
    ] = False,
    overwrite: OverwriteOption = False,
    response: Annotated[
        bool, typer.Option("--response", help="Encode as responses (v' of the paper).")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Sentences per batch: affects memory, not results.")
    ] = 4_096,
    on_too_long: OnTooLongOption = "truncate",
    engine: Annotated[
        str | None,
        typer.Option(
            help="Encode files on many cores or machines: spark or ray. Default: this process."
        ),
    ] = None,
    master: MasterOption = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="With --engine: files at a time on this machine.")
    ] = None,
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute embeddings of sentences: write them to a file, or print a line for each sentence."""
    set_quiet(quiet)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if columns is not None and (engine is not None or (texts and texts != ["-"])):
        raise InputError("--columns is for --sentences FILE, without --engine.")
    if engine is not None:
        encode_on_engine(
            engine,
            [*(texts or []), *([sentences] if sentences else [])],
            out,
            model=(model, model_sha256, on_too_long),
            as_json=as_json,
            as_tsv=as_tsv,
            master=master,
            threads=threads,
            response=response,
            batch_size=batch_size,
            resume=resume,
            overwrite=overwrite,
        )
        return
    if master is not None or threads is not None:
        raise InputError("--master and --threads are for --engine spark and --engine ray.")
    file = _input_file(texts or [], sentences)
    given = [as_text(text) for text in texts or []]
    if out is None:
        if resume or overwrite:
            raise InputError("--resume and --overwrite are about the file of --out, and none is.")
        lines = given if file is None else stream_texts(file, columns)
        encoder = open_encoder(model, model_sha256, on_too_long)
        _print(encoder, lines, form, response=response, batch_size=batch_size)
        return
    if as_tsv:
        raise InputError("--out writes a file and --tsv prints embeddings: leave one of them out.")
    _write(
        out,
        given if file is None else stream_texts(file, columns) if file == "-" else Path(file),
        columns=None if file in (None, "-") else columns,
        model=(model, model_sha256, on_too_long),
        as_json=as_json,
        response=response,
        batch_size=batch_size,
        resume=resume,
        overwrite=overwrite,
    )


def _input_file(texts: list[str], sentences: str | None) -> str | None:
    """Returns the file to read (`-` is standard input), or None if `texts` are to be encoded."""
    if texts and sentences is not None:
        raise InputError("sentences are given as arguments or by --sentences FILE, not both.")
    if not texts or texts == ["-"]:
        return sentences or "-"
    file = next(filter(os.path.isfile, texts), None)
    if file is not None:
        raise InputError(f"{file} is a file; its lines are encoded by --sentences {file}.")
    return None


def _write(
    out: Path,
    source: Path | Iterable[str],
    *,
    columns: str | None,
    model: tuple[str | None, str | None, str],
    as_json: bool,
    response: bool,
    batch_size: int,
    resume: bool,
    overwrite: bool,
) -> None:
    """Writes the embeddings to a file, and says what was written."""
    from rejoinder.cli.progress import encoding_bar
    from rejoinder.inference.encoding import check_output, encode_file, interrupted_sentences
    from rejoinder.io.files.claims import claim

    check_output(out, resume=resume, overwrite=overwrite)
    with claim(out):  # before the model is loaded, which may take long
        encoder = open_encoder(*model)
        try:
            with encoding_bar() as show:
                progress = _telling(out, show) if resume else show
                written = encode_file(
                    encoder,
                    source,
                    out,
                    columns=columns,
                    response=response,
                    batch_size=batch_size,
                    resume=resume,
                    overwrite=overwrite,
                    progress=progress,
                )
        except (KeyboardInterrupt, SystemExit):
            kept = interrupted_sentences(out)
            if kept:
                note(f"{kept:,} sentences are kept; the same command with --resume continues")
            raise
    print_encoded(written, out, as_json=as_json)
    note_too_long(encoder, written.too_long, written.n, "sentences")


def _telling(out: Path, show: "EncodingProgress") -> "EncodingProgress":
    """Returns `show`, which on its first call also says where the work is resumed."""
    is_first = True

    def tell(done: int, read: int, size: int | None) -> None:
        nonlocal is_first
        if is_first:
            note(
                f"{out} is resumed behind its first {done:,} sentences"
                if done
                else f"no interrupted run has begun {out}: it begins with the first sentence"
            )
        is_first = False
        show(done, read, size)

    return tell


def _print(
    encoder: "SentenceEncoder", lines: Iterable[str], form: str, *, response: bool, batch_size: int
) -> None:
    """Prints the embeddings, each chunk as soon as it is encoded, except in a table."""
    from rejoinder.cli.progress import encoding_bar
    from rejoinder.inference.sentence_stream import encoded_chunks

    counts: Counter[str] = Counter()
    foreign = 0.0

    def counted() -> "Iterator[EncodedChunk]":
        nonlocal foreign
        with encoding_bar() as show:
            show(0, 0, None)
            for chunk in encoded_chunks(encoder, lines, response=response, batch_size=batch_size):
                counts.update(n=len(chunk.texts), unknown=chunk.unknown, too_long=chunk.too_long)
                foreign += chunk.foreign * len(chunk.texts)
                show(counts["n"], 0, None)
                yield chunk

    if form == "table":
        _print_table(counted(), encoder.dim)
    else:
        print_lines(_json_lines(counted()) if form == "json" else _tsv_lines(counted()))
    note_zero(counts["unknown"], counts["n"])
    note_foreign(foreign / max(counts["n"], 1), "sentences")
    note_too_long(encoder, counts["too_long"], counts["n"], "sentences")


def _json_lines(chunks: "Iterable[EncodedChunk]") -> Iterator[str]:
    from rejoinder.io.formats.embedding_files.jsonl import json_lines

    for chunk in chunks:
        yield from json_lines(chunk.texts, chunk.embeddings)


def _tsv_lines(chunks: "Iterable[EncodedChunk]") -> Iterator[str]:
    from rejoinder.io.formats.embedding_files.jsonl import exact

    for chunk in chunks:
        for row in chunk.embeddings:
            yield "\t".join(map(exact, row.tolist()))


def _print_table(chunks: "Iterable[EncodedChunk]", dim: int) -> None:
    rows = [
        (text, " ".join(f"{value:+.3f}" for value in row[:6]) + (" …" if dim > 6 else ""))
        for chunk in chunks
        for text, row in zip(chunk.texts, chunk.embeddings[:, :6].tolist(), strict=True)
    ]
    print_rows(("sentence", f"first {min(6, dim)} of {dim}"), rows, "table")
