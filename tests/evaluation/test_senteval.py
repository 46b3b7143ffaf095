"""The drop-in: scripts of the shape of SentEval's examples/bow.py, and made-up official files."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import rejoinder.evaluation.senteval as senteval
import senteval_reference as reference
from rejoinder.datasets.semeval import YEARS, subset_files
from rejoinder.errors import InputError
from rejoinder.evaluation.senteval.utils import completed, settings_of
from rejoinder.evaluation.tasks import trained

pytestmark = pytest.mark.usefixtures("one_thread")

RULES = {"good": 1, "fine": 1, "nice": 1, "bad": 0, "poor": 0, "dull": 0}


def sentences(count, seed):
    generator = np.random.default_rng(seed)
    words = list(RULES)
    rows = []
    for _ in range(count):
        word = words[generator.integers(len(words))]
        rest = [f"w{n}" for n in generator.integers(0, 30, 4)]
        rows.append((" ".join([*rest, word]), RULES[word]))
    return rows


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))


@pytest.fixture(scope="module")
def task_path(tmp_path_factory):
    """A data folder of SentEval's, every task in its official layout, a few made-up rows each."""
    root = tmp_path_factory.mktemp("data")
    down = root / "downstream"
    for folder, files in {"MR": "rt-polarity", "CR": "custrev", "MPQA": "mpqa"}.items():
        rows = sentences(120, 1)
        write(down / folder / f"{files}.pos", [text for text, label in rows if label])
        write(down / folder / f"{files}.neg", [text for text, label in rows if not label])
    for split, count in (("train", 90), ("dev", 30), ("test", 40)):
        rows = sentences(count, count)
        write(down / f"SST/binary/sentiment-{split}", [f"{t}\t{label}" for t, label in rows])
        fine = [f"{4 * label} {t}" for t, label in rows] + [f"{n} w1 w2" for n in (1, 2, 3)]
        write(down / f"SST/fine/sentiment-{split}", fine)
        names = ["entailment" if label else "contradiction" for _, label in rows]
        write(down / f"SNLI/s1.{split}", [t for t, _ in rows])
        write(down / f"SNLI/s2.{split}", [t.split()[-1] for t, _ in rows])
        write(down / f"SNLI/labels.{split}", [*names[:-1], "neutral"])
        sick = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        sick += [
            f"{row}\t{t}\t{t.split()[-1]} w1\t{1 + 4 * label}\t{name.upper()}"
            for row, ((t, label), name) in enumerate(zip(rows, names, strict=True))
        ]
        file = {"train": "SICK_train", "dev": "SICK_trial", "test": "SICK_test_annotated"}[split]
        write(down / f"SICK/{file}.txt", sick)
        # "sisterðcity": Latin-1, as the real file has it
    trec = [f"{'HUM' if label else 'LOC'}:x {t}" for t, label in sentences(90, 3)]
    for name, rows in (("train_5500", trec), ("TREC_10", trec[:20])):
        write(down / f"TREC/{name}.label", rows)
        path = down / f"TREC/{name}.label"
        path.write_bytes(path.read_bytes() + b"LOC:city Which sister\xf0city is it ?\n")
    mrpc = ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    mrpc += [
        f'{label}\t{row}\t{row + 1}\t"{t}\t{t if label else "w1 w2"}'
        for row, (t, label) in enumerate(sentences(60, 4))
    ]
    for split in ("train", "test"):
        write(down / f"MRPC/msr_paraphrase_{split}.txt", mrpc)
    for year in YEARS:
        for subset in subset_files(f"sts{year}"):
            rows = sentences(12, year)
            # the authors' own names of 2016, SentEval's of the other years
            name = "STS2016.{}.{}.txt" if year == 16 else "STS.{}.{}.txt"
            folder = down / f"STS/STS{year}-en-test"
            pairs = [f"{t}\t{t.rsplit(' ', label + 1)[0]} x{label}" for t, label in rows]
            gold = ["" if row == 2 else f"{2 + label}.{row % 10}" for row, (_, label) in
                    enumerate(rows)]  # fmt: skip
            write(folder / name.format("input", subset), pairs)
            write(folder / name.format("gs", subset), gold)
    for file in ("sentence_length", "word_content", "tree_depth", "top_constituents",
                 "bigram_shift", "past_present", "subj_number", "obj_number", "odd_man_out",
                 "coordination_inversion"):  # fmt: skip
        rows = [f"{split}\t{'O' if label else 'I'}\t{t}" for split in ("tr", "va", "te")
                for t, label in sentences(50, 7)]  # fmt: skip
        write(root / f"probing/{file}.txt", rows)
    pictures = np.random.default_rng(0)
    for split, count in (("train", 30), ("valid", 20), ("test", 20)):
        kinds = pictures.integers(0, 6, count)
        features = np.eye(6, 8, dtype=np.float32)[kinds] + 0.1 * pictures.random((count, 8))
        write(down / f"COCO/{split}.json", [])
        groups = [[f"{list(RULES)[kind]} w{n}" for n in range(5)] for kind in kinds]
        (down / f"COCO/{split}.json").write_text(json.dumps({"captions": groups}))
        save_file({"features": features.astype("f4")}, down / f"COCO/{split}.safetensors")
    return root


def prepare(params, samples):
    params.word_vec = {}
    for sentence in samples:
        for word in sentence:
            params.word_vec.setdefault(word, None)
    params.wvec_dim = reference.DIM


def batcher(params, batch):
    batch = [sentence if sentence != [] else ["."] for sentence in batch]
    assert len(batch) <= params.batch_size
    assert all(word in params.word_vec for sentence in batch for word in sentence)
    embeddings = [reference.HashedWords().encode([" ".join(sentence)])[0] for sentence in batch]
    return np.vstack(embeddings)


def engine_of(task_path, **more):
    params = {"task_path": str(task_path), "usepytorch": False, "kfold": 3, "my_own": 5, **more}
    return senteval.engine.SE(params, batcher, prepare)


ACCURACY = {"devacc", "acc", "ndev", "ntest"}
REGRESSION = {"devpearson", "pearson", "spearman", "mse", "yhat", "ndev", "ntest"}
NOT_HERE = ("SUBJ", "STSBenchmark")


@pytest.mark.slow
def test_every_task_gives_the_originals_keys(task_path):
    se = engine_of(task_path)
    assert se.params.my_own == 5
    names = [name for name in se.list_tasks if name not in NOT_HERE]
    results = se.eval(names)
    assert list(results) == names
    for name, found in results.items():
        if name.startswith("STS"):
            assert found["all"]["pearson"].keys() == {"all", "mean", "wmean"}, name
            subset = next(iter(subset_files(name.lower())))
            assert found[subset]["nsamples"] == 11
            assert len(found[subset]["pearson"]) == 2
        elif name == "ImageCaptionRetrieval":
            (one, five, ten, median), to_images = found["acc"]
            assert found.keys() == ACCURACY
            assert 0 <= one <= five <= ten <= 100
            assert ten > 50
            assert 1 <= median <= 20
            assert len(to_images) == 4
        elif name == "SICKRelatedness":
            assert found.keys() == REGRESSION
            assert len(found["yhat"]) == found["ntest"] == 40
        else:
            assert found.keys() == (ACCURACY | {"f1"} if name == "MRPC" else ACCURACY), name
    assert results["MR"]["ndev"] == results["MR"]["ntest"] == 120
    assert results["MR"]["acc"] > 90
    assert results["SST5"]["ntest"] == 43
    assert results["TREC"]["ndev"] == 91


def test_the_classifier_of_a_script_is_taken(task_path):
    pytest.importorskip("torch")
    classifier = {"nhid": 10, "optim": "rmsprop", "batch_size": 32, "tenacity": 2, "epoch_size": 2}
    se = engine_of(task_path, usepytorch=True, classifier=classifier)
    assert se.eval("SST2")["acc"] > 60


def test_the_task_is_named_to_prepare_and_batcher(task_path):
    seen = []

    def prepare_(params, samples):
        seen.append(("prepare", params.current_task))
        prepare(params, samples)

    def batcher_(params, batch):
        seen.append(("batch", params.current_task))
        return batcher(params, batch)

    params = {"task_path": str(task_path), "usepytorch": False, "kfold": 2}
    senteval.engine.SE(params, batcher_, prepare_).eval(["STS13", "CR"])
    assert list(dict.fromkeys(seen)) == [
        ("prepare", "STS13"),
        ("batch", "STS13"),
        ("prepare", "CR"),
        ("batch", "CR"),
    ]


def minus_l1(a, b):
    return -np.abs(a - b).sum()


def test_the_similarity_of_a_script_is_taken(task_path):
    calls = []

    def similarity(a, b):
        calls.append((a, b))
        return minus_l1(a, b)

    se = engine_of(task_path, similarity=similarity)
    found = se.eval("STS13")["all"]["pearson"]
    folder = task_path / "downstream/STS/STS13-en-test"
    encoder = reference.HashedWords()
    subsets = subset_files("sts13")
    expected = reference.sts_scores(folder, subsets, encoder, minus_l1)
    assert (found["mean"], found["wmean"], found["all"]) == pytest.approx(expected, abs=1e-6)
    assert expected != pytest.approx(reference.sts_scores(folder, subsets, encoder), abs=1e-3)
    assert len(calls) == 33
    assert {vector.shape for pair in calls for vector in pair} == {(reference.DIM,)}
    # the other tasks do without
    assert se.eval("MR")["acc"] > 90
    assert len(calls) == 33


@pytest.mark.parametrize("wrong", [float("nan"), np.ones(2)])
def test_a_similarity_that_is_no_number_is_an_error(task_path, wrong):
    se = engine_of(task_path, similarity=lambda _a, _b: wrong)
    with pytest.raises(InputError, match=r"params\['similarity'\]"):
        se.eval("STS13")


@pytest.mark.slow
def test_dev_is_told_by_pearson(task_path):
    pytest.importorskip("torch")
    se = engine_of(task_path, mode="compat")
    found = se.eval("SICKRelatedness")
    encoder = reference.HashedWords()
    parts = []
    for split in ("train", "trial", "test_annotated"):
        lines = (task_path / f"downstream/SICK/SICK_{split}.txt").read_text().splitlines()[1:]
        rows = [line.split("\t") for line in lines]
        rows.sort(key=lambda row: (len(row[1].split()), len(row[2].split()), float(row[3])))
        a, b = (encoder.encode([row[column] for row in rows]) for column in (1, 2))
        parts.append((np.hstack([np.abs(a - b), a * b]), [float(row[3]) for row in rows]))
    r, predictions = reference.network_regression(*parts[:2], parts[2][0], 1111)
    assert found["devpearson"] == pytest.approx(r, abs=1e-4)
    assert sorted(found["yhat"]) == pytest.approx(sorted(predictions), abs=1e-3)
    assert found["pearson"] == pytest.approx(reference.pearson(predictions, parts[2][1]), abs=1e-4)


def test_a_parameter_acts_or_is_refused(task_path):
    wrong = {
        "seed": "a",
        "kfold": 2.5,
        "batch_size": 0,
        "usepytorch": "yes",
        "similarity": None,
        "nhid": 50,
        "mode": "slow",
        "tenacity": 3,
        "epoch_size": 2,
        "max_epoch": 9,
        "optim": "adam",
        "dropout": 0.1,
        "cudaEfficient": True,
        "noreg": True,
    }
    for key, value in wrong.items():
        with pytest.raises(InputError, match=key):
            engine_of(task_path, **{key: value})
    with pytest.raises(InputError, match="'task_path'"):
        senteval.engine.SE({}, batcher)
    assert engine_of(task_path, nhid=5, classifier={"nhid": 5}).params.nhid == 5


@pytest.mark.parametrize("more", [{}, {"mode": "compat"}])
def test_the_training_of_a_network_that_is_not_there_is_told(task_path, more):
    prototype = {"nhid": 0, "optim": "rmsprop", "batch_size": 128, "tenacity": 3, "epoch_size": 2}
    with pytest.warns(UserWarning, match="optim, batch_size, tenacity, epoch_size"):
        engine_of(task_path, classifier=prototype, **more)


@pytest.mark.parametrize(
    ("key", "value"),
    [("optim", "sgd,lr=0.5"), ("batch_size", 8), ("tenacity", 0), ("epoch_size", 1),
     ("max_epoch", 1), ("dropout", 0.5), ("nhid", 3)],
)  # fmt: skip
def test_every_key_of_the_classifier_acts(key, value):
    pytest.importorskip("torch")
    generator = np.random.default_rng(0)
    x = generator.standard_normal((300, 20)).astype(np.float32)
    y = (x[:, 0] + generator.standard_normal(300) > 0).astype(np.int64)
    parts = ((x[:100], x[100:200], x[200:]), (y[:100], y[100:200], y[200:]))
    base = {"nhid": 8, "optim": "adam,lr=0.05"} if key == "dropout" else {"nhid": 0}
    params = {"task_path": ".", "mode": "compat"}
    found = [
        trained.fitted_split(
            *parts, settings_of(completed({**params, "classifier": {**base, **classifier}}))
        )
        for classifier in ({}, {key: value})
    ]
    assert not np.array_equal(found[0].predictions, found[1].predictions)


def test_misspelt_parameters_are_told(task_path):
    with pytest.warns(UserWarning, match="did you mean 'kfold'"):
        senteval.engine.SE({"task_path": ".", "k_fold": 3}, batcher)
    with pytest.raises(InputError, match="did you mean 'tenacity'"):
        engine_of(task_path, classifier={"nhid": 0, "tenacty": 3})
    with pytest.raises(InputError, match="'nhid'"):
        engine_of(task_path, classifier={"optim": "adam"})
    with pytest.raises(InputError, match=r"did you mean .STS1\d."):
        engine_of(task_path).eval("STS1")
    with pytest.raises(InputError, match="SUBJ"):
        engine_of(task_path).eval("SUBJ")


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "year", [*(pytest.param(y, marks=pytest.mark.slow) for y in (12, 13)), 14, 15]
)
def test_similarities_equal_the_originals(shared_data, year):
    se = engine_of(shared_data / "senteval")
    found = se.eval(f"STS{year}")["all"]["pearson"]
    folder = shared_data / f"senteval/downstream/STS/STS{year}-en-test"
    mean, weighted, every = reference.sts_scores(
        folder, subset_files(f"sts{year}"), reference.HashedWords()
    )
    assert found["mean"] == pytest.approx(mean, abs=1e-6)
    assert found["wmean"] == pytest.approx(weighted, abs=1e-6)
    assert found["all"] == pytest.approx(every, abs=1e-6)


@pytest.mark.shared_data
def test_an_own_similarity_equals_the_originals(shared_data):
    se = engine_of(shared_data / "senteval", similarity=minus_l1)
    found = se.eval("STS13")
    folder = shared_data / "senteval/downstream/STS/STS13-en-test"
    expected = reference.sts_scores(
        folder, subset_files("sts13"), reference.HashedWords(), minus_l1
    )
    totals = found["all"]["pearson"]
    assert (totals["mean"], totals["wmean"], totals["all"]) == pytest.approx(expected, abs=1e-6)
    # what the original itself gave
    original = {"FNWN": 0.1127, "headlines": 0.5894, "OnWN": 0.3740}
    for subset, r in original.items():
        assert found[subset]["pearson"][0] == pytest.approx(r, abs=1e-4)
