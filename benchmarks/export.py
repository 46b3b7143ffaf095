"""Sizes of a model from full size down to a few megabytes, and what each loses on dev.

    python benchmarks/export.py RUN/model --data ../shared/data --pairs pairs/

Exports the model with one set of options after the other into a temporary folder, and prints a
Markdown table: options, megabytes, STS-B dev Pearson (angular) and P@1 of 100 on the dev split of
the pairs. Options that do not fit the model, such as more words than it has, are left out.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rejoinder import InputError, export
from rejoinder.api.export import ModelSize, scores_of, size_of
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.models.smaller import nested_dims
from rejoinder.text.features import WordFeatures

WORDS = (50_000, 40_000, 20_000, 10_000)
BUCKETS = 4_096


def main() -> None:
    arguments = _arguments()
    model, scores = read_model(arguments.model), scores_of(arguments.data, arguments.pairs)
    before = size_of(arguments.model, model, scores)
    names = list(before.scores)
    titles = ["model", "MB", "rows", *names]
    print(f"| {' | '.join(titles)} |\n|---|{'--:|' * (len(titles) - 1)}")
    _print(f"as trained, {before.dtype}", before, names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for options in _all_options(model, arguments.dims):
            try:
                export(
                    arguments.model,
                    path,
                    **options,
                    any_dim=arguments.any_dim and "dim" in options,
                    overwrite=True,
                )
            except InputError as error:
                print(f"left out, {_said(options)}: {error}", file=sys.stderr)
                continue
            _print(_said(options), size_of(path, read_model(path), scores), names)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("--data", type=Path, help="folder of data sets, for STS-B dev")
    parser.add_argument("--pairs", type=Path, help="folder of pairs, for P@1 on dev")
    parser.add_argument(
        "--dims", type=int, nargs="*", help="dimensions; default: those that it was trained for"
    )
    parser.add_argument("--any-dim", action="store_true", help="allow --dims of any number")
    return parser.parse_args()


def _all_options(model: ModelContents, dims: list[int] | None) -> Iterator[dict[str, Any]]:
    """Options of `rejoinder.export`: types, and for each dimension fewer and fewer rows."""
    yield {"dtype": "float16"}
    fewer: list[dict[str, Any]] = [{}]
    if isinstance(model.features, WordFeatures):
        if model.features.unknown_buckets > BUCKETS:
            fewer.append({"unknown_buckets": BUCKETS})
        known = len(model.features.vocabulary)
        fewer += [{**fewer[-1], "max_words": count} for count in WORDS if count < known]
    sizes = sorted(nested_dims(model) if dims is None else dims, reverse=True)
    cuts: list[dict[str, Any]] = [{}, *({"dim": size} for size in sizes if size < model.dim)]
    for dim in cuts:
        yield from ({"dtype": "int8", **dim, **rows} for rows in fewer)


def _said(options: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def _print(said: str, size: ModelSize, names: list[str]) -> None:
    scores = [f"{size.scores[name]:.4f}" if name in size.scores else "–" for name in names]
    print(f"| {' | '.join([said, f'{size.bytes / 1e6:.1f}', f'{size.rows:,}', *scores])} |",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
