"""`MtebEncoder`: runs a model of this package in the Massive Text Embedding Benchmark, MTEB 2.

Call `mteb.evaluate(MtebEncoder(), tasks)`.
"""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.card import terms_of, training_rows
from rejoinder.models.find import DEFAULT, find_model
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.protocols import Embeddings

_OPEN = "cc-by-sa-4.0"


class MtebEncoder(AbsEncoder):  # type: ignore[misc]  # its library is optional
    """Encodes the texts of MTEB's tasks. Queries and documents are encoded in the same way."""

    def __init__(self, model: str | Path = DEFAULT, *, threads: int | None = None) -> None:
        """Loads a model by name, folder or address; see `SentenceEncoder.load`.

        Raises:
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        contents = read_model(find_model(model))
        self.model = SentenceEncoder(contents, threads=threads)
        self.mteb_model_meta = model_meta(contents, model)

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,  # noqa: ARG002 -- MTEB passes these by name
        hf_subset: str,  # noqa: ARG002
        prompt_type: Any = None,  # noqa: ARG002
        **_options: Any,
    ) -> Embeddings:
        """Returns (N, D) float32 embeddings of the texts in MTEB's batches, in order.

        Raises:
            InputError: the task has inputs that are not text.
        """
        parts = []
        for batch in inputs:
            if "text" not in batch:
                raise InputError(
                    f"the task {task_metadata.name} has inputs without text ({', '.join(batch)}); "
                    "choose tasks of the modality text."
                )
            parts.append(self.model.encode(batch["text"]))
        return np.concatenate([np.empty((0, self.model.dim), np.float32), *parts])


def model_meta(model: ModelContents, source: str | Path) -> ModelMeta:
    """Returns the facts that MTEB stores with results: name, revision, sizes, licence.

    The revision is the SHA-256 of the weights. MTEB can use it to load `source` again. The training
    data is listed in the model card, under names that MTEB does not use, so it is left out here.
    """
    encoder = {name: x for name, x in model.tensors.items() if name.startswith("encoder.")}
    rows = encoder.get(f"encoder.{model.kind.token_rows}")
    facts = model.describe()
    terms = terms_of(training_rows(facts["training"], facts["adaptation"]))
    return ModelMeta(
        loader=partial(_load, source),
        name=f"rejoinder/{model.name.replace('/', '-')}",
        revision=model.sha256 or None,
        release_date=None,
        languages=None,
        n_parameters=sum(tensor.size for tensor in encoder.values()),
        n_embedding_parameters=None if rows is None else rows.size,
        memory_usage_mb=round(sum(tensor.nbytes for tensor in encoder.values()) / 2**20, 1),
        max_tokens=facts["max_tokens"] or math.inf,
        embed_dim=model.dim,
        license=_OPEN if terms.id == _OPEN else None,
        open_weights=True,
        public_training_code=None,
        public_training_data=None,
        framework=["NumPy", "safetensors"],
        similarity_fn_name=ScoringFunction.COSINE,
        use_instructions=False,
        training_datasets=None,
    )


def _load(source: str | Path, *_name_and_revision: object, **_options: object) -> MtebEncoder:
    """Loads the model of a `ModelMeta`; MTEB calls it as its loader."""
    return MtebEncoder(source)
