"""Fine-tuning on pairs: the base, the base fine-tuned, the same pairs from nothing, and model2vec.

    python benchmarks/finetune.py pairs/college pairs/task --model base/ --pairs 1000 10000 0

The folders of pairs have dev and test threads (`rejoinder extract --split 80,10,10`), which all
rows of a folder share. Whole threads are left out of the train split until about `--pairs` are
left; 0 means all. Training from nothing takes `dan-modern` with ten passes in batches of 1,024.
model2vec's trainer of pairs begins with the base, exported, which has no response head then. Prints
a line of JSON for each model.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rejoinder import SentenceEncoder, finetune, train
from rejoinder.api.pairs import HeldOut
from rejoinder.corpus.writer import Pairs, open_pairs
from rejoinder.interfaces.targets import export_to

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from sample_threads import sample_threads

_BATCH, _PASSES, _LEAST_STEPS = 1_024, 10, 100
Scores = Mapping[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--pairs", nargs="+", type=int, default=[1_000, 10_000, 0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--ways", nargs="+", default=["finetune", "nothing", "model2vec"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data", type=Path, help="folder of data sets, for STS-B dev")
    chosen = parser.parse_args()
    for folder in chosen.folders:
        whole = open_pairs(folder)
        shown(folder, whole, "base", None, 0.0, scores(whole, chosen.model, chosen.data))
        for count in chosen.pairs:
            if 0 < count >= whole.count("train"):
                continue
            with tempfile.TemporaryDirectory() as temporary:
                pairs = sampled(whole, count, Path(temporary) / "pairs")
                for way in chosen.ways:
                    for seed in chosen.seeds:
                        began = time.perf_counter()
                        model = trained(way, pairs, chosen, seed, Path(temporary) / way)
                        seconds = time.perf_counter() - began
                        found = scores(pairs, model, chosen.data)
                        shown(folder, pairs, way, seed, seconds, found)


def sampled(pairs: Pairs, count: int, out: Path) -> Pairs:
    """Returns pairs of which about `count` are for training; 0 means all."""
    if not count:
        return pairs
    sample_threads(pairs, count / pairs.count("train"), out)
    return open_pairs(out)


def trained(way: str, pairs: Pairs, chosen: Any, seed: int, out: Path) -> Any:
    """Returns the encoder that one way of training gives."""
    base, options = chosen.model, {"threads": chosen.threads, "out": out, "overwrite": True}
    if way == "finetune":
        finetune(pairs.folder, model=base, seed=seed, force=True, **options)
        return out
    if way == "nothing":
        count = pairs.count("train")
        batch = min(_BATCH, count // 4)
        steps = max(_LEAST_STEPS, _PASSES * count // batch)
        settings = {"phases.0.steps": steps, "phases.1.steps": steps // 10}
        settings |= {"phases.0.batch_size": batch, "phases.1.batch_size": batch}
        settings |= {"training.seed": seed, "text.min_count": 2}
        overrides = [f"{key}={value}" for key, value in settings.items()]
        run = train("dan-modern", pairs=pairs.folder, overrides=overrides, **options)
        return run.load_encoder()
    return with_model2vec(pairs, base, seed, out)


def with_model2vec(pairs: Pairs, base: str, seed: int, out: Path) -> Any:
    """Returns model2vec's model, trained on the pairs, with its own choice of steps."""
    from model2vec import StaticModel
    from model2vec.train import StaticModelForPairSimilarity

    # a word beyond the vocabulary is left out, as the format has no rows for such words
    export_to(base, out, "model2vec", letter_buckets=0, spelling=False, overwrite=True)
    start = StaticModel.from_pretrained(str(out), dimensionality=None)
    model = StaticModelForPairSimilarity.from_static_model(model=start, n_layers=0)
    train_split, dev = (pairs.frame(split, ["input", "response"]) for split in ("train", "dev"))
    model.fit(
        train_split["input"].to_list(),
        train_split["response"].to_list(),
        text_a_val=dev["input"].to_list(),
        text_b_val=dev["response"].to_list(),
        random_seed=seed,
        device="cpu",
    )
    return model.to_static_model()


def scores(pairs: Pairs, model: Any, data: Path | None) -> Scores:
    """Returns the scores on the test threads."""
    encoder = SentenceEncoder.load(model) if isinstance(model, str | Path) else model
    return HeldOut(pairs, data, None, None).test(encoder)


def shown(
    folder: Path, pairs: Pairs, way: str, seed: int | None, seconds: float, found: Scores
) -> None:
    rows: Iterator[tuple[str, Any]] = ((name, round(score, 4)) for name, score in found.items())
    counts = {"pairs": pairs.count("train"), "n": pairs.count("test")}
    line = {"folder": folder.name, "way": way, "seed": seed, **counts, "seconds": round(seconds, 1)}
    print(json.dumps(line | dict(rows)), flush=True)


if __name__ == "__main__":
    main()
