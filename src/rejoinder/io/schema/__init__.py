"""Tables of settings, checked by Pydantic, with faults reported in plain words.

Training needs this package. `import rejoinder` and encoding with a DAN work without Pydantic.

Raises:
    MissingExtraError: Pydantic is not installed.
"""

from rejoinder.errors import require

require("train", "pydantic")
