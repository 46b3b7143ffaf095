"""Writes explored conversations as one HTML file that can be searched without a server.

The file is the page of the server. `offline.js` answers its requests from columns: base64 of gzip,
each in a `<script>` that is not run. Message vectors are not stored: they are sums of rows of the
model, so storing the row numbers takes a fiftieth of the space, and gives the same cosines.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from zlib import DEFLATED, Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, compressobj

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations import explore
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.explore import Prepared, Watch
from rejoinder.conversations.pseudonyms import Pseudonyms
from rejoinder.corpus.core_text import Repeated, core_of
from rejoinder.corpus.texts import Entry
from rejoinder.encoders.layers import BagSums, quantize_rows, scales_name
from rejoinder.errors import InputError
from rejoinder.index.fields import asks_of, refuse_unmet
from rejoinder.index.files import WEIGHT
from rejoinder.index.folder import TextIndex
from rejoinder.index.indexing import Index, place_of_model
from rejoinder.index.ranking import date_rules
from rejoinder.index.reader import between_two
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.where import conditions_of
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.claims import refuse_inputs
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.storage import scratch_folder
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.text.features import NumberedWords, WordFeatures
from rejoinder.text.languages import stemmer, with_digits_in_words
from rejoinder.text.normalize import is_punctuation
from rejoinder.text.ragged import Ragged
from rejoinder.text.readings import read_lists
from rejoinder.text.vocabulary import with_letters

_FREQUENT = 15_000
"""Number of the model's words whose rows are included even if no message uses them: a query may."""
_COMMON = 300
"""Number of the model's most frequent words, which are rarely meant as a name in a text."""
_TABLE = "encoder.table.weight"
_NAMED = ("author", "source", "thread", "title")

Column = tuple[str, bytes]
"""The kind by which `offline.js` reads a column, and its bytes."""
Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Choice:
    """Which messages to write, and how."""

    only: Sequence[str] = ()
    """Channels to write; empty: all."""
    without_private: bool = False
    """Whether to leave out channels of at most two authors, such as direct messages."""
    pseudonyms: bool | None = None
    """Whether to replace names by pseudonyms. None: if there are messages of such channels."""


@dataclass(frozen=True)
class Written:
    """What was written."""

    messages: int
    private: int
    """Number of messages in channels of at most two authors."""
    pseudonyms: bool


def write_one_file(
    prepared: Prepared, out: Path, name: str, choice: Choice, watch: Watch
) -> Written:
    """Writes explored conversations as one HTML file.

    Args:
        prepared: Result of `explore`.
        out: The file to write; an existing one is replaced.
        name: Title of the conversations on the page.
        choice: Which messages, and how. If it changes the messages, they are explored again.
        watch: Called with the progress of that.

    Raises:
        InputError: the model is not a sum of word rows, the index is damaged, or it has no
            messages in a channel.
        StorageError: the file can't be written.
    """
    refuse_inputs(out, [prepared.index, prepared.folder])
    index = TextIndex(prepared.index)
    model = place_of_model(index)
    features = _features(read_model(model), index)
    wanted = {"source": list(choice.only)} if choice.only else {}
    refuse_unmet(conditions_of(wanted), [one.fields for one in index.segments if one.fields])
    collection = open_collection(prepared.index, where=wanted)
    two = between_two(index.segments)
    private = [source in two for source in collection.column("source")]
    kept = [row for row, one in enumerate(private) if not (one and choice.without_private)]
    if not kept:
        raise InputError(f"{name} has only private messages; nothing is written.")
    left = sum(private[row] for row in kept)
    hidden = left > 0 if choice.pseudonyms is None else choice.pseudonyms
    written = Written(len(kept), left, hidden)
    if len(kept) == len(index) and not hidden:
        write_text(out, _page(prepared, name))
        return written
    every = list(map(Entry, collection.ids, collection.texts, collection.about, collection.cores))
    entries = [every[row] for row in kept]
    if hidden:
        people = [author for one in entries if (author := one.about.get("author"))]
        hide = Pseudonyms(people, common=frozenset(features.vocabulary.words[:_COMMON]))
        entries, name = hide.entries(entries), hide(name)
    with scratch_folder() as scratch:
        Index.create(scratch / explore.INDEX, entries, model, progress=watch.indexing)
        again = explore.explore(scratch / explore.INDEX, out=scratch / "explored", watch=watch)
        write_text(out, _page(again, name))
    return written


def _page(prepared: Prepared, name: str) -> str:
    """Returns the page with the explored conversations."""
    index = TextIndex(prepared.index)
    model = read_model(place_of_model(index))
    features = _features(model, index)
    parts = list(index.encoded())
    rows, used = _rows(parts, model, features)
    known = {
        "buckets": features.letter_buckets,
        "arabic": features.arabic_letter_buckets,
        "folds": features.fold_marks,
        "corrects": features.spelling == "likely",
        "width": model.dim,
        "used": used,
        "weight": WEIGHT if index.manifest.language is None else index.manifest.weight,
        "are_known": any(part.about for part in parts),
    }
    columns = {
        **_messages(parts),
        **_words(parts, features, index.manifest.language or ""),
        **_explored(prepared.folder),
        **rows,
        "model": _json(known),
        "dates": _json(date_rules()),
        "facts": _json(_facts(prepared, index, model, name)),
    }
    return _with_columns(name, columns)


def _features(model: ModelContents, index: TextIndex) -> WordFeatures:
    """Returns the features of a model that the page can compute.

    Raises:
        InputError: the page can't compute it.
    """
    features = model.features
    if (
        not isinstance(features, WordFeatures)
        or not model.is_sum_of_rows
        or model.adaptation is not None
        or index.manifest.response
        or features.spelling == "nearest"
        or features.buckets
        or features.unknown_buckets
    ):
        raise InputError(
            f"{model.name} can't search in one file, as rejoinder-base can; leave out `model`."
        )
    return features


def _messages(parts: Sequence[EncodedTexts]) -> dict[str, Column]:
    """Returns the texts of the messages and what is known about them."""
    ids = [str(name) for part in parts for name in part.ids]
    about = [one for part in parts for one in part.known]
    rows = {name: row for row, name in enumerate(ids, 1)}
    columns = {
        "ids": _json(ids),
        "texts": _json([text for part in parts for text in part.texts]),
        "times": _floats([one.get("time", np.nan) for one in about], "<f8"),
        "links": _json([one.get("link", "") for one in about]),
        "answers": _varint([rows.get(one.get("answers", ""), 0) for one in about]),
        "confidence": _varint([round(100 * one.get("confidence", 0)) for one in about]),
    }
    for key in _NAMED:
        numbers = {"": 0}
        of_each = [numbers.setdefault(one.get(key, ""), len(numbers)) for one in about]
        columns |= {f"{key}s": _varint(of_each), f"{key}_names": _json(list(numbers))}
    return columns


def _words(
    parts: Sequence[EncodedTexts], features: WordFeatures, language: str
) -> dict[str, Column]:
    """Returns the stems of words, with the messages and counts of each, as in `index.words`."""
    texts = [with_digits_in_words(text) for part in parts for text in part.searched]
    numbered = NumberedWords()
    found = numbered(texts)
    written, known = numbered.since(0), features.vocabulary.words
    others = [word for word in written if word not in features.vocabulary.index]
    stems = stemmer(language)([*known, *others])
    numbers: dict[str, int] = {}
    for stem in stems:
        numbers.setdefault(stem, len(numbers))
    stem_of = dict(zip([*known, *others], stems, strict=True))
    times = dict(zip(written, np.bincount(found.ids, minlength=len(written)).tolist(), strict=True))
    searched = [-1 if is_punctuation(word) else numbers[stem_of[word]] for word in written]
    found = Ragged(np.array([*searched, -1])[found.ids], found.offsets)
    found = found.only(found.ids >= 0)
    owners = np.repeat(np.arange(len(texts)), found.lengths)
    pairs, counts = np.unique(found.ids * len(texts) + owners, return_counts=True)
    words, rows = np.divmod(pairs, max(len(texts), 1))
    gaps = np.diff(rows, prepend=-1) - 1
    begins = np.flatnonzero(np.diff(words, prepend=-1))
    gaps[begins] = rows[begins]
    return {
        "words": _json(known),
        "spellings": _json(others),
        "stems": _json(stems),
        "spelt": _varint([times.get(word, 0) for word in (*known, *others)]),
        "having": _varint(np.bincount(words, minlength=len(numbers))),
        "having_rows": _varint(gaps),
        "having_times": _varint(counts),
        "lengths": _varint(found.lengths),
        "asks": _varint([asks_of(text) for part in parts for text in part.texts]),
    }


def _rows(
    parts: Sequence[EncodedTexts], model: ModelContents, features: WordFeatures
) -> tuple[dict[str, Column], int]:
    """Returns the rows of the model that are needed, and the rows of each message.

    Rows used by messages come first; their number is also returned. A message is a list of terms; a
    term is the row of a known word, or the rows of the letters of an unknown one.
    """
    texts = features.texts(_encoded(parts, SentenceEncoder(model)))
    batch, unknown, _ = features.word_ids.read(texts)
    words = iter(unknown)
    pairs = [(one, "" if one >= 0 else next(words)) for one in batch.ids.tolist()]
    terms = {pair: number for number, (pair, _) in enumerate(Counter(pairs).most_common())}
    of_terms = with_letters(
        Ragged(np.array([one for one, _ in terms], np.int32), np.arange(len(terms) + 1)),
        [word for _, word in terms if word], len(features.vocabulary), features.letter_buckets,
        features.arabic_letter_buckets,
    )  # fmt: skip
    first = np.unique(of_terms.ids)
    letters = np.arange(len(features.vocabulary), features.words)
    frequent = np.arange(min(_FREQUENT, len(features.vocabulary)))
    rest = [*frequent, *(letters if len(letters) < _FREQUENT else ())]
    ids = np.concatenate([first, np.setdiff1d(rest, first)]).astype(np.int64)
    table, scales = model.tensors[_TABLE], model.tensors.get(scales_name(_TABLE))
    if scales is None:
        table, scales = quantize_rows(table)
    norms = np.linalg.norm(BagSums(table, scales)(features(texts)), axis=1)
    lists = read_lists()
    own = lists.own.astype(np.int64)
    columns = {
        "row_ids": _varint(ids),
        "rows": ("i1", np.ascontiguousarray(table[ids]).tobytes()),
        "scales": _floats(scales[ids], "<f4"),
        "term_sizes": _varint(of_terms.lengths),
        "term_rows": _varint(np.searchsorted(first, of_terms.ids)),
        "message_sizes": _varint(batch.lengths),
        "message_terms": _varint([terms[pair] for pair in pairs]),
        "norms": _floats(norms, "<f4"),
        "misspelt": _json(list(lists.misspelt.items())),
        "own": _varint(np.append(own[:1], own[1:] - own[:-1])),
    }
    return columns, len(first)


def _encoded(parts: Sequence[EncodedTexts], encoder: SentenceEncoder) -> list[str]:
    """Returns the text that was encoded for each message.

    The index keeps only complete texts. What was cut from them (`corpus.core_text`) depends on
    other texts, so this takes the candidate whose embedding is nearest.
    """
    repeated, taken = Repeated(), list[str]()
    for part in parts:
        ways: list[list[str]] = [[], [], []]
        for text, one in zip(part.texts, part.known, strict=True):
            author, title = one.get("author", ""), one.get("title")
            cut = core_of(repeated.seen(text).cut(text), author)
            for way, said in zip(ways, (cut, core_of(text, author), text), strict=True):
                way.append(f"{title}. {said}" if title else said)
        near = [np.einsum("nd,nd->n", encoder.encode(way), part.embeddings) for way in ways]
        best = np.argmax(np.round(near, 5), axis=0)
        taken += [ways[way][at] for at, way in enumerate(best.tolist())]
    return taken


def _explored(folder: Path) -> dict[str, Column]:
    return {
        "asked": ("json", (folder / explore.ASKED).read_bytes()),
        "topics": ("json", (folder / explore.TOPICS).read_bytes()),
        "points": ("bytes", (folder / explore.POINTS).read_bytes()),
        "point_ids": _json(explore.read_facts(folder).ids),
    }


def _facts(prepared: Prepared, index: TextIndex, model: ModelContents, name: str) -> dict[str, Any]:
    """Returns the fields of `/info` and `/corpus` that the page reads."""
    read = explore.read_facts(prepared.folder).read
    corpus = {**vars(index.summary()), "name": name, "read": read, "found": ["asked", "topics"]}
    about = {"corpus": True, "dim": model.dim, "explains": True, "ranks": False, "offline": True}
    return {"info": {"model_id": model.name, "rejoinder": about}, "corpus": corpus}


def _json(value: Any) -> Column:
    return "json", msgspec.json.encode(value)


def _floats(values: Sequence[float] | NDArray[Any], dtype: str) -> Column:
    return dtype[1:], np.asarray(values, dtype).tobytes()


def _varint(values: Sequence[int] | Numbers) -> Column:
    """Returns non-negative integers, seven bits per byte, lowest first (LEB128)."""
    left = np.asarray(values, np.int64)
    bytes_, kept = np.zeros((len(left), 5), np.uint8), np.zeros((len(left), 5), np.bool_)
    for at in range(5):
        kept[:, at] = (left > 0) | (at == 0)
        bytes_[:, at] = (left & 127) | ((left > 127) << 7)
        left = left >> 7
    return "varint", bytes_[kept].tobytes()


def _packed(kind: str, content: bytes) -> str:
    # zlib's search for repetitions makes rows larger
    strategy = Z_HUFFMAN_ONLY if kind == "i1" else Z_DEFAULT_STRATEGY
    packer = compressobj(9, DEFLATED, 31, 9, strategy)
    return b64encode(packer.compress(content) + packer.flush()).decode()


_IMPORT = re.compile(r'^import \{ ([^}\n]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_SERVED = re.compile(r'^<(?:link rel="(?:icon|stylesheet)"|script ).*\n', re.MULTILINE)
"""Matches what the server's page loads."""
_LIBRARIES = ("graphology.umd.min.js", "sigma.min.js")


def _with_columns(name: str, columns: dict[str, Column]) -> str:
    """Returns the page with its scripts, its style and columns."""
    folder = files("rejoinder").joinpath("serve", "page")

    def read(file: str) -> str:
        return folder.joinpath(file).read_text("utf-8")

    icon = f"data:image/svg+xml;base64,{b64encode(read('icon.svg').encode()).decode()}"
    style, scripts = read("style.css"), [*map(read, _LIBRARIES), _bundled(read)]
    if "</" in style or re.search("</script|<!--", "".join(scripts), re.IGNORECASE):
        raise AssertionError("the page's own files would end their element")
    allowed = "; ".join([
        "default-src 'none'", f"script-src {' '.join(map(_hash_of, scripts))}",
        f"style-src {_hash_of(style)}",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'
        f'<link rel="icon" href="{icon}">\n<style>{style}</style>\n'
    )
    data = "".join(
        f'<script type="text/plain" data-column="{key}" data-kind="{kind}">'
        f"{_packed(kind, content)}</script>\n"
        for key, (kind, content) in columns.items()
    )
    page = _SERVED.sub("", read("index.html")).replace("page/icon.svg", icon)
    page = page.replace("<title>rejoinder</title>\n", f"<title>{escape(name)}</title>\n{head}")
    *libraries, own = scripts
    # only the map runs them, as they need WebGL and start drawing
    kept = [f'<script type="text/plain" data-library>{one}</script>\n' for one in libraries]
    return page.replace("</body>", f"{''.join(kept)}{data}<script>{own}</script>\n</body>")


def _hash_of(content: str) -> str:
    return f"'sha256-{b64encode(bytes.fromhex(sha256_of(content.encode()))).decode()}'"


def _bundled(read: Callable[[str], str]) -> str:
    """Returns the page's modules as one script, each after the modules that it imports."""
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        source = read(f"{name}.js").replace('"./api.js"', '"./offline.js"')
        for found in _IMPORT.finditer(source):
            add(found[2])
        exported = ", ".join(_EXPORT.findall(source))
        body = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = \2_;\n", source))
        modules[name] = f"const {name}_ = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"

    add("page")
    return '(() => {\n"use strict";\n' + "".join(modules.values()) + "})();\n"
