"""The terms of a model: as its card states them, and as they follow from its training data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from rejoinder.datasets.catalogue import (
    NOT_STATED,
    DataRow,
    Licence,
    licence_of_file,
    licence_of_source,
)
from rejoinder.io.formats.text_lines import decoded
from rejoinder.models.adaptation.linear import source_of

_CARD = "MODEL_CARD.md"
_FRONT_MATTER = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_STATED = re.compile(r"""^(\w+): *+["']?(.*?)["']?(?<! ) *$""", re.MULTILINE)
_OTHER_MODEL = Licence("see that model")
LANGUAGE_NAMES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French",
    "hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "tr": "Turkish", "zh": "Chinese",
}  # fmt: skip


class _File(Struct, frozen=True):
    where: dict[str, str] = {}


class _Task(Struct, frozen=True):
    data: list[_File] = []


class _Tasks(Struct, frozen=True):
    """What is read of a run's config: the languages of the rows that its tasks choose."""

    tasks: list[_Task] = []


@dataclass(frozen=True)
class Terms:
    """The terms of a model."""

    id: str
    """`cc-by-sa-4.0`, `non-commercial-research` or `not-stated`."""
    title: str
    """The terms in a few words."""
    reason: str
    """What they follow from."""
    rows: tuple[DataRow, ...]
    """What the model was trained on: sources of conversations and files, the largest first."""

    @property
    def closed(self) -> list[DataRow]:
        """The rows whose licence is not open, or not known."""
        return [row for row in self.rows if not row.licence.open]


def training_rows(
    training: Mapping[str, Any], adaptation: Mapping[str, Any] | None = None
) -> list[DataRow]:
    """Returns what a model was trained on, from `training` and `adaptation` of its config.json.

    What the model that training started from was trained on counts as well.
    """
    inputs = training.get("inputs", ())
    sources = [
        DataRow("source", name, licence_of_source(name, inputs), count)
        for name, count in (training.get("data") or {}).items()
        if count
    ]
    files = [_file_row(path, facts) for path, facts in (training.get("labelled") or {}).items()]
    rows = [
        row
        for part in (sources, files)
        for row in sorted(part, key=lambda row: (-(row.rows or 0), row.name))
    ]
    initial = training.get("initial")
    if isinstance(initial, Mapping):
        known = {(row.kind, row.name) for row in rows}
        inherited = training_rows(initial.get("training") or {})
        rows += [row for row in inherited if (row.kind, row.name) not in known]
    elif _initial(training):
        rows.append(DataRow("model", _initial(training), _OTHER_MODEL))
    if adaptation is not None:
        name = str((adaptation.get("data") or {}).get("name", ""))
        rows.append(
            DataRow(
                "adaptation", source_of(adaptation), licence_of_file(name), adaptation.get("pairs")
            )
        )
    return rows


def _initial(training: Mapping[str, Any]) -> str:
    """Returns the model that training started from, empty if there was none."""
    config = training.get("config")
    table = config.get("training") if isinstance(config, Mapping) else None
    initial = table.get("init_from") if isinstance(table, Mapping) else None
    return initial if isinstance(initial, str) else ""


def _file_row(path: str, facts: Mapping[str, Any]) -> DataRow:
    rows: Mapping[str, int] = facts.get("rows") or {}
    detail = ", ".join(f"{task} {count:,}" for task, count in rows.items())
    return DataRow("file", path, licence_of_file(path), max(rows.values(), default=None), detail)


def terms_of(rows: Sequence[DataRow]) -> Terms:
    """Returns the terms that follow from the licences of the data.

    Open data alone give CC BY-SA 4.0, which the licences of all open data in the table allow. Data
    that state a licence that is not open, or none, give non-commercial research. Where all else is
    open, data that the table does not have, or no data at all, leave the terms open.
    """
    closed = [row for row in rows if not row.licence.open]
    unknown = [row for row in closed if row.licence == NOT_STATED or row.licence == _OTHER_MODEL]
    if rows and not closed:
        why = f"all {len(rows)} sources and files are openly licensed"
        return Terms("cc-by-sa-4.0", "CC BY-SA 4.0", why, tuple(rows))
    if len(closed) > len(unknown):
        count = len(closed) - len(unknown)
        why = f"{count} of {len(rows)} sources and files have no open licence"
        return Terms("non-commercial-research", "non-commercial research", why, tuple(rows))
    if unknown:
        why = f"the licences of {len(unknown)} of {len(rows)} sources and files are not known here"
    else:
        why = "the training data is not recorded"
    return Terms("not-stated", "not stated", why, tuple(rows))


def languages_of(training: Mapping[str, Any]) -> list[str]:
    """Returns the ISO 639 codes of the languages that a model was trained on.

    `training` is the table of `config.json`. Empty if its data are not known here. Of data in two
    languages, the config chooses rows by their `lang`, such as `en-tr`; all others are English.

    >>> files = [{"path": "parallel/tldr.jsonl.zst", "where": {"lang": "en-tr"}}]
    >>> labelled = {"parallel/tldr.jsonl.zst": {"rows": {"turkish": 9}}}
    >>> languages_of({"labelled": labelled, "config": {"tasks": [{"data": files}]}})
    ['en', 'tr']
    """
    if not any(row.licence.known for row in training_rows(training, None)):
        return []
    try:
        tasks = decoded(_Tasks, training.get("config", {})).tasks
    except ValueError:  # of an encoder that this version does not know
        return ["en"]
    files = (file for task in tasks for file in task.data)
    codes = {code for file in files for code in file.where.get("lang", "en").split("-")}
    return ["en", *sorted(codes - {"en"})]


def licence_of(folder: Path) -> str | None:
    """Returns the licence that the card of a model folder states, None if it states none.

    `license_name` comes before `license`, which is `other` where there is a name.
    """
    return stated_in_card(folder, "license_name") or stated_in_card(folder, "license")


def stated_in_card(folder: Path, key: str) -> str | None:
    """Returns what the front matter of a model folder's card says under a key, None if nothing."""
    try:
        card = (folder / _CARD).read_text("utf-8")
    except (OSError, ValueError):
        return None
    matter = _FRONT_MATTER.match(card)
    return dict(_STATED.findall(matter[1])).get(key) or None if matter else None
