"""Engines that encode the parts of a large input, on the cores or machines that they have."""

from typing import TYPE_CHECKING

from rejoinder.errors import InputError, nearest
from rejoinder.registry import resolve

if TYPE_CHECKING:
    from rejoinder.inference.engines.base import EncodingEngine

ENCODING_ENGINES: dict[str, str] = {
    "spark": "rejoinder.inference.engines.spark:encode_on_spark",
    "ray": "rejoinder.inference.engines.ray:encode_on_ray",
}
"""`module:function` by name of the engine. The module is imported when the engine is used."""


def encoding_engine(name: str) -> "EncodingEngine":
    """Returns an engine of `ENCODING_ENGINES`.

    Raises:
        InputError: there is no engine of that name.
    """
    if name not in ENCODING_ENGINES:
        raise InputError(f"--engine {name!r}: {nearest(name, ENCODING_ENGINES)}.")
    engine: EncodingEngine = resolve(ENCODING_ENGINES[name])
    return engine
