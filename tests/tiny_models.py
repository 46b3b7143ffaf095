"""Models of a few rows with random weights, for tests of whatever reads or runs a model."""

from itertools import pairwise

import numpy as np

from rejoinder.models.folder import ModelContents
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary

WORDS = (  # noqa: SIM905 -- a sentence is easier to read
    "you are how old what is your age i am twenty years where do live in oslo the it hello good "
    "morning name my tom no yes a cat dog have like music and food of to for not this that was "
    "who when why ? . , ! ' très مرحبا 😀"
).split()


def head_table(layers, activation="tanh", *, inputs=1, residual=False):
    """The table of a head in `config.json`."""
    return {
        "inputs": inputs,
        "layers": list(layers),
        "activation": activation,
        "residual": residual,
    }


def dan_model(
    *,
    width=6,
    layers=(7, 5),
    activation="tanh",
    residual=True,
    combiner="sqrtn",
    buckets=64,
    unknown_buckets=0,
    head=(4, 5),
    head_residual=True,
    dtype=np.float32,
    seed=0,
):
    """A DAN; with `buckets`, every third bigram has no row."""
    draw = np.random.default_rng(seed)

    def normal(*shape):
        return (0.5 * draw.standard_normal(shape)).astype(np.float32)

    rows = len(WORDS) + unknown_buckets
    tensors = {"scale": np.array(20.0, np.float32)}
    if buckets:
        bigrams = np.full(buckets, -1, np.int32)
        trained = np.flatnonzero(np.arange(buckets) % 3)
        bigrams[trained] = rows + np.arange(len(trained), dtype=np.int32)
        tensors["encoder.bigram_rows"] = bigrams
        rows += len(trained)
    tensors["encoder.table.weight"] = normal(rows, width).astype(dtype)
    dim = layers[-1] if layers else width
    for name, sizes in (
        ("encoder.dnn", (width, *layers)),
        ("heads.responses", (dim, *head)),
    ):
        for number, (inside, outside) in enumerate(pairwise(sizes)):
            tensors[f"{name}.layers.{number}.weight"] = normal(outside, inside)
            tensors[f"{name}.layers.{number}.bias"] = normal(outside)
    if residual and layers and layers[-1] != width:
        tensors["encoder.dnn.skip.weight"] = normal(dim, width)
    return ModelContents(
        name="tiny",
        features=WordFeatures(Vocabulary(tuple(WORDS)), buckets, unknown_buckets),
        encoder={
            "kind": "dan",
            "width": width,
            "layers": list(layers),
            "activation": activation,
            "residual": residual,
            "combiner": combiner,
        },
        heads={"responses": head_table(head, activation, residual=head_residual)},
        training={"pairs": 1234, "steps": 5, "seed": 0, "data": {"test": 1234}},
        tensors=tensors,
    )


def transformer_model(*, seed=0):
    """A Transformer of two layers, drawn by its own module; its subwords are learned here."""
    import torch

    from rejoinder.encoders.modules import TransformerConfig, TransformerEncoder
    from rejoinder.text.columns import as_series
    from rejoinder.text.vocabulary import learn_subwords

    features = learn_subwords(
        [as_series([" ".join(WORDS)] * 3)], size=300, min_count=2, max_tokens=40
    )
    config = {"layers": 2, "heads": 2, "hidden": 8, "filter": 12, "dim": 5, "dropout": 0.1}
    encoder = TransformerEncoder(
        features.rows, TransformerConfig(**config), torch.Generator().manual_seed(seed)
    )
    draw = np.random.default_rng(seed)
    tensors = {f"encoder.{name}": value.numpy() for name, value in encoder.state_dict().items()}
    tensors["scale"] = np.array(20.0, np.float32)
    for number, (inside, outside) in enumerate(pairwise((5, 4, 5))):
        tensors[f"heads.responses.layers.{number}.weight"] = draw.standard_normal(
            (outside, inside), np.float32
        )
        tensors[f"heads.responses.layers.{number}.bias"] = draw.standard_normal(outside, np.float32)
    return ModelContents(
        name="tiny-transformer",
        features=features,
        encoder={"kind": "transformer", **config},
        heads={"responses": head_table((4, 5))},
        training={},
        tensors=tensors,
    )


def bilstm_model(*, dim=5, dtype=np.float32, seed=0):
    """A BiLSTM drawn by its own module; with `dim` 0 its pooled states are the embedding."""
    import torch

    from rejoinder.encoders.modules import BilstmConfig, BilstmEncoder

    config = BilstmConfig(width=6, hidden=4, dim=dim, max_tokens=40)
    encoder = BilstmEncoder(len(WORDS), config, torch.Generator().manual_seed(seed))
    state = {name: value.numpy() for name, value in encoder.state_dict().items()}
    tensors = {
        f"encoder.{name}": value for name, value in state.items() if not name.startswith("table.")
    }
    tensors["encoder.table.weight"] = (3 * state["table.weight"]).astype(dtype)
    tensors["scale"] = np.array(20.0, np.float32)
    draw = np.random.default_rng(seed)
    for number, (inside, outside) in enumerate(pairwise((config.dim, 4, config.dim))):
        tensors[f"heads.responses.layers.{number}.weight"] = draw.standard_normal(
            (outside, inside), np.float32
        )
        tensors[f"heads.responses.layers.{number}.bias"] = draw.standard_normal(outside, np.float32)
    return ModelContents(
        name="tiny-bilstm",
        features=WordFeatures(Vocabulary(tuple(WORDS))),
        encoder={"kind": "bilstm", "width": 6, "hidden": 4, "dim": config.dim, "max_tokens": 40},
        heads={"responses": head_table((4, config.dim))},
        training={},
        tensors=tensors,
    )
