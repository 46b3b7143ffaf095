"""Files that folders of several libraries have: modules of sentence-transformers, the card."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors.numpy import save_file

from rejoinder.interfaces.static import WordVectors
from rejoinder.interfaces.tokenizer import tokenizer_json
from rejoinder.io.files.atomic import write_text
from rejoinder.models.card import Use, model_card
from rejoinder.models.folder import ModelContents, config_of

STATIC = "sentence_transformers.models.StaticEmbedding"
"""The module of sentence-transformers that is a table of word vectors, in the folder itself."""
NORMALIZE = "sentence_transformers.models.Normalize"
"""The module that scales vectors to length 1."""


def write_json(path: Path, tree: object) -> None:
    """Writes JSON values."""
    write_text(path, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")


def write_word_vectors(folder: Path, vectors: WordVectors, tensor: str) -> None:
    """Writes `model.safetensors`, in which the rows are called `tensor`, and `tokenizer.json`."""
    save_file({tensor: vectors.rows}, folder / "model.safetensors")
    write_text(folder / "tokenizer.json", tokenizer_json(vectors.words))


def write_modules(folder: Path, modules: Mapping[str, str]) -> None:
    """Writes `modules.json` of sentence-transformers: classes by the subfolder of each, in order.

    Every folder but that of the first has no settings, so that it is written here.
    """
    rows = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(modules.items())
    ]
    write_json(folder / "modules.json", rows)
    for path in list(modules)[1:]:
        (folder / path).mkdir()
        write_json(folder / path / "config.json", {})


def write_card(folder: Path, model: ModelContents, library: str, python: Sequence[str]) -> None:
    """Writes `README.md`, the card of the model, with lines of `python` that use the folder."""
    use = Use(library, "\n".join(python))
    write_text(folder / use.file, model_card(config_of(model), use=use))
