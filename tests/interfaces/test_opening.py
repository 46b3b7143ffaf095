"""Models and indexes as adapters open them, and the hits that their retrievers return."""

from types import SimpleNamespace

import pytest

from export_samples import slack, write
from rejoinder.errors import InputError
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.opening import encoder_of, index_of, retrieve


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opening")
    return Index.create(folder / "index", write(slack.FILES, folder / "slack"), "rejoinder-small")


def test_an_encoder_stays_as_it_is_and_a_name_is_loaded():
    encoder = encoder_of("rejoinder-small", 1)
    assert isinstance(encoder, SentenceEncoder)
    assert encoder_of(encoder, None) is encoder
    with pytest.raises(InputError, match="this encoder has its own"):
        encoder_of(encoder, 1)


def test_an_index_is_opened_by_its_folder(index):
    assert index_of(index) is index
    assert len(index_of(str(index.folder))) == len(index)


@pytest.mark.parametrize("context", [0, 1])
def test_hits_come_with_what_is_known_of_them(index, context):
    settings = SimpleNamespace(mode="hybrid", weight=0.3, where=None, context=context)
    [found] = retrieve(index, settings, ["which port?"], 3)
    [hits] = index.search(["which port?"], 3, mode="hybrid", weight=0.3, context=context)
    assert [one[:3] for one in found] == [(hit.id, hit.text, hit.score) for hit in hits]
    for one, hit in zip(found, hits, strict=True):
        around = {key: one.about[key] for key in one.about if key in ("before", "after")}
        assert {**hit.about, **around} == one.about
        assert bool(context) == bool(around)
        if context:
            assert [each["id"] for each in around["after"]] == [each.id for each in hit.after]
