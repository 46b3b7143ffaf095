"""The figures that README and pages show, written once.

Sizes, dimensions and scores are read from the models and their cards, published ones from
`benchmarks/choose.toml`; speeds are ranges over machines. `make figures` writes them into the
pages (cog), and `make quick` checks that they are there.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "src/rejoinder/data/models"
MODELS = {
    "rejoinder-base": SHIPPED / "rejoinder-base",
    "rejoinder-small": SHIPPED / "rejoinder-small",
    "rejoinder-multi": ROOT / "models/rejoinder-multi/src/rejoinder_multi/rejoinder-multi",
    "rejoinder-research": ROOT
    / "models/rejoinder-research/src/rejoinder_research/rejoinder-research",
}
TERMS = {"cc-by-sa-4.0": "CC BY-SA 4.0", "other": "non-commercial research"}
PUBLISHED = {
    "static-similarity-mrl-multilingual-v1": (1024, "Apache-2.0"),
    "potion-base-32M": (512, "MIT"),
    "all-MiniLM-L6-v2": (384, "Apache-2.0"),
}
"""Models of others in the table, with their dimension and licence."""
SENTENCES = (160_000, 400_000)
"""Sentences a second of `rejoinder-base` on two cores: on the slowest machine and the fastest."""
MODEL2VEC, SENTENCE_TRANSFORMERS = (5, 8), (9, 14)
"""How many times as many that is as others encode with the same vectors."""
SCORES = {f"sts1{year}": ("pearson_all", "pearson_track5")[year == 7] for year in (2, 3, 4, 5, 7)}
SENTEVAL = ("mr", "cr", "subj", "sst2", "trec", "mrpc")


def megabytes(name: str) -> str:
    """Returns the size of a model's folder, such as `28`."""
    return f"{sum(file.stat().st_size for file in MODELS[name].iterdir()) / 1e6:.0f}"


def speed() -> str:
    """Returns what models in the package take, and how fast they are."""
    low, high = (f"{number:,}" for number in SENTENCES)
    return (
        f"The models in the package take {megabytes('rejoinder-small')} and "
        f"{megabytes('rejoinder-base')} MB. `rejoinder-base` encodes {low} to {high} sentences\n"
        f"a second on two cores, depending on the machine: {_times(MODEL2VEC)} as many as\n"
        f"model2vec and {_times(SENTENCE_TRANSFORMERS)} as many as sentence-transformers with the "
        "same vectors."
    )


def table(*, published: bool = False) -> str:
    """Returns a table of the models, in Markdown."""
    rows = [
        "| model | MB | dimension | terms | STS-B test, r | STS12-15 and 17, mean r | SentEval |",
        "|---|--:|--:|---|--:|--:|--:|",
        *(_row(name, judged=published) for name in MODELS),
        *(_published() if published else ()),
    ]
    return "\n".join(rows)


def score(name: str) -> str:
    """Returns Pearson's r of a model's cosines on STS-B test, such as `.805`."""
    return _decimals(_scores(name)["stsb", "pearson, cosine test"])


def _judged(name: str) -> str | None:
    """Returns r on STS-B test with its 95 % interval as the board has it, None if it has none."""
    path = ROOT / f"notebook/board/{name}.json"
    if not path.is_file():
        return None
    results = json.loads(path.read_text("utf-8"))["results"]
    [one] = [row for row in results if (row["task"], row["split"]) == ("stsb/cosine", "test")]
    value, *ends = map(_decimals, (one["scores"]["pearson"], *one["intervals"]["pearson"]))
    return f"{value} ({' to '.join(ends)})"


def _times(ends: tuple[int, int]) -> str:
    return f"{ends[0]} to {ends[1]} times"


def _decimals(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _front_matter(name: str) -> dict[str, Any]:
    text = (MODELS[name] / "MODEL_CARD.md").read_text("utf-8")
    facts: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return facts


def _scores(name: str) -> dict[tuple[str, str], float]:
    """Returns the scores of a model's card, by data set and name."""
    results = _front_matter(name)["model-index"][0]["results"]
    return {
        (result["dataset"]["name"], metric["name"]): metric["value"]
        for result in results
        for metric in result["metrics"]
    }


def _row(name: str, *, judged: bool) -> str:
    scores = _scores(name)
    config = json.loads((MODELS[name] / "config.json").read_text("utf-8"))
    graded = [scores[task, f"{metric}, cosine test"] for task, metric in SCORES.items()]
    tested = {task for task, _ in scores}
    classified = [
        value
        for (task, metric), value in scores.items()
        if task in SENTEVAL and metric.startswith("accuracy, senteval")
    ]
    senteval = f"{mean(classified):.1f}" if tested.issuperset(SENTEVAL) else ""
    terms = TERMS[_front_matter(name)["license"]]
    return (
        f"| `{name}` | {megabytes(name)} | {config['encoder']['width']} | {terms} | "
        f"{(judged and _judged(name)) or score(name)} | {_decimals(mean(graded))} | {senteval} |"
    )


def _published() -> Iterator[str]:
    models = tomllib.loads((ROOT / "benchmarks/choose.toml").read_text("utf-8"))["model"]
    for model in models:
        if model["name"] in PUBLISHED:
            dim, terms = PUBLISHED[model["name"]]
            judged, sts = _judged(model["name"]), _decimals(mean(model["sts"]))
            stsb, source = judged or _decimals(model["stsb"]), "published"
            if judged:
                source = "STS-B measured here, others published"
            yield (
                f"| {model['name']} ({model['kind']}; {source}) | {model['megabytes']} | "
                f"{dim:,} | {terms} | {stsb} | {sts} | |"
            )
