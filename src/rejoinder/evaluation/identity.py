"""The identity of an encoder: results and embeddings are reused for the same encoder only."""

import json
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import call, similarities_of
from rejoinder.evaluation.encoding import encode_checked
from rejoinder.io.files.hashed import sha256_of
from rejoinder.protocols import Describes, Encodes, EncodesResponses, Prepares, ScoresPairs

_PROBE = (
    "How old are you?",
    "What is your age?",
    "The printer on the second floor is out of toner again.",
    "my order never arrived and nobody answers the phone",
    "A dog runs across the green field with a red ball in its mouth.",
    "Two men are playing guitar and singing on a small stage.",
    "He didn't like the film, did he?",
    "The company's shares fell 3.5% on Monday, to $41.20.",
    "I can't remember my password; could you send me a new one?",
    "Where is the nearest station, and when does the last train leave?",
    "This is the worst restaurant that we have ever been to.",
    "Thank you so much for your help!",
    "The committee will publish its report in March 2019.",
    "lol yeah same here",
    "A woman is slicing an onion in the kitchen.",
    "Why does bread go stale faster in the refrigerator?",
)
"""Sentences whose vectors identify an encoder. Another probe makes all results those of others."""


def identity(encoder: Encodes) -> dict[str, Any]:
    """Returns what an encoder is known by, as plain JSON: what it says of itself, and its content.

    The content is `sha256`, if the encoder describes one, otherwise `probe_sha256`, the hash of its
    vectors of a few fixed sentences. An encoder whose vectors change from run to run, such as some
    on a GPU, counts as a new encoder each time, unless it describes a `sha256`.

    Raises:
        InputError: `describe` raises an exception, or returns a value that JSON can't hold; or the
            encoder can't encode.
    """
    class_name = type(encoder).__name__
    who = f"describe() of the encoder {class_name}"
    about = call(encoder.describe, who=who) if isinstance(encoder, Describes) else {}
    if not isinstance(about, Mapping):
        raise InputError(
            f"{who} returned an object of type {type(about).__name__}; a dictionary is needed."
        )
    whole = {"name": class_name, "max_tokens": "not told", **about}
    for key, value in whole.items():
        try:
            json.dumps({key: value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                f"{who}: {short(key)} is {short(value)} ({type(value).__name__}), which JSON can't "
                "hold; strings, finite numbers, true, false, None, lists and dictionaries of these "
                "are needed."
            ) from None
    if not isinstance(whole["name"], str):
        raise InputError(f"{who}: 'name' is {short(whole['name'])}; a string is needed.")
    if "sha256" not in whole:
        whole["probe_sha256"] = _probe(encoder, whole["name"])
    plain: dict[str, Any] = json.loads(json.dumps(whole))
    return plain


def _probe(encoder: Encodes, name: str) -> str:
    """Returns the SHA-256 of what the encoder makes of the probe."""
    probe = list(_PROBE)
    if isinstance(encoder, Prepares):
        call(encoder.prepare, "probe", probe, who=f"prepare of the encoder {name}")
    found, _ = encode_checked(encoder.encode, probe, f"encode of the encoder {name}")
    parts = [found.tobytes()]
    if isinstance(encoder, EncodesResponses):
        who = f"encode_response of the encoder {name}"
        parts.append(encode_checked(encoder.encode_response, probe, who)[0].tobytes())
    if isinstance(encoder, ScoresPairs):
        who = f"similarity_pairs of the encoder {name}"
        scores = call(encoder.similarity_pairs, probe[::2], probe[1::2], who=who)
        parts.append(similarities_of(scores, len(probe) // 2, who).tobytes())
    return sha256_of(*parts)
