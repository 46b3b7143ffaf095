"""Folders that `model2vec.StaticModel.from_pretrained` loads."""

from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.interfaces.targets import FOLDER, Target
from rejoinder.interfaces.targets.files import (
    NORMALIZE,
    STATIC,
    obstacle,
    write_card,
    write_json,
    write_modules,
    write_word_vectors,
)
from rejoinder.models.folder import ModelContents


def write(model: ModelContents, folder: Path, _dtype: str) -> str:
    """Writes a model as a static model of model2vec; see `Target.write`.

    Raises:
        InputError: the model is more than a table of word vectors.
    """
    reason = obstacle(model)
    if reason is not None:
        raise InputError(f"model2vec can't express {model.name}: it {reason}.")
    write_word_vectors(folder, model, "embeddings")
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": model.dim,
        "normalize": True,
        "max_length": None,
        "embedding_dtype": "float32",
    }
    write_json(folder / "config.json", config)
    # sentence-transformers loads folders of model2vec, by these modules
    write_modules(folder, {".": STATIC, "1_Normalize": NORMALIZE})
    python = [
        "from model2vec import StaticModel",
        "",
        'model = StaticModel.from_pretrained("path of this folder")',
        'first, second = model.encode(["How old are you?", "What is your age?"])',
        "first @ second",
    ]
    write_card(folder, model, "model2vec", python)
    return f'StaticModel.from_pretrained("{FOLDER}")'


MODEL2VEC = Target(name="model2vec", write=write)
