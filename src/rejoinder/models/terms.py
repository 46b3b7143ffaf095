"""The licence of a model, from the front matter of its model card, as model hubs write it."""

import re
from pathlib import Path

_CARD = "MODEL_CARD.md"
_FRONT_MATTER = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_LICENCE = re.compile(r"""^(license(?:_name)?): *["']?(.*?)["']? *$""", re.MULTILINE)


def licence_of(folder: Path) -> str | None:
    """Returns the licence that the card of a model folder states, None if it states none.

    `license_name` comes before `license`, which is `other` where there is a name.
    """
    try:
        card = (folder / _CARD).read_text("utf-8")
    except (OSError, ValueError):
        return None
    matter = _FRONT_MATTER.match(card)
    stated = dict(_LICENCE.findall(matter[1])) if matter else {}
    return stated.get("license_name") or stated.get("license") or None
