"""What results say of leaks."""

import pytest

from rejoinder.datasets.leaks import shipped
from rejoinder.evaluation.run import leak_note, score_tasks
from rejoinder.evaluation.tasks import resolve
from rejoinder_papers.baselines.words import BagOfWords

SETS = [name for name in shipped() if name != "stsb-train"]
TRAINING = {"leaks_dropped": 1_570, "leak_sets": SETS}
LEFT_OUT = "training left out 1,570 pairs with sentences of {} or of 26 other sets"
UNCHECKED = "the training data was not checked for sentences of this set"


@pytest.mark.parametrize(
    ("task", "split", "name"),
    [
        ("stsb/angular", "dev", "stsb-dev"),
        ("stsb-unrepeated/cosine", "test", "stsb-test"),
        ("stsb-v2/cosine", "test", "stsb-test"),
        ("stsb/senteval-regression", "test", "stsb-test"),
        ("sts12/cosine", "test", "sts12"),
        ("sts13/cosine", "test", "sts13"),
        ("sts14/cosine", "test", "sts14"),
        ("sts15/cosine", "test", "sts15"),
        ("sts17/cosine", "test", "sts2017"),
        ("sts17/difficult", "test", "sts2017"),
        ("snli/head", "dev", "snli-dev"),
        ("snli/senteval", "test", "snli-test"),
        ("mrpc/senteval", "test", "mrpc-test"),
        ("cqa-b/2016", "dev", "cqa2016-dev"),
        ("cqa-b/2016", "test", "cqa2016-test"),
        ("mr/senteval", "all", "mr"),
        ("cr/senteval", "all", "cr"),
        ("subj/senteval", "all", "subj"),
        ("sst2/senteval", "dev", "sst2-dev"),
        ("sst2/senteval", "test", "sst2-test"),
        ("trec/senteval", "test", "trec-test"),
        ("translation/ar", "test", "flores200"),
        ("semrel/en", "dev", "semrel-en-dev"),
        ("semrel/ar", "test", "semrel-ar-test"),
        ("pairs/twitter-url", "test", "twitter-url-test"),
        ("cluster/banking77", "test", "banking77-test"),
        ("classify/clinc150", "test", "clinc150-test"),
    ],
)
def test_the_set_scored_is_named(task, split, name):
    assert resolve([task]) == [task] or task == "stsb/senteval-regression"
    assert leak_note(task, split, {"training": TRAINING}) == LEFT_OUT.format(name)


def test_sets_that_were_not_checked():
    unchecked = [("stsb/cosine", "train"), ("cqa-b/2017", "test"), ("sst5/senteval", "test")]
    unchecked += [("sts16/cosine", "test"), ("mpqa/senteval", "all"), ("sick-e/senteval", "test")]
    unchecked += [("contrasts/names", "test"), ("memory/locomo", "test"), ("semrel/en", "test")]
    unchecked += [("semrel/es", "test"), ("pairs/sprint", "test"), ("rerank/askubuntu", "test")]
    for task, split in unchecked:
        assert leak_note(task, split, {"training": TRAINING}) == UNCHECKED
    for task in ("response/p@n", "bias/age"):
        assert leak_note(task, "test", {"training": TRAINING}) is None
    old = {"training": {"leaks_dropped": 157, "leak_sets": ["stsb-dev", "stsb-test"]}}
    for task, split in (("mr/senteval", "all"), ("cluster/banking77", "test")):
        assert leak_note(task, split, old) == UNCHECKED
    note = "training left out 157 pairs with sentences of stsb-test or of 1 other set"
    assert leak_note("stsb/cosine", "test", old) == note


def test_models_that_excluded_nothing_and_encoders_of_others():
    assert leak_note("stsb/cosine", "dev", {"training": {"leak_sets": []}}) == UNCHECKED
    for about in ({}, {"training": None}, {"training": "Wikipedia"}, {"training": {"pairs": 1}}):
        assert leak_note("stsb/cosine", "dev", about) is None


def test_results_carry_the_note_after_their_own():
    class Trained:
        def describe(self):
            return {"name": "trained", "training": TRAINING}

        def encode(self, texts):
            return [[len(text), 1] for text in texts]

    [without] = score_tasks(BagOfWords(), ["contrasts/names"])
    [result] = score_tasks(Trained(), ["contrasts/names"])
    assert result.notes == (leak_note("contrasts/names", "test", {"training": TRAINING}),)
    assert without.notes == ("the similarity is the encoder's own, similarity_pairs",)
