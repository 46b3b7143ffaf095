"""Tables of settings: checked by Pydantic, faults in our words, written back as TOML.

What trains needs it; `import rejoinder` and encoding with a DAN do without Pydantic.

Raises:
    MissingExtraError: Pydantic is not installed.
"""

from rejoinder.errors import require

require("train", "pydantic")
