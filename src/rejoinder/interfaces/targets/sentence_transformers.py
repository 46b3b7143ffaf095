"""Folders that `sentence_transformers.SentenceTransformer` loads."""

from pathlib import Path

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
from rejoinder.models.folder import ModelContents, write_model

MODULE = "rejoinder.interfaces.sentence_transformers.RejoinderModule"
"""The class that computes the embeddings of a model that the library can't express itself."""
MODEL = "0_RejoinderModule"
"""Its subfolder, a model folder."""


def write(model: ModelContents, folder: Path, _dtype: str) -> str:
    """Writes a model as modules of sentence-transformers; see `Target.write`.

    A table of word vectors needs only sentence-transformers. Any other model is copied, and
    run by this package, which has to be installed. sentence-transformers imports classes of other
    packages only with `trust_remote_code=True`, from version 6 on also for a folder on this
    machine.
    """
    trusted = ""
    if obstacle(model) is None:
        write_word_vectors(folder, model, "embedding.weight")
        write_modules(folder, {"": STATIC, "1_Normalize": NORMALIZE})
    else:
        trusted = ", trust_remote_code=True"
        write_model(folder / MODEL, model)
        write_modules(folder, {MODEL: MODULE})
    config = {
        "model_type": "SentenceTransformer",
        "prompts": {"query": "", "document": ""},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    write_json(folder / "config_sentence_transformers.json", config)
    note = ["# the code that is trusted is that of the package rejoinder, which must be installed"]
    python = [
        "from sentence_transformers import SentenceTransformer",
        "",
        *(note if trusted else []),
        f'model = SentenceTransformer("path of this folder"{trusted})',
        'model.similarity(model.encode("How old are you?"), model.encode("What is your age?"))',
    ]
    write_card(folder, model, "sentence-transformers", python)
    return f'SentenceTransformer("{FOLDER}"{trusted})'


SENTENCE_TRANSFORMERS = Target(name="sentence-transformers", write=write)
