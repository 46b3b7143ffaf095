"""`RejoinderModule`: any model of this package as a module of sentence-transformers, version 6."""

from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules import InputModule

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.opening import encoder_of
from rejoinder.models.find import DEFAULT

_TEXTS = "texts"


class RejoinderModule(InputModule):  # type: ignore[misc]  # its library is optional
    """Computes embeddings of length 1 with a `SentenceEncoder`, on the CPU, for inference only.

    `SentenceTransformer(modules=[RejoinderModule("rejoinder-base")])` is the complete model.
    """

    save_in_root = False

    def __init__(
        self, model: str | Path | SentenceEncoder = DEFAULT, *, threads: int | None = None
    ) -> None:
        """Wraps an encoder, or loads a model by name, folder or address.

        Args:
            model: The encoder, or any argument of `SentenceEncoder.load`.
            threads: Number of CPU cores for a loaded model, by default all that the process
                may use.

        Raises:
            InputError: `threads` is given for an encoder, which has its own.
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        super().__init__()
        self.encoder = encoder_of(model, threads)

    def preprocess(
        self, inputs: list[str], prompt: str | None = None, **_options: object
    ) -> dict[str, Any]:
        """Returns the texts unchanged; `forward` tokenizes them.

        Raises:
            InputError: there is a prompt, but the models were not trained with prompts.
        """
        if prompt:
            raise InputError(
                f"prompt is {prompt!r}; {self.encoder!r} was trained without prompts. Leave it out."
            )
        return {_TEXTS: inputs}

    def forward(self, features: dict[str, Any], **_options: object) -> dict[str, Any]:
        """Adds `sentence_embedding`, an (N, D) float32 tensor on the CPU."""
        features["sentence_embedding"] = torch.from_numpy(self.encoder.encode(features[_TEXTS]))
        return features

    def get_embedding_dimension(self) -> int:
        """Returns the dimension D of the embeddings."""
        return self.encoder.dim

    def save(self, output_path: str, *_arguments: object, **_options: object) -> None:
        """Writes the model folder."""
        self.encoder.save(output_path, overwrite=True)

    @classmethod
    def load(
        cls, model_name_or_path: str, subfolder: str = "", **options: Any
    ) -> "RejoinderModule":
        """Loads the model folder that `save` wrote.

        Raises:
            ModelError: the folder is damaged.
        """
        hub = ("token", "cache_folder", "revision", "local_files_only")
        given = {name: options[name] for name in hub if name in options}
        return cls(Path(str(cls.load_dir_path(model_name_or_path, subfolder, **given))))
