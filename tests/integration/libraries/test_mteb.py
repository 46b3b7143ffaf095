"""The adapter in the real MTEB, on tasks that are defined here: nothing is downloaded."""

import math

import mteb
import pytest
from mteb.abstasks import AbsTaskClassification
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from scipy.stats import spearmanr

from datasets import Dataset, DatasetDict
from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.interfaces.mteb import MtebEncoder

PAIRS = [
    ("How old are you?", "What is your age?", 5.0),
    ("A man plays a guitar.", "A man is playing a guitar.", 4.8),
    ("Where do you live?", "Which city is your home?", 4.0),
    ("A dog runs in the park.", "A cat sleeps on the sofa.", 1.0),
    ("I like music.", "The train was late.", 0.0),
    ("She cooks dinner.", "He repairs a car.", 0.5),
]
TOPICS = {
    0: ["How old is he?", "What is your age?", "When was she born?", "He is twenty years old."],
    1: ["The food is good.", "I cook dinner.", "We eat pizza.", "She likes bread and cheese."],
}


def metadata(name, kind, score):
    return TaskMetadata(
        name=name,
        description="A task of the tests.",
        dataset={"path": "none", "revision": "1"},
        type=kind,
        category="t2t",
        eval_langs=["eng-Latn"],
        main_score=score,
    )


class Similar(AbsTaskSTS):
    metadata = metadata("Similar", "STS", "cosine_spearman")

    def load_data(self, *_arguments, **_options):
        columns = zip(("sentence1", "sentence2", "score"), zip(*PAIRS, strict=True), strict=True)
        self.dataset = DatasetDict(
            test=Dataset.from_dict({name: list(column) for name, column in columns})
        )
        self.data_loaded = True


class Topics(AbsTaskClassification):
    metadata = metadata("Topics", "Classification", "accuracy")
    samples_per_label = 3
    n_experiments = 3

    def load_data(self, *_arguments, **_options):
        rows = [(text, label) for label, texts in TOPICS.items() for text in texts]
        texts, labels = map(list, zip(*rows, strict=True))
        split = Dataset.from_dict({"text": texts, "label": labels})
        self.dataset = DatasetDict(train=split, test=split)
        self.data_loaded = True


@pytest.fixture(scope="module")
def adapter():
    return MtebEncoder()


def scores(adapter, task):
    [result] = mteb.evaluate(adapter, task, cache=None, show_progress_bar=False).task_results
    return result


def test_scores_are_those_of_the_encoder(adapter):
    left, right, gold = zip(*PAIRS, strict=True)
    cosine = SentenceEncoder().similarity_pairwise(list(left), list(right))
    result = scores(adapter, Similar())
    assert result.get_score() == pytest.approx(spearmanr(cosine, gold).statistic, abs=1e-6)
    assert min(cosine[:3]) > max(cosine[3:])  # the first three mean the same
    [found] = result.scores["test"]
    assert found["cosine_pearson"] > 0.8


def test_classification_learns_from_embeddings(adapter):
    assert scores(adapter, Topics()).get_score() > 0.9


def test_mteb_loads_the_model_again_from_its_metadata(adapter):
    meta = adapter.mteb_model_meta
    assert meta.name == "rejoinder/rejoinder-base"
    assert meta.revision == SentenceEncoder().describe()["sha256"]
    assert (meta.embed_dim, meta.max_tokens, meta.license) == (512, math.inf, "cc-by-sa-4.0")
    assert meta.n_embedding_parameters == (40_000 + 8_192) * 512
    assert scores(meta, Similar()).get_score() == scores(adapter, Similar()).get_score()


def test_inputs_without_text_are_refused(adapter):
    with pytest.raises(InputError, match=r"task Similar has inputs without text \(image\)"):
        adapter.encode(
            [{"image": [None]}],
            task_metadata=Similar.metadata,
            hf_split="test",
            hf_subset="default",
        )
