"""The task `links`: the score is that of the official scripts, for encoders of any kind."""

import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from rejoinder import SentenceEncoder, evaluate
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.metrics import METRICS
from rejoinder.links.linker import Linker
from rejoinder.links.scores import link_scores, read_logs

LOG = """\
[10:00] <ann> Who has the wifi password?
[10:01] <bob> When do we eat?
=== carl [~c@host] has joined #flat
[10:02] <eve> ann: it is on the fridge
[10:03] <dan> bob: at eight, I think
[10:04] <ann> eve: thanks a lot
"""
ANNOTATION = "0 0 -\n1 1 -\n2 2 -\n0 3 -\n1 4 -\n3 5 -\n1 5 -\n"


class Letters:
    """An encoder of somebody else: counts of letters."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        counts = [[text.count(letter) for letter in "abcdefghij"] for text in sentences]
        return np.array(counts, np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split in ("dev", "test"):
        folder = tmp_path / "irc-disentanglement/data" / split
        folder.mkdir(parents=True)
        (folder / "2024-01-01.raw.txt").write_text(LOG)
        (folder / "2024-01-01.annotation.txt").write_text(ANNOTATION)
    return tmp_path


def test_f_is_that_of_the_scripts(data: Path):
    encoder = SentenceEncoder("rejoinder-small")
    results = evaluate(encoder, data=data, tasks=["links"]).results
    for result in results:
        [log] = read_logs(data / "irc-disentanglement/data" / result.split)
        linker = Linker(encoder=encoder, names=not result.task.endswith("nameless"))
        said = log.predicted(linker.link(log.texts, log.authors, log.times).parents.tolist())
        assert result.n == 6
        assert result.scores["f_of_links"] == pytest.approx(
            100 * link_scores([(log.answers, said)]).f
        )
    assert {(result.task, result.split) for result in results} == {
        (task, split)
        for task in ("links/ubuntu-irc", "links/ubuntu-irc-nameless")
        for split in ("dev", "test")
    }


def test_other_encoders_and_archives_are_judged(data: Path):
    folder = data / "irc-disentanglement/data"
    (data / "links").mkdir()
    for split in ("dev", "test"):
        with tarfile.open(data / f"links/ubuntu_irc_{split}.tar.zst", "w:gz") as tar:
            tar.add(folder / split, split)
    shutil.rmtree(folder)
    first, *_ = evaluate(Letters(), data=data, tasks=["links/ubuntu-irc"]).results
    assert 0 < first.scores["f_of_links"] <= 100
    assert METRICS["f_of_links"].percent


def test_missing_logs_are_named(tmp_path: Path):
    with pytest.raises(DataMissingError, match="irc-disentanglement"):
        evaluate(Letters(), data=tmp_path, tasks=["links"])
