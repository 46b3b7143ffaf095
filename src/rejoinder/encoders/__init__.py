"""Encoder kinds: one record each, looked up by name; importing this needs no torch.

A new kind is one file with its record and one line in `ENCODERS` (docs/extend/encoder.md), or a
call of `register_encoder` from outside the package.
"""

from rejoinder.encoders.kinds import EncoderKind as EncoderKind
from rejoinder.registry import Registry

ENCODERS: Registry[EncoderKind] = Registry(
    "encoder",
    {
        "dan": "rejoinder.encoders.dan.kind:DAN",
        "transformer": "rejoinder.encoders.transformer.kind:TRANSFORMER",
        "bilstm": "rejoinder.encoders.bilstm.kind:BILSTM",
    },
)
"""Every encoder kind: its name, and where its record is."""


def register_encoder(kind: EncoderKind) -> None:
    """Adds an encoder kind defined outside rejoinder.

    Raises:
        InputError: another kind has that name.
    """
    ENCODERS.register(kind.name, kind)
