"""Fixtures of the tests of the server."""

import pytest

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import ModelContents, read_model
from serving import Running, running


@pytest.fixture(scope="session")
def model() -> ModelContents:
    return read_model(shipped_model("rejoinder-small"))


@pytest.fixture(scope="session")
def encoder(model) -> SentenceEncoder:
    return SentenceEncoder(model)


@pytest.fixture(scope="module")
def server(model) -> Running:
    with running(model) as started:
        yield started
