"""The learning curve: scores on dev against pairs seen and corpus size, extrapolated.

    python tools/learning_curve.py --pairs pairs/ --data ../shared/data --out runs/curve

Trains a config on shares of the threads of the pairs, with several seeds. The schedule of a share
is as much shorter as its corpus is smaller, so that every run ends with a low learning rate and has
seen each of its pairs equally often. The scores at the end of the runs give a power law with an
offset by corpus size (`power_law`). Writes `learning-curve.json` and
`learning-curve.svg`.

What is finished or begun in `--out` is gone on with: the same command continues a stopped one.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from power_law import Extrapolation, extrapolate
from rejoinder.api.training import train_seeds
from rejoinder.corpus.manifest import FILE
from rejoinder.corpus.writer import open_pairs, read_manifest
from rejoinder.errors import InputError, RejoinderError
from rejoinder.evaluation.report import COLOURS, new_figure, svg_of
from rejoinder.io.files.atomic import write_text
from rejoinder.training.config.loading import load_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.workers import describe_machine
from rejoinder.version import VERSION
from sample_threads import sample_threads

SCORES = {"STS-B Pearson": "STS-B dev, Pearson's r, angular", "P@1": "P@1 of 100, dev"}
ASSUMED = (
    "The law is assumed to hold beyond the largest corpus measured: for more text of the same "
    "kinds, seen as often, by the same model. The interval holds the spread between seeds and the "
    "misfit of the law at the sizes measured, not how wrong its form is beyond them."
)


@dataclass(frozen=True)
class Run:
    """A run on a share of the threads: the scores of its evaluations."""

    share: float
    seed: int
    pairs: int
    """Pairs of its corpus that were trained on, without leaks."""
    evaluations: tuple[Mapping[str, float], ...]
    """By step: `step`, `pairs_seen` (repeated ones count again), and the scores."""


def main() -> None:
    arguments = _arguments()
    try:
        _main(arguments)
    except RejoinderError as error:
        print(f"learning_curve.py: {error}", file=sys.stderr)
        sys.exit(2)


def _main(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, arguments.set)
    if config.objectives != {"responses"}:
        raise InputError(
            f"{config.name} has tasks besides responses; a curve over pairs needs a config that is "
            "trained on pairs alone, such as dan-modern."
        )
    sizes = sorted(set(arguments.shares))
    if len(sizes) < 3 or not 0 < sizes[0] <= sizes[-1] <= 1:
        raise InputError("--shares needs three different shares at least, above 0 and up to 1.")
    runs = [run for share in sizes for run in _train(config, share, arguments)]
    fits = {
        score: _extrapolated(runs, score, arguments.to)
        for score in SCORES
        if all(score in run.evaluations[-1] for run in runs)
    }
    if not fits:
        raise InputError(f"{arguments.pairs} has too few pairs on dev to rank; nothing was scored.")
    report = _report(config, runs, fits, arguments)
    assets: Path = arguments.assets
    write_text(assets / "learning-curve.json", json.dumps(report, indent=1, allow_nan=False) + "\n")
    write_text(assets / "learning-curve.svg", plot(config.name, runs, fits, arguments.to))
    _print(runs, fits, arguments.to)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs")
    parser.add_argument("--out", type=Path, required=True, help="folder of samples and runs")
    parser.add_argument("--data", type=Path, help="folder of data sets, for STS-B dev")
    parser.add_argument("--config", default="dan-modern", help="name or TOML file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--evaluations", type=int, default=8, help="during a run")
    parser.add_argument("--to", type=float, default=600e6, help="pairs to extrapolate to")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument(
        "--assets", type=Path, default=Path("notebook/assets"), help="folder to write"
    )
    return parser.parse_args()


def _train(config: RunConfig, share: float, arguments: argparse.Namespace) -> list[Run]:
    """Trains what is not yet trained of the runs on a share."""
    pairs = _sampled(arguments.pairs, share, arguments.out / f"pairs-{share:g}")
    part = open_pairs(pairs).count("train") / open_pairs(arguments.pairs).count("train")
    scaled = load_config(config, _overrides(config, part, arguments.evaluations))
    print(f"share {share:g}: {scaled.steps:,} steps, seeds {arguments.seeds}", file=sys.stderr)
    folder = arguments.out / f"share-{share:g}"
    done = train_seeds(
        scaled, arguments.seeds, out=folder, pairs=pairs, data=arguments.data,
        threads=arguments.threads, resume=True,
    )  # fmt: skip
    runs = []
    for seed, result in done.items():
        if result.interrupted is not None:
            sys.exit("stopped; the same command goes on")
        evaluations = _evaluations(result.folder / "metrics.jsonl", scaled)
        runs.append(Run(share, seed, result.pairs, evaluations))
    return runs


def _sampled(place: Path, share: float, sample: Path) -> Path:
    """Returns the folder of a share of the threads, made if it is not there yet."""
    if share == 1:
        return place
    pairs = open_pairs(place)
    if (sample / FILE).exists():
        if read_manifest(sample).options.get("sampled_from") != pairs.sha256:
            raise InputError(
                f"{sample} was sampled from other pairs; name another folder to --out."
            )
    else:
        sample_threads(pairs, share, sample)
    return sample


def _overrides(config: RunConfig, part: float, evaluations: int) -> list[str]:
    """Returns settings that shorten the schedule to a part of its steps."""
    found = []
    for number, phase in enumerate(config.phases):
        steps = max(1, round(part * phase.steps))
        warmup = min(steps, round(part * phase.warmup_steps))
        found += [f"phases.{number}.steps={steps}", f"phases.{number}.warmup_steps={warmup}"]
    every = max(1, round(part * config.steps / evaluations))
    return [*found, f"training.evaluate_every={every}"]


def _evaluations(metrics: Path, config: RunConfig) -> tuple[Mapping[str, float], ...]:
    rows = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()]
    return tuple(
        {
            "step": row["step"],
            "pairs_seen": _pairs_seen(config, row["step"]),
            **{name: row[name] for name in SCORES if name in row},
        }
        for row in rows
        if row["group"] == "dev"
    )


def _pairs_seen(config: RunConfig, steps: int) -> int:
    seen = 0
    for phase in config.phases:
        seen += min(steps, phase.steps) * phase.batch_size
        steps -= min(steps, phase.steps)
    return seen


def _extrapolated(runs: Sequence[Run], score: str, to: float) -> Extrapolation:
    """Extrapolates the last scores of the runs to sizes from the smallest corpus to `to`."""
    return extrapolate(
        np.array([_size(runs, run.share) for run in runs]),
        np.array([run.evaluations[-1][score] for run in runs]),
        np.geomspace(_size(runs, runs[0].share), to, 60),
    )


def _size(runs: Sequence[Run], share: float) -> float:
    return float(next(run.pairs for run in runs if run.share == share))


def _report(
    config: RunConfig,
    runs: Sequence[Run],
    fits: Mapping[str, Extrapolation],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    return {
        "format_version": 1,
        "rejoinder_version": VERSION,
        "config": config.name,
        "set": arguments.set,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": describe_machine(),
        "pairs_sha256": open_pairs(arguments.pairs).sha256,
        "assumed": ASSUMED,
        "laws": {
            score: {
                "limit": fit.law.limit,
                "factor": fit.law.gain * fit.law.base**fit.law.exponent,
                "exponent": fit.law.exponent,
                "pairs": arguments.to,
                "score": float(fit.scores[-1]),
                "interval_90": [float(fit.low[-1]), float(fit.high[-1])],
            }
            for score, fit in fits.items()
        },
        "runs": [vars(run) for run in runs],
    }


def plot(name: str, runs: Sequence[Run], fits: Mapping[str, Extrapolation], to: float) -> str:
    """Returns an SVG, a row per score: along the runs, and the law by corpus size."""
    figure, axes = new_figure(9, 3.4 * len(fits), len(fits), 2)
    shares = sorted({run.share for run in runs})
    for (along, law), (score, fit) in zip(np.atleast_2d(axes), fits.items(), strict=True):
        for share, colour, marker in zip(shares, COLOURS * 9, "os^vD<>" * 9, strict=False):
            label = f"{_size(runs, share):,.0f} pairs ({100 * share:g} %)"
            for number, run in enumerate(run for run in runs if run.share == share):
                seen = [row["pairs_seen"] for row in run.evaluations]
                values = [row[score] for row in run.evaluations]
                along.plot(seen, values, marker=marker, ms=3, lw=0.9, color=colour,
                           label=label if number == 0 else None)  # fmt: skip
                law.plot(run.pairs, values[-1], marker, ms=5, color=colour)
        sizes = np.geomspace(_size(runs, shares[0]), to, len(fit.scores))
        law.plot(sizes, fit.scores, color="#333333", lw=1)
        law.fill_between(sizes, fit.low, fit.high, color="#333333", alpha=0.15, lw=0)
        law.annotate(
            f"{fit.scores[-1]:.3f}\n({fit.low[-1]:.3f} to {fit.high[-1]:.3f})",
            (sizes[-1], fit.low[-1]), xytext=(0, -6), textcoords="offset points",
            ha="right", va="top", fontsize=8,
        )  # fmt: skip
        along.set_ylabel(SCORES[score])
        along.set_xlabel("pairs seen in training")
        law.set_xlabel("pairs of the corpus")
        for each in (along, law):
            each.set_xscale("log")
            each.grid(alpha=0.3)
    handles, labels = along.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(f"{name}: a dot is a run; line: fitted power law with its 90 % interval",
                    fontsize=9)  # fmt: skip
    return svg_of(figure)


def _print(runs: Sequence[Run], fits: Mapping[str, Extrapolation], to: float) -> None:
    names = list(fits)
    print(f"| pairs | seen | {' | '.join(SCORES[name] for name in names)} |\n"
          f"|--:|--:|{'--:|' * len(names)}")  # fmt: skip
    for share in sorted({run.share for run in runs}):
        last = [run.evaluations[-1] for run in runs if run.share == share]
        cells = [
            f"{np.median([row[name] for row in last]):.4f} "
            f"({min(row[name] for row in last):.4f} to {max(row[name] for row in last):.4f})"
            for name in names
        ]
        print(f"| {_size(runs, share):,.0f} | {last[0]['pairs_seen']:,} | {' | '.join(cells)} |")
    cells = [
        f"{fit.scores[-1]:.3f} ({fit.low[-1]:.3f} to {fit.high[-1]:.3f})" for fit in fits.values()
    ]
    print(f"| {to:,.0f}, extrapolated | – | {' | '.join(cells)} |\n\n{ASSUMED}")


if __name__ == "__main__":
    main()
