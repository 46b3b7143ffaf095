"""Tables of settings: checked by Pydantic, faults in our words, written back as TOML.

Training alone needs it; `import rejoinder` and encoding with a DAN do without Pydantic.

Raises:
    MissingExtraError: Pydantic is not installed.
"""

from rejoinder.errors import MissingExtraError

try:
    import pydantic  # noqa: F401
except ImportError:
    raise MissingExtraError("pydantic", "train") from None
