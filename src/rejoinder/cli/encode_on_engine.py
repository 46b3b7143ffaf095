"""`rejoinder encode --engine`: encodes files to a folder, on the cores or machines of an engine."""

from pathlib import Path

from rejoinder.cli.models import model_folder
from rejoinder.cli.output import note, print_encoded
from rejoinder.errors import InputError
from rejoinder.inference.engines import encoding_engine


def encode_on_engine(
    engine: str,
    sources: list[str],
    out: Path | None,
    *,
    model: tuple[str | None, str | None, str],
    as_json: bool,
    as_tsv: bool,
    master: str | None,
    threads: int | None,
    response: bool,
    batch_size: int,
    resume: bool,
    overwrite: bool,
) -> None:
    """Encodes files on an engine to a folder, and says what was written."""
    encoding_engine(engine)
    if out is None or not sources or "-" in sources:
        raise InputError(
            f"--engine {engine} encodes files to a folder: name the files, and the folder by "
            "--out, such as vectors.parquet."
        )
    if as_tsv:
        raise InputError("--out writes files and --tsv prints embeddings: leave one of them out.")
    from rejoinder.cli.progress import encoding_bar
    from rejoinder.inference.outputs import checked_way
    from rejoinder.inference.part_encoding import encode_files, finished_parts

    name, sha256, way = model
    folder = model_folder(name, sha256)
    try:
        with encoding_bar() as show:
            written = encode_files(
                folder,
                sources,
                out,
                engine=engine,
                master=master,
                threads=threads,
                response=response,
                batch_size=batch_size,
                on_too_long=checked_way(way),
                resume=resume,
                overwrite=overwrite,
                progress=show,
            )
    except (KeyboardInterrupt, SystemExit):
        finished, count = finished_parts(out)
        if finished:
            note(f"{finished} of {count} parts are kept; the same command with --resume continues")
        raise
    print_encoded(written, out, as_json=as_json)
