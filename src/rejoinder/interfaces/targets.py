"""Export targets: formats of other libraries in which models can be saved, by name.

A new target is one file with its record, and one line in `TARGETS` (docs/extend/target.md).

Also writes folders for sentence-transformers and model2vec.

A table of word vectors includes its text rules and vocabulary as a tokenizer of the Hugging Face
library `tokenizers`.
"""

import json
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from rejoinder.encoders.layers import dequantized
from rejoinder.errors import InputError, require
from rejoinder.inference.outputs import TorchRuntime
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.claims import claim_output
from rejoinder.models.card import Use, model_card
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, config_of, read_model, write_model
from rejoinder.models.smaller import ExportOptions, export_facts, smaller
from rejoinder.registry import Registry
from rejoinder.text.features import WordFeatures
from rejoinder.text.normalize import PATTERN, QUOTES

FOLDER = "FOLDER"
"""Placeholder for the path of the folder in the Python code of a target."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A format of another library in which a model can be saved."""

    name: str
    """The value of `--to`."""
    dtypes: tuple[str, ...] = ("float32",)
    """Types of weights that it supports, the default first."""
    write: Callable[[ModelContents, Path, str], str]
    """Writes a model into an empty folder, with weights of a type in `dtypes`, and returns Python
    code that loads it with the library, where `FOLDER` stands for the path. The folder is renamed
    into place only if this succeeds.

    Raises `InputError` if the library can't express the model; the message says why."""


@dataclass(frozen=True)
class Written:
    """A folder written by an export target."""

    folder: Path
    """The folder."""
    target: str
    """Name of the target."""
    bytes: int
    """Size of all its files."""
    dim: int
    """Embedding dimension."""
    python: str
    """Python code that loads it with its library."""


def export_to(
    model: str | Path,
    out: str | Path,
    target: str,
    *,
    dtype: str | None = None,
    any_dim: bool = False,
    name: str | None = None,
    overwrite: bool = False,
    **smaller_by: Any,
) -> Written:
    """Saves a model as a folder for another library. The same options give the same bytes.

    Args:
        model: name, folder or address of the model. It is not changed.
        out: the folder to write.
        target: name of the library's format, a key of `TARGETS`.
        dtype: type of the weights, one that the target supports. None means its first.
        any_dim: cut to `dim` even if the model was not trained with nested dimensions.
        name: name of the new model. None keeps the name.
        overwrite: replace what `out` holds.
        **smaller_by: ways to make the model smaller, as in `rejoinder.export`: `dim`, `max_words`,
            `unknown_buckets`, `letter_buckets`, `spelling`, `saturation`.

    Returns:
        The folder, its size, and Python code that loads it.

    Raises:
        InputError: the target is unknown or can't express the model, an option does not fit the
            model, or `out` is occupied.
        ModelError: the model is damaged.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    options = ExportOptions(**smaller_by)
    if any_dim and options.dim is None:
        raise InputError("any_dim allows any dim; give a dim, too.")
    record, path = TARGETS[target], Path(out)
    if dtype is not None and dtype not in record.dtypes:
        raise InputError(f"dtype {dtype!r}: {target} is written as {' or '.join(record.dtypes)}.")
    folder = find_model(model)
    with claim_output(path, overwrite=overwrite, inputs=[folder]):
        contents = read_model(folder)
        if options != ExportOptions():
            contents = smaller(contents, options, any_dim=any_dim)
        contents = replace(contents, name=name or contents.name)
        with new_folder(path, overwrite=overwrite) as new:
            python = record.write(contents, new, dtype or record.dtypes[0])
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Written(path, target, size, contents.dim, python.replace(FOLDER, str(path)))


STATIC = "sentence_transformers.models.StaticEmbedding"
"""The sentence-transformers module for a table of word vectors, in the main folder."""
NORMALIZE = "sentence_transformers.models.Normalize"
"""The module that scales vectors to length 1."""
MODULE = "rejoinder.interfaces.sentence_transformers.RejoinderModule"
"""The class that computes embeddings of models that the library can't express."""
MODEL = "0_RejoinderModule"
"""Its subfolder, which is a model folder."""


def _write_sentence_transformers(model: ModelContents, folder: Path, _dtype: str) -> str:
    """Saves a model as modules of sentence-transformers; see `Target.write`.

    A table of word vectors needs only sentence-transformers. Any other model is copied, and
    run by this package, which must be installed. sentence-transformers imports classes of other
    packages only with `trust_remote_code=True`; from version 6 on this also holds for local
    folders.
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
    note = ["# the trusted code is the package rejoinder, which must be installed"]
    python = [
        "from sentence_transformers import SentenceTransformer",
        "",
        *(note if trusted else []),
        f'model = SentenceTransformer("path of this folder"{trusted})',
        'model.similarity(model.encode("How old are you?"), model.encode("What is your age?"))',
    ]
    write_card(folder, model, "sentence-transformers", python)
    return f'SentenceTransformer("{FOLDER}"{trusted})'


def _write_model2vec(model: ModelContents, folder: Path, _dtype: str) -> str:
    """Saves a model as a static model of model2vec; see `Target.write`.

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
    # sentence-transformers loads model2vec folders with these modules
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


def write_json(path: Path, tree: object) -> None:
    """Writes values as JSON."""
    write_text(path, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")


def obstacle(model: ModelContents) -> str | None:
    """Returns why a model is more than a table of word vectors, None if it is just that.

    The reason continues a sentence that begins with the model, such as "has 8 buckets of …".
    """
    features = model.features
    if model.kind.name != "dan" or not isinstance(features, WordFeatures):
        return f"is a {model.kind.name}, whose embedding is not a mean of word vectors"
    if model.encoder["layers"]:
        return f"has {len(model.encoder['layers'])} dense layers after the sum of word vectors"
    if features.fold_marks:
        return "reads letters without their marks, by a rule that other libraries do not have"
    if features.letter_buckets:
        return (
            f"has {features.letter_buckets:,} rows of letters; `letter_buckets=0` leaves them out"
        )
    if features.buckets:
        return f"has {features.buckets:,} rows of pairs of neighbouring words"
    if features.unknown_buckets:
        count = f"{features.unknown_buckets:,} buckets for unknown words"
        return f"has {count}; `unknown_buckets=0` leaves them out"
    if features.spelling != "as written":
        return "reads misspelt words as known ones; `spelling=False` leaves that out"
    return None


def word_vectors(model: ModelContents) -> tuple[Sequence[str], NDArray[np.float32]]:
    """Returns W words and their vectors, (W + 1, D): the last, for unknown words, is zero.

    Their mean, scaled to length 1, is the embedding of a sentence, because the model has no
    `obstacle`: a linear bag of words adds up a row per word, and the combiner's divisor keeps the
    direction. An adaptation u* = W u is linear, too, so it is applied to the rows.
    """
    features = model.features
    assert isinstance(features, WordFeatures)  # noqa: S101 -- `obstacle` says so
    rows = dequantized(model.tensors)[f"encoder.{model.kind.table}"].astype(np.float32)
    if model.adaptation is not None:
        rows = model.adaptation.project(rows)
    unknown = np.zeros((1, rows.shape[1]), np.float32)
    return features.vocabulary.words, np.concatenate([rows, unknown])


def write_word_vectors(folder: Path, model: ModelContents, tensor: str) -> None:
    """Writes `model.safetensors`, with the rows under the name `tensor`, and `tokenizer.json`."""
    words, rows = word_vectors(model)
    save_file({tensor: rows}, folder / "model.safetensors")
    write_text(folder / "tokenizer.json", tokenizer_json(words))


def write_modules(folder: Path, modules: Mapping[str, str]) -> None:
    """Writes `modules.json` of sentence-transformers: the class of each subfolder, in order.

    Every folder except the first has no settings of the model, so its settings are written here.
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
    """Writes `README.md`, the model card, with lines of `python` that use the folder."""
    use = Use(library, "\n".join(python))
    write_text(folder / use.file, model_card(config_of(model), use=use))


UNKNOWN = "[UNK]"
"""The token for every unknown word. Its id follows the ids of all words. No word can have this
name, because the text rules split it into three tokens."""

_CASED = r"[\p{Cased}&&[^\p{Case_Ignorable}]]"
_FINAL_SIGMA = rf"(?<={_CASED}\p{{Case_Ignorable}}{{0,30}})Σ(?!\p{{Case_Ignorable}}*{_CASED})"
"""A capital sigma at the end of a word, where its lower case is a different letter."""
_NEWER = tuple(
    chr(code)
    for codes in (
        (0x32FF, 0xAB69, 0x1F16C),
        range(0xA7F2, 0xA7F5),
        range(0x10781, 0x107BB),
        range(0x1FBF0, 0x1FBFA),
    )
    for code in codes
    if normalize("NFKC", chr(code)) != chr(code)
)
"""Characters that NFKC changes in Unicode 14, but not in Unicode 9, which the library uses."""


def tokenizer_json(words: Sequence[str]) -> str:
    """Returns `tokenizer.json` for a vocabulary: the tokens of text rules 1, and the word ids.

    Tokens differ from ours in two cases: the library refuses half a surrogate pair, and marks added
    to Unicode after version 9 may be ordered differently after a letter.

    Raises:
        InputError: a word has the name of the token for unknown words.
    """
    if UNKNOWN in words:
        raise InputError(f"the vocabulary lists {UNKNOWN!r}, which no sentence can contain.")
    vocabulary = {word: number for number, word in enumerate((*words, UNKNOWN))}
    tree: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(words)},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": PATTERN},
            "behavior": "Removed",
            "invert": True,
        },
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def _normalizers(words: Sequence[str]) -> list[dict[str, object]]:
    """Returns the steps of normalisation, in order."""
    return [
        *(_replace({"String": old}, normalize("NFKC", old)) for old in _relevant(words)),
        {"type": "NFKC"},
        *(_replace({"String": old}, new) for old, new in QUOTES.items()),
        _replace({"Regex": _FINAL_SIGMA}, "ς"),
        {"type": "Lowercase"},
    ]


def _relevant(words: Sequence[str]) -> list[str]:
    """Returns the newer characters that can occur in a known word.

    Each step takes time in every sentence. Most of these characters are letters, and become letters
    that no known word has: a word with one of them is unknown in both forms.
    """
    letters = set(normalize("NFKD", "".join(words)))
    return [
        character
        for character in _NEWER
        if not character.isalpha() or letters.issuperset(normalize("NFKD", character).lower())
    ]


def _replace(pattern: dict[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": pattern, "content": content}


_OPSET = 17
_AXES = {
    "ids": {0: "sentences", 1: "positions"},
    "present": {0: "sentences", 1: "positions"},
    "embeddings": {0: "sentences"},
}


def _write_onnx(model: ModelContents, folder: Path, dtype: str) -> str:
    """Saves a model as a folder of this package with an ONNX graph, so that it runs without torch.

    Other programs run `encoder.onnx`, which maps `ids` (G, T) int64 and `present` (G, T) bool,
    false where padded, to `embeddings` (G, D) float32, not normalised.

    Raises:
        InputError: the encoder does not read padded sentences, or is already a graph.
        MissingExtraError: torch, onnx or ONNX Runtime is not installed.
    """
    if model.graph is not None:
        raise InputError(f"{model.name} is a graph of ONNX already; export the model it is from.")
    require("train", "torch", "pydantic")
    if not hasattr(model.kind.module_class, "encode_group"):
        kind = model.encoder["kind"]
        raise InputError(f"{model.name} is a {kind}; `to='onnx'` is for transformer and bilstm.")
    require("onnx", "onnx", "onnxruntime")
    graph = _graph(TorchRuntime(model, None).encoder)
    if dtype == "int8":
        graph = _quantized(graph)
    tensors = {
        name: tensor for name, tensor in model.tensors.items() if not name.startswith("encoder.")
    }
    facts = export_facts(model, ExportOptions(dtype=dtype))
    made = replace(model, graph=graph, tensors=tensors, export=facts)
    write_model(folder, made, overwrite=True)
    return f'SentenceEncoder.load("{FOLDER}")'


def _graph(encoder: Any) -> bytes:
    """Returns the encoder as a graph for any number of sentences and positions."""
    import torch

    from rejoinder.encoders.nn.layers import PaddedGroup

    class Group(torch.nn.Module):
        """The encoder as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, ids: torch.Tensor, present: torch.Tensor) -> Any:
            return self.encoder.encode_group(PaddedGroup(ids, present))

    present = torch.tensor([[True, True, True], [True, True, False]])
    with TemporaryDirectory() as folder, warnings.catch_warnings(), torch.inference_mode():
        file = Path(folder) / "graph.onnx"
        warnings.simplefilter("ignore")
        # the exporter based on torch.export fixes the length of an LSTM's input
        torch.onnx.export(
            Group().eval(), (torch.zeros(2, 3, dtype=torch.int64), present), file, dynamo=False,
            opset_version=_OPSET, input_names=["ids", "present"], output_names=["embeddings"],
            dynamic_axes=_AXES,
        )  # fmt: skip
        return file.read_bytes()


def _quantized(graph: bytes) -> bytes:
    """Returns the graph with 8-bit integer matrices, by ONNX Runtime."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        whole.write_bytes(graph)
        logging.disable(logging.WARNING)  # of the root logger: that it leaves ids as they are
        try:
            # processors without VNNI add 8-bit products in 16 bits, which 7 bits never overflow
            quantize_dynamic(
                whole, small, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
            )
        finally:
            logging.disable(logging.NOTSET)
        return small.read_bytes()


TARGETS: Registry[Target] = Registry(
    "export target",
    {
        "model2vec": Target(name="model2vec", write=_write_model2vec),
        "onnx": Target(name="onnx", dtypes=("float32", "int8"), write=_write_onnx),
        "sentence-transformers": Target(
            name="sentence-transformers", write=_write_sentence_transformers
        ),
    },
)
"""Every export target by its name."""
