"""Who answers whom, by the linker that comes with the package."""

import io
import tarfile

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import InputError, ModelError
from rejoinder.exports.base import Message
from rejoinder.links import linker as module
from rejoinder.links.linker import Linker, shipped_links
from rejoinder.links.task import link_scores, read_logs

CHAT = [
    ("ann", 0, "hi, how do I mount a usb stick?"),
    ("bob", 40, "my wireless card is not found, what can I do?"),
    ("carl", 70, "ann: plug it in, it mounts itself"),
    ("dora", 95, "bob: which card is it?"),
    ("bob", 120, "dora: a broadcom one"),
    ("ann", 150, "carl: thanks, that worked"),
]


@pytest.fixture(scope="module")
def linker():
    return Linker()


def columns(chat):
    authors, times, texts = zip(*chat, strict=True)
    return texts, authors, times


def test_answers_in_a_chat(linker):
    links = linker.link(*columns(CHAT))
    assert links.parents.tolist() == [-1, -1, 0, 1, 3, 2]
    assert links.parents.dtype == np.int64
    assert links.confidence.dtype == np.float32
    assert (links.confidence > 0.5).all()
    assert links.confidence[2:].max() <= 1


def test_names_are_not_looked_at_without_names():
    texts, authors, times = columns(CHAT)
    with_names, without = Linker(), Linker(names=False)
    renamed = [text.replace("ann: ", "bob: ") for text in texts]
    changed = without.link(renamed, authors, times)
    np.testing.assert_allclose(
        without.link(texts, authors, times).confidence, changed.confidence, atol=1e-5
    )
    assert with_names.link(renamed, authors, times).parents[2] != 0


def test_channels_are_apart(linker):
    texts, authors, times = columns([row for row in CHAT for _ in range(2)])
    links = linker.link(texts, authors, times, sources=["x", "y"] * len(CHAT))
    alone = linker.link(*columns(CHAT))
    for place in (0, 1):
        expected = np.where(alone.parents < 0, -1, 2 * alone.parents + place)
        assert links.parents[place::2].tolist() == expected.tolist()
        np.testing.assert_allclose(links.confidence[place::2], alone.confidence, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_messages_without_authors_and_times(linker, count):
    links = linker.link(["what is this?"] * count)
    assert len(links.parents) == len(links.confidence) == count
    assert (links.parents < np.arange(count)).all()
    assert list(links.parents[:1]) == [-1] * min(count, 1)


def test_columns_of_other_lengths_are_refused(linker):
    with pytest.raises(InputError, match="authors has 1 rows, and texts 2"):
        linker.link(["a", "b"], ["ann"])


@settings(max_examples=5)
@given(st.lists(st.sampled_from(CHAT), min_size=1, max_size=60), st.integers(1, 7))
def test_a_stream_gives_the_links_of_columns(linker, chat, channels):
    chat = [(author, 30 * at, text) for at, (author, _, text) in enumerate(chat)]
    texts, authors, times = columns(chat)
    sources = [str(at % channels) for at in range(len(chat))]
    said = [
        Message(id=str(at), author=author, time=time, text=text, source=sources[at])
        for at, (author, time, text) in enumerate(chat)
    ]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(module, "_PIECE", 8)
        small.setattr(module, "_BEFORE", 70)
        small.setattr(module, "_AFTER", 3)
        links = linker.link(texts, authors, times, sources=sources)
        found = {one.id: (parent, sure) for one, parent, sure in linker.stream(said)}
    assert len(found) == len(chat)
    for at, (parent, sure) in enumerate(zip(links.parents, links.confidence, strict=True)):
        answered, confidence = found[str(at)]
        assert answered == (None if parent < 0 else said[parent])
        assert confidence == pytest.approx(float(sure), abs=1e-5)


def test_the_file_says_where_it_learned(linker):
    assert "Kummerfeld" in linker.settings["learned_from"]
    assert "CC BY 4.0" in linker.settings["learned_from"]
    assert shipped_links().stat().st_size < 100_000


def test_other_files_are_refused(tmp_path):
    (tmp_path / "other").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match="not a linker"):
        Linker(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.shared_data
def test_scores_on_annotated_logs(linker, shared_data, tmp_path):
    packed = (shared_data / "links" / "ubuntu_irc_dev.tar.zst").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(zstandard.decompress(packed))) as tar:
        tar.extractall(tmp_path, filter="data")
    logs = list(read_logs(tmp_path / "dev"))
    for names, least in ((True, 0.74), (False, 0.60)):
        one = Linker(names=names)
        found = [one.link(log.texts, log.authors, log.times).parents for log in logs]
        scores = link_scores(
            (log.answers, log.predicted(each)) for log, each in zip(logs, found, strict=True)
        )
        assert scores.f >= least
