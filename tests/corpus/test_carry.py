"""Extraction month by month: the union of the pairs is what one extraction of all dumps gives."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dumps import comment, lines
from rejoinder.corpus.engines.local import engine as local
from rejoinder.corpus.engines.local import join, store
from rejoinder.corpus.extract import extract
from rejoinder.corpus.manifest import Carried, Manifest
from rejoinder.corpus.writer import COLUMNS, read_manifest
from rejoinder.errors import BusyError, InputError
from rejoinder.io.files import atomic
from rejoinder.io.files.hashed import sealed

Tree = dict[str, bytes]

MARCH = lines(
    comment("a", "How are you today?"),
    comment("b", "Fine, thank you", "t1_a"),
    comment("x", "[deleted]"),
)
APRIL = lines(
    comment("c", "That is good to hear", "t1_b"),
    comment("d", "What was it about?", "t1_x"),
    comment("e", "Who has said so?", "t1_w"),
    comment("f", "Glad to hear it", "t1_c"),
)
MAY = lines(comment("w", "It was somebody else"))


@pytest.fixture(scope="module", autouse=True)
def few_batches() -> Iterator[None]:
    """Files of two batches a part: 512 batches, most of them empty, take half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "BITS", local._PARTS[0] + 1)
        yield


@pytest.fixture
def all_batches(few_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of as many batches as those of the command."""
    monkeypatch.setattr(store, "BITS", local._PARTS[1])


def tree_of(folder: Path) -> Tree:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rows_of(*folders: Path) -> list[tuple[Any, ...]]:
    """The pairs of folders, in any order but sorted here."""
    shards = [path for folder in folders for path in folder.glob("*.parquet")]
    frames = [pl.read_parquet(path).select(COLUMNS) for path in shards]
    return sorted(row for frame in frames for row in frame.iter_rows())


def check_counts(manifest: Manifest) -> None:
    """Every comment has one fate."""
    counts, carry = manifest.counts, manifest.carry
    assert counts.lines == counts.malformed + counts.comments
    gone = counts.duplicates + counts.conflicts
    assert counts.comments == gone + sum(counts.dropped.values()) + counts.kept
    lost = counts.without_parent + counts.parent_not_found + counts.parent_dropped
    assert counts.kept == lost + counts.pairs - carry.replies
    assert counts.capped == 0
    assert carry.messages + carry.replies <= counts.pairs


def write_dumps(folder: Path) -> Path:
    for name, content in (("march", MARCH), ("april", APRIL), ("may", MAY)):
        (folder / f"{name}.jsonl").write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three dumps."""
    return write_dumps(tmp_path)


def go(folder: Path, name: str, **options: Any) -> Manifest:
    """Extract a dump of the folder with what its `state` holds."""
    options = {"carry": folder / "state", **options}
    manifest = extract(folder / f"{name}.jsonl", folder / f"pairs-{name}", **options)
    check_counts(manifest)
    assert read_manifest(folder / f"pairs-{name}").carry == manifest.carry
    return manifest


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folder after one extraction, after two, and after three."""
    stages = []
    work = write_dumps(tmp_path_factory.mktemp("work"))
    for name in ("march", "april", "may"):
        go(work, name)
        stages.append(tmp_path_factory.mktemp("stages") / name)
        shutil.copytree(work, stages[-1])
    return stages


@pytest.fixture
def one(extracted: list[Path], tmp_path: Path) -> Path:
    """A copy of the folder after the extraction of March."""
    return shutil.copytree(extracted[0], tmp_path / "one")


@pytest.fixture
def two(extracted: list[Path], tmp_path: Path) -> Path:
    """A copy of the folder after those of March and April."""
    return shutil.copytree(extracted[1], tmp_path / "two")


@pytest.fixture
def three(extracted: list[Path], tmp_path: Path) -> Path:
    """A copy of the folder after three extractions."""
    return shutil.copytree(extracted[2], tmp_path / "three")


def test_replies_find_their_messages_in_earlier_dumps_and_later_ones(folder):
    first, second, third = (go(folder, name) for name in ("march", "april", "may"))
    assert (first.counts.pairs, second.counts.pairs, third.counts.pairs) == (1, 2, 1)
    assert first.carry == Carried(increment=1, comments=0, messages=0, replies=0, overruled=0)
    assert second.carry == Carried(increment=2, comments=3, messages=1, replies=0, overruled=0)
    assert third.carry == Carried(increment=3, comments=7, messages=0, replies=1, overruled=0)
    assert (second.counts.parent_dropped, second.counts.parent_not_found) == (1, 1)
    assert third.counts.without_parent == 1
    extract([folder / f"{name}.jsonl" for name in ("march", "april", "may")], folder / "whole")
    parts = [folder / f"pairs-{name}" for name in ("march", "april", "may")]
    assert rows_of(*parts) == rows_of(folder / "whole")


def test_a_month_without_pairs_is_carried(folder):
    assert go(folder, "may").counts.pairs == 0
    assert go(folder, "april").carry.messages == 1
    assert rows_of(folder / "pairs-may") == []
    (folder / "empty.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="no comments in empty"):
        go(folder, "empty")
    assert len(list((folder / "state").iterdir())) == 2


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("order", "batches"),
    [
        pytest.param((0, 1, 2, 3), "all_batches", marks=pytest.mark.slow),
        pytest.param((2, 0, 3, 1), "few_batches", marks=pytest.mark.slow),
    ],
)
def test_real_months_give_the_pairs_of_one_extraction(
    tmp_path, shared_data, order, batches, request
):
    request.getfixturevalue(batches)
    dumps = sorted((shared_data / "raw_reddit").iterdir())
    whole = extract(dumps, tmp_path / "whole")
    state, manifests = tmp_path / "state", []
    for month in order:
        out = tmp_path / f"pairs-{month}"
        manifests.append(extract(dumps[month], out, carry=state, memory="150MB"))
        check_counts(manifests[-1])
    assert rows_of(*(tmp_path / f"pairs-{month}" for month in order)) == rows_of(tmp_path / "whole")
    total = Counter()
    for manifest in manifests:
        total.update(comments=manifest.counts.comments, kept=manifest.counts.kept)
        total.update(pairs=manifest.counts.pairs, alone=manifest.counts.without_parent)
    found = whole.counts
    expected = (found.comments, found.kept, found.pairs, found.without_parent)
    assert (total["comments"], total["kept"], total["pairs"], total["alone"]) == expected
    assert sum(one.carry.messages + one.carry.replies for one in manifests) > 0
    assert sum(one.carry.overruled for one in manifests) == 0


TEXTS = ("How are you today?", "[deleted]", "Fine, thank you", "Größe &amp; Maß", "12345")


@st.composite
def months(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Comments in a few threads, each in one month or repeated in others, maybe changed."""
    files: list[list[dict[str, Any]]] = [[] for _ in range(draw(st.integers(2, 4)))]
    month = st.integers(0, len(files) - 1)
    made: dict[str, list[str]] = {}
    for number in range(draw(st.integers(4, 24))):
        thread = draw(st.sampled_from("pqr"))
        above = [*made.setdefault(thread, []), "lost"]
        parent = draw(st.sampled_from([f"t3_{thread}", *(f"t1_{name}" for name in above)]))
        name = f"c{number}"
        made[thread].append(name)
        text = draw(st.sampled_from(TEXTS))
        one = comment(name, text, parent, link_id=f"t3_{thread}")
        files[draw(month)].append(one)
        if draw(st.integers(0, 9)) > 7:
            other = draw(st.sampled_from(TEXTS)) if draw(st.booleans()) else text
            files[draw(month)].append({**one, "body": other})
    return draw(st.permutations([file for file in files if file]))


CHANGED_ALONE = [
    [comment("a", "How are you today?"), comment("b", "[deleted]", "t1_a")],
    [comment("b", "How are you today?", "t1_a")],
]
"""The second month is refused, though one extraction of both finds a pair."""


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(files=months())
@example(files=CHANGED_ALONE)
def test_any_months_give_the_pairs_of_one_extraction(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    manifests, accepted = [], []
    for number, file in enumerate(files):
        (folder / f"{number}.jsonl").write_bytes(lines(*file))
        try:
            manifests.append(go(folder, str(number)))
            accepted.append(file)
        except InputError as error:  # the whole is that of the other months
            assert "are already carried" in str(error)  # noqa: PT017
            assert number
            (folder / f"{number}.jsonl").unlink()
    try:
        whole = extract(sorted(folder.glob("*.jsonl")), folder / "whole")
    except InputError:
        whole = None
    found, expected = rows_of(*folder.glob("pairs-*")), rows_of(folder / "whole")
    assert len(found) == len(set(found))
    changed = _changed(accepted)
    if not sum(one.carry.overruled for one in manifests):
        assert found == expected
    differing = set(found) ^ set(expected)
    assert all(row[1] in changed or row[2] in changed for row in differing)
    if whole and not changed:
        for name in ("kept", "without_parent", "pairs"):
            total = sum(getattr(one.counts, name) for one in manifests)
            assert total == getattr(whole.counts, name)


def _changed(files: Sequence[Sequence[dict[str, Any]]]) -> set[str]:
    """The ids that are repeated with other content."""
    contents: dict[str, set[str]] = {}
    for file in files:
        for one in file:
            contents.setdefault(one["id"], set()).add(one["body"])
    return {name for name, bodies in contents.items() if len(bodies) > 1}


@pytest.mark.parametrize(
    ("earlier", "later", "overruled"),
    [
        ("Are you there?", "Is anybody there?", 0),
        ("Is anybody there?", "Are you there?", 1),
        ("[deleted]", "Is anybody there?", 1),
        ("Is anybody there?", "[deleted]", 0),
        ("Is anybody there?", "12345", 1),
        ("[deleted]", "12345", 0),
    ],
)
def test_a_carried_comment_stays_where_a_later_one_differs(folder, earlier, later, overruled):
    (folder / "march.jsonl").write_bytes(lines(comment("a", earlier)))
    same = lines(comment("a", later), comment("a", later), comment("b", "Yes, certainly", "t1_a"))
    (folder / "april.jsonl").write_bytes(same)
    go(folder, "march")
    manifest = go(folder, "april")
    counts = manifest.counts
    assert (counts.duplicates, counts.conflicts, manifest.carry.overruled) == (1, 1, overruled)
    if manifest.counts.pairs and not overruled:
        extract([folder / "march.jsonl", folder / "april.jsonl"], folder / "whole")
        assert rows_of(folder / "pairs-april") == rows_of(folder / "whole")


def test_comments_that_are_repeated_in_a_later_dump_are_counted(one):
    (one / "april.jsonl").write_bytes(MARCH + APRIL)
    manifest = go(one, "april")
    assert (manifest.counts.duplicates, manifest.counts.conflicts) == (3, 0)
    assert (manifest.counts.pairs, manifest.carry.overruled) == (2, 0)


def test_dumps_without_a_new_comment_are_refused(one):
    (one / "again.jsonl").write_bytes(MARCH + MARCH)
    with pytest.raises(InputError, match=r"00001 .*march\.jsonl"):
        go(one, "again")
    assert not (one / "pairs-again").exists()


def test_the_same_dumps_again_give_the_same_bytes(three):
    state = tree_of(three / "state")
    for name in ("april", "march", "may"):
        before = tree_of(three / f"pairs-{name}")
        go(three, name, overwrite=True)
        assert tree_of(three / f"pairs-{name}") == before
    again = three / "elsewhere"
    again.mkdir()
    shutil.copy(three / "april.jsonl", again)
    extract(again / "april.jsonl", again / "pairs", carry=three / "state")
    assert tree_of(again / "pairs") == tree_of(three / "pairs-april")
    assert tree_of(three / "state") == state


def test_memory_and_threads_change_no_byte(three, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(local, "_STORE_SHARE", 1e-9)
    monkeypatch.setattr(local, "_PARTS", (2, 2))
    monkeypatch.setattr(join, "_BATCH_ROWS", 1)
    monkeypatch.setattr(local, "_PIECE_ROWS", 1)
    other = tmp_path_factory.mktemp("other")
    for name in ("march", "april", "may"):
        shutil.copy(three / f"{name}.jsonl", other)
        go(other, name, memory="150MB", threads=1)
        assert tree_of(other / f"pairs-{name}") == tree_of(three / f"pairs-{name}")
    assert tree_of(other / "state") == tree_of(three / "state")


@pytest.fixture
def killed_before(monkeypatch) -> Callable[[Path], None]:
    """A function after which the rename to a path fails, once."""

    def call(path: Path) -> None:
        def rename(part: Path, target: Path) -> None:
            if target == path:
                monkeypatch.undo()
                raise KeyboardInterrupt
            swap_in(part, target)

        swap_in = atomic.swap_in
        monkeypatch.setattr(atomic, "swap_in", rename)

    return call


@pytest.mark.parametrize("last", ["state/00002", "pairs-april"])
def test_a_kill_at_a_rename_loses_nothing(one, killed_before, last):
    killed_before(one / last)
    with pytest.raises(KeyboardInterrupt):
        go(one, "april")
    assert (one / "state" / "00002").exists() == (last == "pairs-april")
    assert not (one / "pairs-april").exists()
    assert go(one, "april").counts.pairs == 2
    assert go(one, "may").counts.pairs == 1
    assert not list(one.rglob(".*"))


HOLD = """
import sys
from pathlib import Path
from rejoinder.io.files.claims import claim
with claim(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


def test_one_extraction_at_a_time(folder):
    words = [sys.executable, "-c", HOLD, str(folder / "state")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as other:
        other.stdout.readline()
        with pytest.raises(BusyError, match=f"state .*process {other.pid}"):
            go(folder, "march")
        other.stdin.close()
    assert sorted(path.name for path in folder.iterdir()) == [
        "april.jsonl",
        "march.jsonl",
        "may.jsonl",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rules": "none"}, "`rules` paper, not none"),
        ({"split": (80, 10, 10)}, r"`split` 95\.0,2\.5,2\.5.*80\.0,10\.0,10\.0"),
        ({"subreddits": ["Tests"]}, "`subreddits` none, not tests"),
        ({"since": "2020-01-02"}, "`since` none, not 2020-01-02"),
        ({"columns": "id=id,parent=parent_id,text=body,thread=link_id"}, "`columns` id=id,"),
        ({"limit": 3}, "^`limit` .*`carry`"),
        ({"max_reply_count": 3}, "^`max_reply_count` .*`carry`"),
        ({"engine": "duckdb"}, "^`engine='duckdb'` .*`carry`"),
        ({"engine": "spark"}, "^`engine='spark'` .*`carry`"),
        ({"columns": "message=body,reply=author"}, "^`columns='message"),
        ({"carry": "pairs-april"}, "must be two folders"),
        ({"carry": "pairs-april/state"}, "must be two folders"),
        ({"carry": "march.jsonl"}, "is a file"),
        ({"carry": "pairs-march"}, "manifest.json.*`carry`"),
    ],
)
def test_what_does_not_go_together_is_refused(one, options, said):
    before = tree_of(one)
    if "carry" in options:
        options = {"carry": one / options["carry"]}
    with pytest.raises(InputError, match=said):
        go(one, "april", **options)
    assert tree_of(one) == before


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (comment("c", "Who knows", link_id=None), "comment 'c' has no thread"),
        (comment("c", "Who knows", "t1_a", link_id="t3_q"), "answers one of another thread"),
        (comment("w", "Who knows", link_id="t3_q"), "answers one of another thread"),
    ],
)
def test_comments_that_cross_threads_are_refused(folder, later, said):
    asks = comment("k", "Who has said so?", "t1_w")
    (folder / "march.jsonl").write_bytes(MARCH + lines(asks))
    go(folder, "march")
    before = tree_of(folder)
    (folder / "june.jsonl").write_bytes(lines(later, comment("z", "Not I, for one")))
    before = tree_of(folder)
    with pytest.raises(InputError, match=rf"`carry` .*{said}.*thread=…"):
        go(folder, "june")
    assert tree_of(folder) == before


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _age(path: Path) -> None:
    tree = json.loads(path.read_text("utf-8"))
    del tree["sha256"]
    path.write_text(json.dumps(sealed({**tree, "format_version": 99})), "utf-8")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"settings": []}, "object.*array.*settings"),
        ({"settings": {"since": "x"}}, r"int.*str.*settings\.since"),
        ({"settings": {"since": 10**15}}, r"int.*settings\.since"),
        ({"settings": {"split": [1, "x"]}}, r"float.*str.*settings\.split\[1\]"),
        ({"inputs": [{}]}, r"missing.*bytes.*inputs\[0\]"),
        ({"comments": -1}, "int.*comments"),
        ({"files": {"comments.arrow": 5}}, "object.*int.*files"),
        ({"files": {}}, r"comments\.arrow is listed without its size"),
    ],
)
def test_a_wrong_value_with_its_hash_is_named(one, change, facts):
    path = one / "state" / "00001" / "increment.json"
    tree = json.loads(path.read_text("utf-8"))
    del tree["sha256"]
    for name, value in change.items():
        is_part = isinstance(value, dict) and name == "settings"
        tree[name] = {**tree[name], **value} if is_part else value
    path.write_text(json.dumps(sealed(tree)), "utf-8")
    with pytest.raises(InputError, match=facts):
        go(one, "april")


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("00001/comments.arrow", Path.unlink, "missing"),
        ("00001/comments.arrow", _cut, "it is cut or changed"),
        ("00001/comments.arrow", _flip, "SHA-256"),
        ("00001/increment.json", Path.unlink, "can't be read"),
        ("00001/increment.json", _cut, "can't be read"),
        ("00002/increment.json", _flip, "00002/increment.json"),
        ("00002/increment.json", _age, "format version 99; this version reads 1"),
        ("00001", shutil.rmtree, r"missing\. Remove the folders of \S+ from 00001 on"),
    ],
)
def test_a_damaged_state_is_refused(two, name, damage, said):
    damage(two / "state" / name)
    before = tree_of(two)
    with pytest.raises(InputError, match=rf"{Path(name).name}.*{said}|{said}"):
        go(two, "may")
    assert tree_of(two) == before
