"""Which encoders can be exported."""

from types import SimpleNamespace

import pytest
import torch

from rejoinder.errors import ModelError
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.export import export
from rejoinder.training.settings import RunConfig
from runs import DAN


class Gru(torch.nn.Module):
    """An encoder that no model folder holds."""


def test_an_encoder_of_an_unknown_kind_is_no_transformer(tmp_path):
    from rejoinder.training.config import parse_config

    config = parse_config(DAN, "test")
    assert isinstance(config, RunConfig)
    model = torch.nn.Module()
    model.encoder = Gru()
    trainer = SimpleNamespace(
        config=config,
        run=tmp_path,
        model=model,
        average={},
        features=WordFeatures(Vocabulary(("how", "are", "you"))),
    )
    with pytest.raises(
        ModelError, match=r"Gru that reads WordFeatures .* dan \(words\), transformer"
    ):
        export(tmp_path / "model", trainer, {})
    assert list(tmp_path.iterdir()) == []
