"""`rejoinder encode`: writes or prints the embeddings of sentences, as a stream."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.corpus.texts import Entry
    from rejoinder.inference.encoder import SentenceEncoder
    from rejoinder.inference.encoding import EncodedFile
    from rejoinder.inference.sentence_stream import EncodedChunk

_FILE_NAME = re.compile(r"\S+\.(?:txt|csv|tsv|jsonl|parquet|gz|zst|zip)")


@options.prints(
    "json",
    "tsv",
    needs={
        "--engine spark or --engine ray": ("--master", "--threads"),
        "--out FILE": ("--resume", "--overwrite"),
    },
    excludes=(("--columns", "--engine"), ("--out", "--tsv")),
)
def encode(
    texts: Annotated[list[str] | None, typer.Argument()] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    sentences: str | None = None,
    columns: options.ColumnsOption = None,
    out: Path | None = None,
    resume: bool = False,
    overwrite: options.OverwriteOption = False,
    response: bool = False,
    batch_size: Annotated[int, typer.Option(min=1)] = 4_096,
    on_too_long: options.OnTooLongOption = "truncate",
    engine: str | None = None,
    master: options.MasterOption = None,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Compute embeddings of sentences: write them to a file, or print one line per sentence.

    Args:
        texts: Sentences; or a file of sentences, plain or compressed: one per line, a table (.csv,
            .tsv, .parquet) or JSON lines; or an export of conversations, or a folder of pairs.
            Default, and with -: standard input. With --engine: files with one sentence per line,
            folders and patterns of them.
        sentences: File of sentences, for scripts: a missing file is an error here, but a sentence
            as an argument. - is standard input.
        out: File to write: .npy (N x D float32), .parquet or .jsonl. With --engine: a folder of
            such files.
        resume: Continue an interrupted run that wrote to OUT.
        response: Encode as responses (v' of the paper).
        batch_size: Sentences per batch: affects memory, not results.
        engine: Encode files on many cores or machines: spark or ray. Default: this process.
        threads: With --engine: number of files to encode at a time on this machine.

    Examples:
        rejoinder encode 'How old are you?' --json
        rejoinder encode sentences.txt --model model/ --out embeddings.npy
        rejoinder encode texts.txt.gz --out vectors.parquet --resume
        rejoinder encode tickets.csv --columns text=subject --out vectors.parquet
        rejoinder encode --json < sentences.txt
        rejoinder encode texts/ --engine spark --master yarn --out vectors.parquet
        rejoinder encode texts/ --engine ray --master auto --out vectors.parquet
    """
    words = [*(texts or [])]
    shared: dict[str, Any] = {"response": response, "batch_size": batch_size}
    kept: dict[str, Any] = {**shared, "resume": resume, "overwrite": overwrite}
    if engine is not None:
        from rejoinder.inference.part_encoding import encode_files, finished_parts

        sources = [*words, *([sentences] if sentences else [])]
        if out is None or not sources or "-" in sources:
            raise InputError(f"--engine {engine} needs files, and --out FOLDER.")
        work = partial(
            encode_files, options.model_folder(model, model_sha256), sources, out, engine=engine,
            master=master, threads=threads, on_too_long=on_too_long, **kept,
        )  # fmt: skip
        written = _written(work, lambda: "{} of {} parts".format(*finished_parts(out)))
        output.print_encoded(written, out)
        return
    source = _source(words, sentences, columns)
    if out is None:
        encoder = options.open_encoder(model, model_sha256, on_too_long)
        counts = _print(encoder, _entries(source, columns), shared)
    else:
        from rejoinder.inference.encoding import check_output, encode_file, interrupted_sentences
        from rejoinder.io.files.claims import claim

        check_output(out, resume=resume, overwrite=overwrite)
        with claim(out):  # before the model is loaded, which may take long
            encoder = options.open_encoder(model, model_sha256, on_too_long)
            if resume:
                done = interrupted_sentences(out)
                place = f"after its first {done:,} sentences" if done else "from its beginning"
                output.note(f"{out} is resumed {place}")
            in_file = columns if isinstance(source, Path) else None
            work = partial(encode_file, encoder, source, out, columns=in_file, **kept)
            written = _written(work, lambda: f"{interrupted_sentences(out):,} sentences")
        output.print_encoded(written, out)
        counts = {"n": written.n, "too_long": written.too_long}
    options.note_too_long(encoder, counts["too_long"], counts["n"], "sentences")


def _source(
    words: list[str], sentences: str | None, columns: str | None
) -> "Path | Iterable[str] | Iterable[Entry]":
    """Returns the file to read, or the texts of arguments or of standard input."""
    if words and sentences is not None:
        raise InputError("sentences are given as arguments or by --sentences FILE, not both.")
    if words and words != ["-"]:
        sentences = next(filter(os.path.exists, words), None)
        if sentences is None:
            if columns is not None or _FILE_NAME.fullmatch(words[0]):
                raise InputError(f"there is no file {words[0]!r}; send such a sentence by stdin.")
            return list(map(options.as_text, words))
        if len(words) > 1:
            raise InputError(f"{sentences} is a file or a folder; name it alone.")
    file = sentences or "-"
    return options.stream_entries(file, columns) if options.is_stream(file) else Path(file)


def _entries(
    source: "Path | Iterable[str] | Iterable[Entry]", columns: str | None
) -> "Iterable[Entry]":
    from rejoinder.inference.sentence_stream import given_texts

    if isinstance(source, Path):
        return options.stream_entries(str(source), columns)
    return given_texts(source)


def _written(work: "Callable[..., EncodedFile]", kept: Callable[[], str]) -> "EncodedFile":
    """Does the work with a bar. If it is interrupted, notes what is `kept`, if that is anything."""
    try:
        with encoding_bar() as show:
            return work(progress=show)
    except (KeyboardInterrupt, SystemExit):
        if not (said := kept()).startswith("0 "):
            output.note(f"{said} are kept; the same command with --resume continues")
        raise


def _print(
    encoder: "SentenceEncoder", entries: "Iterable[Entry]", settings: dict[str, Any]
) -> Mapping[str, int]:
    """Prints the embeddings, each chunk as soon as it is encoded, except in a table."""
    from rejoinder.inference.sentence_stream import Source, encoded_chunks
    from rejoinder.io.formats.embedding_files import exact, json_lines

    counts: Counter[str] = Counter()
    form = output.form_of_output()

    def counted(chunk: "EncodedChunk") -> "EncodedChunk":
        counts.update(n=len(chunk.texts), unknown=chunk.unknown, too_long=chunk.too_long)
        return chunk

    with encoding_bar() as show:
        source = Source(entries)
        chunks = map(counted, encoded_chunks(encoder, source, show, **settings))
        if form == "json":
            output.print_lines(
                line for c in chunks for line in json_lines(c.texts, c.embeddings, c.known)
            )
        elif form == "tsv":
            output.print_lines(
                "\t".join(map(exact, row.tolist())) for c in chunks for row in c.embeddings
            )
        else:
            rows = [
                (text, " ".join(f"{value:+.3f}" for value in row) + " …" * (encoder.dim > 6))
                for chunk in chunks
                for text, row in zip(chunk.texts, chunk.embeddings[:, :6].tolist(), strict=True)
            ]
            columns = ("sentence", f"first {min(6, encoder.dim)} of {encoder.dim}")
            output.print_table("", columns, rows)
    output.note_zero(counts["unknown"], counts["n"])
    return counts
