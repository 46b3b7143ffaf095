"""Engines that encode the parts of a large input, on the cores or machines that they have."""

from typing import TYPE_CHECKING

from rejoinder.registry import Registry

if TYPE_CHECKING:
    from rejoinder.inference.engines.base import EncodingEngine

ENCODING_ENGINES: "Registry[EncodingEngine]" = Registry(
    "`engine`",
    {
        "spark": "rejoinder.inference.engines.base:encode_on_spark",
        "ray": "rejoinder.inference.engines.ray:encode_on_ray",
    },
)
"""Every engine: its name, and its function, which is imported when it is used."""
