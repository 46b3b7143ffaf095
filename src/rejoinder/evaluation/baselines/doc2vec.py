"""PV-DBOW (Le and Mikolov 2014), trained and inferred by gensim, stored without pickle.

Word vectors are trained beside those of texts, and frequent words left out more often than is
usual: what Lau and Baldwin (2016, §3 and §5) found to matter for pairs of sentences.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.evaluation.baselines.words import tokens
from rejoinder.files.atomic import new_file
from rejoinder.protocols import Embeddings

_EPOCHS = 200
"""Of the inference of a sentence."""
_NEGATIVE = 5
_SAMPLE = 1e-5
_WINDOW = 10
"""Share of a word beyond which training leaves some of it out."""


class ParagraphVectors:
    """A model whose vectors of new sentences are inferred, each from the same start."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._name = name

    def describe(self) -> dict[str, object]:
        """Who this is."""
        dim = self._model.vector_size
        return {"name": f"baseline:doc2vec:{self._name}", "dim": dim, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, D) float32; zero where no word is known."""
        out = np.zeros((len(sentences), self._model.vector_size), np.float32)
        for row, text in enumerate(sentences):
            words = [word for word in tokens(text) if word in self._model.wv.key_to_index]
            if words:
                # the draws of negatives start anew: the order of sentences changes nothing
                self._model.random.seed(1)
                out[row] = self._model.infer_vector(words, epochs=_EPOCHS)
        return out

    @classmethod
    def train(
        cls, texts: Iterable[str], *, dim: int = 300, epochs: int = 10, workers: int = 1
    ) -> "ParagraphVectors":
        """A model of texts.

        With one worker, and PYTHONHASHSEED set, the same texts give the same model.

        Raises:
            MissingExtraError: gensim is not installed.
        """
        kinds = _gensim()
        documents = [kinds.TaggedDocument(tokens(text), [row]) for row, text in enumerate(texts)]
        model = _empty(dim, epochs, workers, _SAMPLE)
        model.build_vocab(documents)
        model.train(documents, total_examples=len(documents), epochs=epochs)
        return cls(model, "trained")

    def save(self, path: Path) -> None:
        """Write the words, their counts and the output layer: all that inference needs."""
        words = self._model.wv.index_to_key
        counts = {word: int(self._model.wv.get_vecattr(word, "count")) for word in words}
        about = {"format": "rejoinder-doc2vec-1", "counts": json.dumps(counts)}
        with new_file(path) as file:
            file.write(save({"output": np.ascontiguousarray(self._model.syn1neg)}, about))

    @classmethod
    def load(cls, path: Path) -> "ParagraphVectors":
        """A model that `save` wrote.

        Raises:
            InputError: the file is not there, or no such model.
            MissingExtraError: gensim is not installed.
        """
        _gensim()
        try:
            output = load_file(path)["output"]
            from safetensors import safe_open

            with safe_open(path, "numpy") as file:
                about = file.metadata() or {}
            counts = json.loads(about["counts"])
        except (OSError, KeyError, ValueError, SafetensorError) as error:
            raise InputError(
                f"{path} is no doc2vec model of rejoinder: {error}; gensim's own files are "
                "pickles and are not read. See benchmarks/baselines.py."
            ) from None
        # a short sentence can spare no word: nothing is left out in inference
        model = _empty(output.shape[1], 1, 1, 0.0)
        model.build_vocab_from_freq(counts)
        if len(model.wv) != len(output):
            raise InputError(
                f"{path}: {len(output)} rows for {len(model.wv)} words; it is damaged."
            )
        model.syn1neg = output.copy()
        return cls(model, path.name)


def _gensim() -> Any:
    try:
        from gensim.models import doc2vec
    except ImportError:
        raise MissingExtraError("gensim", "eval") from None
    return doc2vec


def _empty(dim: int, epochs: int, workers: int, sample: float) -> Any:
    return _gensim().Doc2Vec(
        dm=0,
        dbow_words=1,
        window=_WINDOW,
        vector_size=dim,
        negative=_NEGATIVE,
        hs=0,
        min_count=2,
        sample=sample,
        epochs=epochs,
        workers=workers,
        seed=1,
    )
