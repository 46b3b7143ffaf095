"""Encoder kinds: one record each, looked up by name; importing this needs no torch.

A new kind is one file with its record and one line in `ENCODERS` (docs/extend/encoder.md), or a
call of `register_encoder` from outside the package.
"""

from rejoinder.kinds.base import EncoderKind as EncoderKind
from rejoinder.kinds.registry import Registry

ENCODERS: Registry[EncoderKind] = Registry(
    "encoder",
    {
        "dan": "rejoinder.kinds.dan:DAN",
        "transformer": "rejoinder.kinds.transformer:TRANSFORMER",
        "bilstm": "rejoinder.kinds.bilstm:BILSTM",
    },
)
"""Every encoder kind: its name, and where its record is."""


def register_encoder(kind: EncoderKind) -> None:
    """Adds an encoder kind defined outside rejoinder.

    Raises:
        InputError: another kind has that name.
    """
    ENCODERS.register(kind.name, kind)
