"""Writes MODEL_CARD.md, the description of a model for people and for model hubs.

A card states the terms of a model, which follow from its training data. Its front matter is YAML.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from rejoinder.datasets.catalogue import (
    NOT_STATED,
    DataRow,
    DataSet,
    Licence,
    catalogue,
    licence_of_file,
    licence_of_source,
)
from rejoinder.io.files.hashed import decoded
from rejoinder.models.adaptation import source_of
from rejoinder.text.features import SPELT_RULES

FILE = "MODEL_CARD.md"
UNNAMED = "path/to/this/folder"
"""The path in a card's examples for a model that is not installed."""
_TEXT = Path(__file__).parent.parent / "data" / "model_card.toml"
_OTHER_NAMES = {"sts17": "sts2017", "cqa16": "cqa2016", "cqa17": "cqa2017"}
"""Sets of the catalogue that have another name in the list of leak sets."""

_LARGEST = 20
"""Number of sources of unknown licence that a card lists: a dump has thousands of subreddits."""
_FRONT_MATTER = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_STATED = re.compile(r"""^(\w+): *+["']?(.*?)["']?(?<! ) *$""", re.MULTILINE)
_OTHER_MODEL = Licence("see that model")
LANGUAGE_NAMES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French",
    "hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "tr": "Turkish", "zh": "Chinese",
}  # fmt: skip


@dataclass(frozen=True)
class Terms:
    """The terms of a model."""

    id: str
    """`cc-by-sa-4.0`, `non-commercial-research` or `not-stated`."""
    title: str
    """The terms in a few words."""
    reason: str
    """The reason for these terms."""
    rows: tuple[DataRow, ...]
    """The training data of the model: sources of conversations and files, the largest first."""

    @property
    def closed(self) -> list[DataRow]:
        """The rows with a licence that is not open or not known."""
        return [row for row in self.rows if not row.licence.open]


@dataclass(frozen=True)
class Measured:
    """Facts that a model card adds to `config.json`: results and times, which vary between runs."""

    results: str = ""
    """Tables of results, as Markdown."""
    index: Sequence[Mapping[str, Any]] = ()
    """The results as `model-index` of the front matter lists them."""
    machine: str = ""
    """The machine that the model was trained on."""
    minutes: float | None = None
    """Minutes of training."""


@dataclass(frozen=True)
class Use:
    """How to use a folder for another library, for its card."""

    library: str
    """The library that loads it, by its name on model hubs."""
    python: str
    """Lines of Python that load it and compare two sentences."""
    file: str = "README.md"
    """Name of the card in the folder."""


def model_card(
    config: Mapping[str, Any],
    measured: Measured = Measured(),
    use: Use | None = None,
    *,
    name: str = UNNAMED,
) -> str:
    """Returns the model card: YAML front matter and Markdown, from the content of `config.json`.

    The same arguments give the same text. `use` is for the card of a folder for another library,
    `name` for the card of an installed model.
    """
    text, training = _text(), config.get("training") or {}
    terms = terms_of(training_rows(training, config.get("adaptation")))
    adds_vectors = config["encoder"]["kind"] == "dan" and not config["text"].get("bigram_buckets")
    known = languages_of(training)
    if use is None:
        use = Use("rejoinder", text["python"].format(path=json.dumps(name)).strip(), FILE)
    parts = [
        f"---\n{yaml_text(_front_matter(config, terms, measured, use))}---\n",
        text["head"].format(
            name=_cell(config["name"]),
            python=use.python,
            version=config["rejoinder_version"],
            language=_names(known) if known else "the language of its training data",
            terms=f"{terms.title}: {terms.reason}",
        ),
        "## What it is\n",
        _table(("", ""), _facts(config, training, measured)),
        "## Training data\n",
        *_data(training, terms.rows, text["data_note"]),
        "## Evaluation sentences\n",
        "\n".join(_leaks(training)) + "\n",
        "## Results\n",
        measured.results.strip() + "\n" if measured.results else text["no_results"],
        text["limits"].format(
            order=text["no_order" if adds_vectors else "order"].rstrip(),
            misspelt="badly misspelt" if config["text"]["rules"] in SPELT_RULES else "misspelt",
        ),
        "## Licence\n",
        text["licences"][terms.id],
        *_attribution(terms.rows),
        *_config(training),
        text["tail"],
    ]
    return "\n".join(parts)


@cache
def _text() -> Mapping[str, Any]:
    """Returns the sentences that many models share."""
    return tomllib.loads(_TEXT.read_text("utf-8"))


def _names(languages: Sequence[str]) -> str:
    """Returns the names of languages: `English`, or `English, Spanish and Turkish`."""
    names = [LANGUAGE_NAMES.get(code, code) for code in languages]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _front_matter(
    config: Mapping[str, Any], terms: Terms, measured: Measured, use: Use
) -> dict[str, Any]:
    """Returns the keys that model hubs read."""
    matter: dict[str, Any] = {}
    if languages := languages_of(config.get("training") or {}):
        matter["language"] = languages[0] if len(languages) == 1 else languages
    if terms.id == "cc-by-sa-4.0":
        matter["license"] = terms.id
    else:
        matter |= {"license": "other", "license_name": terms.id, "license_link": use.file}
    matter["library_name"] = use.library
    matter["pipeline_tag"] = "sentence-similarity"
    matter["tags"] = [
        "sentence-similarity", "feature-extraction", "sentence-embeddings", "rejoinder",
        config["encoder"]["kind"],
    ]  # fmt: skip
    hub = sorted({row.licence.hub for row in terms.rows if row.licence.hub})
    if hub:
        matter["datasets"] = hub
    if measured.index:
        matter["model-index"] = [{"name": config["name"], "results": list(measured.index)}]
    return matter


def _facts(
    config: Mapping[str, Any], training: Mapping[str, Any], measured: Measured
) -> Iterator[tuple[str, str]]:
    yield "encoder", _sizes(config["encoder"])
    yield "text", _sizes(config["text"])
    yield "heads", ", ".join(config["heads"])
    yield "training pairs", f"{training.get('pairs') or 0:,}"
    yield "steps, seed", f"{training.get('steps', '?')}, {training.get('seed', '?')}"
    if phases := _of_config(_Phases, training).phases:
        shown = (f"{phase.steps} steps of {phase.batch_size} pairs" for phase in phases)
        yield "phases", ", then ".join(shown)
    if config.get("adaptation") is not None:
        facts = config["adaptation"]
        yield "adapted on", f"{source_of(facts)}, {facts.get('pairs') or 0:,} pairs"
    if config.get("export") is not None:
        yield "exported from", _exported(config["export"])
    if measured.machine:
        yield "trained on", measured.machine
    if measured.minutes is not None:
        yield "minutes of training", f"{measured.minutes:.1f}"


def _exported(facts: Mapping[str, Any]) -> str:
    """Describes the model that a smaller model was made from."""
    kept = {"dtype": "weights", "dim": "dimensions", "max_words": "words",
            "unknown_buckets": "buckets of unknown words",
            "letter_buckets": "buckets of letters"}  # fmt: skip
    options = [f"{facts[key]} {what}" for key, what in kept.items() if facts.get(key) is not None]
    if (spelling := facts.get("spelling")) is not None:
        options.append("misspelt words read as known ones" if spelling else "spelling as it is")
    if facts.get("saturation") is not None:
        options.append(f"long rows shortened with K = {facts['saturation']:g}")
    dropped = [f"without the head of {head}" for head in facts["dropped"]]
    source = facts["from"]
    return ", ".join([source["name"], f"SHA-256 {source['sha256'][:12]}", *options, *dropped])


def _shown(rows: Sequence[DataRow]) -> list[DataRow]:
    """Returns the rows with small sources of unknown licence combined into one row."""
    unknown = [row for row in rows if row.kind == "source" and not row.licence.known]
    rest = unknown[_LARGEST:]
    if not rest:
        return list(rows)
    name = f"{len(rest):,} other sources"
    total = sum(row.rows or 0 for row in rest)
    return [*(row for row in rows if row not in rest), replace(rest[0], name=name, rows=total)]


def _data(training: Mapping[str, Any], rows: Sequence[DataRow], note: str) -> Iterator[str]:
    """Yields the table of training data, and what was left out."""
    if not rows:
        yield "Not recorded.\n"
        return
    yield note
    yield _table(
        ("kind", "name", "rows", "licence", "open", "taken from", "cite"),
        (
            (
                row.kind,
                row.name,
                row.detail or ("?" if row.rows is None else f"{row.rows:,}"),
                str(row.licence),
                "yes" if row.licence.open else "no",
                row.licence.origin,
                row.licence.citation,
            )
            for row in _shown(rows)
        ),
    )
    left_out = training.get("sources_left_out") or {}
    if left_out:
        names, pairs = [*left_out], sum(left_out.values())
        more = f", and {len(names) - _LARGEST:,} other sources" if len(names) > _LARGEST else ""
        listed = _cell(", ".join(names[:_LARGEST]) + more)
        yield f"Left out by choice: {pairs:,} pairs of {listed}.\n"


def _leaks(training: Mapping[str, Any]) -> Iterator[str]:
    """Yields sentences on dropped leaks, by set if that was counted, and on unchecked sets."""
    sets = training.get("leak_sets") or []
    if sets:
        count = training.get("leaks_dropped") or 0
        files = training.get("labelled") or {}
        rows = sum(file.get("leaks") or 0 for file in files.values())
        yield (
            f"{count:,} pairs and rows with a sentence of {', '.join(map(_cell, sets))} were left "
            f"out of training: {count - rows:,} pairs, and {rows:,} rows of labelled files."
        )
    by_set = training.get("leaks_by_set")
    if by_set:
        counts = ", ".join(f"{_cell(name)} {count:,}" for name, count in by_set.items())
        yield f"The pairs by set (a pair can count for several): {counts}."
    others = filter(None, (_unchecked(each, sets) for each in catalogue().sets.values()))
    yield f"Training data was not checked for sentences of: {', '.join(others) or 'none'}."


def _unchecked(dataset: DataSet, sets: Sequence[str]) -> str:
    """Returns the name of a data set, and its quoted splits that are not among the leak sets."""
    name = _OTHER_NAMES.get(dataset.id, dataset.id)
    quoted = [split for split in dataset.splits if split in ("dev", "test", "all")]
    absent = [split for split in quoted if f"{name}-{split}" not in sets]
    if name in sets or not absent or {"probing", "recipes"} & {*dataset.groups}:
        return ""
    return dataset.name + (f" ({', '.join(absent)})" if absent != quoted else "")


def _attribution(rows: Sequence[DataRow]) -> Iterator[str]:
    """Yields the list of the authors of all openly licensed data."""
    licences = (row.licence for row in rows if row.licence.open)
    named = [f"- {_cell(licence.citation)} ({licence.licence})" for licence in licences]
    if named:
        yield "Attribution, for the openly licensed part of the data:\n"
        yield "\n".join(dict.fromkeys(named)) + "\n"


def _config(training: Mapping[str, Any]) -> Iterator[str]:
    if training.get("config"):
        text = json.dumps(training["config"], indent=1, ensure_ascii=False)
        yield f"## Config\n\n```json\n{text}\n```\n"


def _table(columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Returns text on one line, escaped so that it does not end a cell or become HTML."""
    return " ".join(text.split()).replace("|", "/").replace("<", "&lt;")


def _sizes(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items())


_Part = TypeVar("_Part")


class _File(Struct, frozen=True):
    where: dict[str, str] = {}


class _Task(Struct, frozen=True):
    data: list[_File] = []


class _Phase(Struct, frozen=True):
    steps: int | None = None
    batch_size: int | None = None


class _Start(Struct, frozen=True):
    init_from: str = ""


class _Tasks(Struct, frozen=True):
    """The part of a run's config with the languages of the rows that its tasks choose."""

    tasks: list[_Task] = []


class _Phases(Struct, frozen=True):
    phases: list[_Phase] = []


class _Training(Struct, frozen=True):
    training: _Start = _Start()


def _of_config(kind: type[_Part], training: Mapping[str, Any]) -> _Part:
    """Returns a part of a run's config; an empty part if this version does not know its form."""
    try:
        return decoded(kind, training.get("config", {}))
    except ValueError:
        return kind()


def training_rows(
    training: Mapping[str, Any], adaptation: Mapping[str, Any] | None = None
) -> list[DataRow]:
    """Returns the training data of a model, from `training` and `adaptation` of its config.json.

    This includes the training data of the model that training started from.
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
    elif name := _of_config(_Training, training).training.init_from:
        rows.append(DataRow("model", name, _OTHER_MODEL))
    if adaptation is not None:
        licence = licence_of_file(str((adaptation.get("data") or {}).get("name", "")))
        rows.append(DataRow("adaptation", source_of(adaptation), licence, adaptation.get("pairs")))
    return rows


def _file_row(path: str, facts: Mapping[str, Any]) -> DataRow:
    rows: Mapping[str, int] = facts.get("rows") or {}
    detail = ", ".join(f"{task} {count:,}" for task, count in rows.items())
    return DataRow("file", path, licence_of_file(path), max(rows.values(), default=None), detail)


def terms_of(rows: Sequence[DataRow]) -> Terms:
    """Returns the terms that follow from the licences of the data.

    Open data only: CC BY-SA 4.0, which the licences of all open data in the table allow. Any data
    with a stated licence that is not open, or with none: non-commercial research. Otherwise, with
    data that is not in the table, or with no data at all: not stated.
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

    `training` is the table of `config.json`. Empty if its data is not known here. For data in two
    languages, the config chooses rows by their `lang`, such as `en-tr`; all other data is English.

    >>> files = [{"path": "parallel/tldr.jsonl.zst", "where": {"lang": "en-tr"}}]
    >>> labelled = {"parallel/tldr.jsonl.zst": {"rows": {"turkish": 9}}}
    >>> languages_of({"labelled": labelled, "config": {"tasks": [{"data": files}]}})
    ['en', 'tr']
    """
    if not any(row.licence.known for row in training_rows(training, None)):
        return []
    files = (file for task in _of_config(_Tasks, training).tasks for file in task.data)
    codes = {code for file in files for code in file.where.get("lang", "en").split("-")}
    return ["en", *sorted(codes - {"en"})]


def licence_of(folder: Path) -> str | None:
    """Returns the licence in the card of a model folder, or None.

    `license_name` takes precedence over `license`, which is `other` if there is a name.
    """
    return stated_in_card(folder, "license_name") or stated_in_card(folder, "license")


def stated_in_card(folder: Path, key: str) -> str | None:
    """Returns the value of a key in the front matter of a model folder's card, or None."""
    try:
        card = (folder / FILE).read_text("utf-8")
    except (OSError, ValueError):
        return None
    matter = _FRONT_MATTER.match(card)
    return dict(_STATED.findall(matter[1])).get(key) or None if matter else None


def yaml_text(tree: Mapping[str, Any]) -> str:
    r"""Returns a mapping of strings, numbers, booleans, lists and mappings as a YAML block.

    Keys are written as they are. Strings are quoted, in the form that JSON and YAML share.

    >>> print(yaml_text({"tags": ["a: b"], "results": [{"split": "dev", "value": 0.5}]}), end="")
    tags:
    - "a: b"
    results:
    - split: "dev"
      value: 0.5
    """
    return "".join(f"{line}\n" for line in _mapping(tree))


def _mapping(tree: Mapping[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield f"{key}:"
            yield from (f"  {line}" for line in _mapping(value))
        elif isinstance(value, list | tuple) and value:
            yield f"{key}:"
            yield from _items(value)
        else:
            yield f"{key}: {_scalar(value)}"


def _items(values: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *rest = _mapping(value)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        else:
            yield f"- {_scalar(value)}"


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as a string
    # YAML forbids some of the characters that JSON allows, and folds lines at others
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
