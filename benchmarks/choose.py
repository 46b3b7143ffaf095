"""A table and a plot of our models and published ones by size, quality and speed.

    rejoinder evaluate RUN/model --tasks sts --data ../shared/data --out ours.json
    python benchmarks/choose.py --run RUN/model ours.json --run baseline:bow bow.json \\
        --data ../shared/data

`--run` takes an encoder, as `rejoinder evaluate` does (`st:NAME` for a published one whose files
are on this machine), and its results. Speed is measured with `benchmarks/encode.py`, one process
each, on the sentences of the STS Benchmark; nothing else should run meanwhile. Published figures
(`choose.toml`) are marked as such. Prints Markdown and writes `choose.svg`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rejoinder.api.evaluation import load_encoder
from rejoinder.datasets.semeval import read_stsb
from rejoinder.errors import InputError, RejoinderError
from rejoinder.evaluation.encoding import identity
from rejoinder.evaluation.report import COLOURS, new_figure, svg_of
from rejoinder.evaluation.results import Result, read_results
from rejoinder.io.files.atomic import write_text
from rejoinder.models.find import shipped_models

HERE = Path(__file__).parent
LEAST = 0.65
"""STS-B test from which a model is in the plot."""
STS = {f"sts{year}/cosine": "pearson_all" for year in range(12, 16)} | {
    "sts17/cosine": "pearson_track5"
}
"""The tasks of the mean, and the score over all pairs of each."""


@dataclass(frozen=True)
class Row:
    """An encoder of the table. None where nothing is known."""

    name: str
    stsb: float | None
    sts: float | None
    """Mean over STS 2012 to 2015 and 2017."""
    megabytes: float | None
    speed: float | None
    """Sentences per second."""
    published: bool = False
    notes: tuple[str, ...] = ()


def main() -> None:
    arguments = _arguments()
    try:
        rows = [*_measured(arguments), *published(HERE / "choose.toml")]
        rows.sort(key=lambda row: -(row.stsb or 0))
        write_text(arguments.assets / "choose.svg", plot(rows))
    except RejoinderError as error:
        print(f"choose.py: {error}", file=sys.stderr)
        sys.exit(2)
    print(table(rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--run", nargs=2, action="append", default=[], metavar=("ENCODER", "RESULTS"),
        help="an encoder, and the file that `rejoinder evaluate --out` wrote",
    )  # fmt: skip
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets, for STS-B")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of speed")
    parser.add_argument("--assets", type=Path, default=Path("docs/assets"), help="folder to write")
    return parser.parse_args()


def _measured(arguments: argparse.Namespace) -> list[Row]:
    """Returns a row for each encoder that can be run here."""
    with tempfile.TemporaryDirectory() as folder:
        sentences = Path(folder) / "sentences.txt"
        sentences.write_text("\n".join(_sentences(arguments.data)), "utf-8")
        return [
            _row(encoder, Path(results), sentences, arguments.repeats)
            for encoder, results in arguments.run
        ]


def _sentences(data: Path) -> Iterable[str]:
    """Yields the sentences of the STS Benchmark, each as often as it is there."""
    for split in ("train", "dev", "test"):
        pairs = read_stsb(data, split)
        yield from (" ".join(text.split()) for text in (*pairs.first, *pairs.second))


def _row(encoder: str, path: Path, sentences: Path, repeats: int) -> Row:
    results = read_results(path)
    about = identity(load_encoder(encoder))
    if not results or any(results[0].encoder.get(key) != about.get(key)
                          for key in ("name", "sha256")):  # fmt: skip
        raise InputError(
            f"{path} has no results of {encoder}; evaluate it: rejoinder evaluate {encoder} "
            f"--tasks sts --out {path}."
        )
    scores = {result.task: result.scores for result in results if result.split == "test"}
    means = [scores[task][score] for task, score in STS.items() if task in scores]
    return Row(
        name=str(about["name"]),
        stsb=scores.get("stsb/cosine", {}).get("pearson"),
        sts=statistics.fmean(means) if len(means) == len(STS) else None,
        megabytes=_megabytes(encoder),
        speed=_speed(encoder, sentences, repeats),
        notes=_notes(results),
    )


def _notes(results: Sequence[Result]) -> tuple[str, ...]:
    """Returns which of the evaluation sets its training did not leave out."""
    training = results[0].encoder.get("training") or {}
    if not training:
        return ()
    left_out = set(training.get("leak_sets", ()))
    sets = ("stsb-test", "sts12", "sts13", "sts14", "sts15", "sts2017")
    kept = [name for name in sets if name not in left_out]
    return (f"training did not leave out sentences of {', '.join(kept)}",) if kept else ()


def _megabytes(encoder: str) -> float | None:
    """Returns the size of the files of a model folder or a shipped model, None for others."""
    folder = Path(encoder) if Path(encoder).is_dir() else shipped_models().get(encoder)
    if folder is None:
        return None
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def _speed(encoder: str, sentences: Path, repeats: int) -> float:
    """Returns the median of sentences per second, measured in a separate process."""
    done = subprocess.run(
        [sys.executable, HERE / "encode.py", "--model", encoder, "--sentences", sentences,
         "--repeats", str(repeats)],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return float(json.loads(done.stdout)["sentences_per_second"])


def published(place: Path) -> list[Row]:
    """Returns the rows of published figures."""
    tree: dict[str, Any] = tomllib.loads(place.read_text("utf-8"))
    rows = []
    for model in tree["model"]:
        sources = {
            "STS-B": model.get("stsb_from"),
            "MB": model.get("megabytes_from"),
            "sentences/s": model.get("speed_from"),
        }
        rows.append(
            Row(
                name=f"{model['name']} ({model['kind']})",
                stsb=model["stsb"],
                sts=statistics.fmean(model["sts"]) if "sts" in model else None,
                megabytes=model.get("megabytes"),
                speed=model.get("speed"),
                published=True,
                notes=tuple(f"{what}: {source}" for what, source in sources.items() if source),
            )
        )
    return rows


def table(rows: Sequence[Row]) -> str:
    """Returns the table in Markdown, with a footnote for each row that needs one."""
    lines = ["| | MB | STS-B test | mean of STS12-15, 17 | sentences/s, two cores |",
             "|---|--:|--:|--:|--:|"]  # fmt: skip
    notes = [
        "Pearson's r of the cosine, all pairs of a set together. Without a mark: measured here, on "
        f"{len(os.sched_getaffinity(0))} cores, speed on the sentences of the STS Benchmark. *: "
        "published; scores of embeddings-benchmark/results (commit f4cc6c8b365a) where no note "
        "says otherwise, speed of another machine and other texts."
    ]
    footnotes: dict[str, int] = {}
    for row in rows:
        said = "; ".join(row.notes)
        mark = f"<sup>{footnotes.setdefault(said, len(footnotes) + 1)}</sup>" if said else ""
        star = "*" if row.published else ""
        cells = [
            row.name + star + mark,
            "–"
            if row.megabytes is None
            else f"{row.megabytes:,.{1 if row.megabytes < 10 else 0}f}",
            "–" if row.stsb is None else f"{row.stsb:.3f}".removeprefix("0"),
            "–" if row.sts is None else f"{row.sts:.3f}".removeprefix("0"),
            "–" if row.speed is None else f"{row.speed:,.0f}{star}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    notes += [f"{number}: {said}." for said, number in footnotes.items()]
    return "\n".join(lines) + "\n\n" + "  \n".join(notes)


def plot(rows: Sequence[Row]) -> str:
    """Returns an SVG of STS-B test against speed; models of unknown speed are dashed lines.

    Models below `LEAST` are in the table only, so that the others can be told apart.
    """
    figure, axes = new_figure(7, 4.2)
    for row in rows:
        if row.stsb is None or row.stsb < LEAST:
            continue
        if row.speed is None:
            axes.axhline(row.stsb, color="#999999", lw=0.7, ls="--")
            axes.annotate(row.name, (0.005, row.stsb), xycoords=("axes fraction", "data"),
                          va="bottom", fontsize=6.5, color="#666666")  # fmt: skip
            continue
        here = not row.published
        colour = COLOURS[0 if here else 5]
        axes.plot(row.speed, row.stsb, "o" if here else "D", ms=7, color=colour,
                  mfc=colour if here else "white")  # fmt: skip
        fast = row.speed > 10_000  # near the right edge
        axes.annotate(row.name, (row.speed, row.stsb), xytext=(-3 if fast else 3, 5),
                      ha="right" if fast else "left", va="bottom",
                      textcoords="offset points", fontsize=7.5)  # fmt: skip
    axes.plot([], [], "o", color=COLOURS[0], label="measured here, two cores")
    axes.plot([], [], "D", color=COLOURS[5], mfc="white",
              label="published: another machine, other texts")  # fmt: skip
    axes.plot([], [], "--", color="#999999", lw=0.7, label="published, speed unknown")
    axes.set_xscale("log")
    axes.margins(0.2)
    axes.set_xlabel("sentences per second")
    axes.set_ylabel("STS-B test, Pearson's r, cosine")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=7.5)
    return svg_of(figure)


if __name__ == "__main__":
    main()
