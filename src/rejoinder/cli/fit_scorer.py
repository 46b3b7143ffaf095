"""`rejoinder fit-scorer`: fits a scorer of pairs of texts on pairs that people scored."""

import time
from typing import Annotated

from rejoinder.cli import options
from rejoinder.cli.output import asked_for, duration, print_json, print_rows, status_line

EXAMPLES = options.epilog(
    "rejoinder fit-scorer --data data --out scorer/",
    "rejoinder fit-scorer --sets graded.jsonl --model model/ --out scorer/",
    "rejoinder similarity --scorer-from scorer/ 'How old are you?' 'Your age?'",
    "rejoinder evaluate scorer:scorer/ --tasks stsb --data data",
)


@options.prints("json", "tsv")
def fit_scorer(
    out: options.OutOption,
    data: options.DataOption = None,
    sets: Annotated[
        str,
        "Pairs to fit on: stsb (its train split, counted eight times), sts (STS 2012 to 2015), "
        "contrasts (sentences with another number, name, word, negation or order), "
        "files of JSON lines with "
        "sentence1, sentence2 and score (0 to 5), or the same separated by tabs.",
    ] = "stsb,sts",
    families: Annotated[
        str | None, "Families of features, separated by commas. Default: all."
    ] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Fit a scorer of pairs of texts: embeddings, words, order, numbers, names, negation."""
    from rejoinder.api.scorer import fit_scorer as fit
    from rejoinder.cli.models import open_encoder
    from rejoinder.cli.progress import Bar

    start = time.perf_counter()
    with Bar("fits") as bar:
        fitted = fit(
            out,
            data=data,
            sets=[name for name in sets.split(",") if name],
            encoder=open_encoder(model, model_sha256, "truncate"),
            families=families and [name for name in families.split(",") if name],
            seed=seed,
            threads=threads,
            overwrite=overwrite,
            progress=bar.show,
        )
    seconds, facts = time.perf_counter() - start, fitted.facts
    if asked_for("json"):
        told = {"pairs": facts.pairs, "leaks_dropped": facts.leaks_dropped, "dev": facts.dev}
        print_json({"out": str(out), "seconds": round(seconds, 1), **told})
        return
    rows = [(name, count) for name, count in facts.pairs.items()]
    rows.append(("left out: repeated, or of an evaluation set", facts.leaks_dropped))
    print_rows(("pairs", "number"), rows)
    if facts.dev:
        print_rows(("STS-B dev", "correlation"), list(facts.dev.items()))
    status_line(f"wrote {out} ({duration(seconds)})")
