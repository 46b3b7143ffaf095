"""What was read before is neither linked nor encoded again, and the index is as if made at once."""

import json
import random
import re
import shutil
from itertools import chain

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder.conversations.answers import linked
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.explore import explore, read_facts
from rejoinder.conversations.reading import Before, Changes, Part, all_linked, once, rows_of, update
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.index.indexing import Index
from rejoinder.io.formats.compression import decompressed
from rejoinder.links.linker import Linker

LINKER = Linker()
SAID = (
    "Does anybody know how I can mount a usb drive?", "sudo mount /dev/sdb1 /mnt", "thanks",
    "does firefox crash for anyone else?", "no, it works here", "which version is it?", "3.5",
)  # fmt: skip

WORDS = (
    "apple", "bridge", "candle", "door", "engine", "flower", "garden", "hammer", "island", "jacket",
    "kitchen", "lamp", "mirror", "needle", "orange", "paper", "queen", "river", "stone", "table",
)  # fmt: skip


def chat(count, seed=0):
    """Messages of two channels and threads, three of which share a minute."""
    draw = random.Random(seed)
    made = []
    for n in range(count):
        channel = draw.choice(("#a", "#b"))
        text = f"{draw.choice(SAID)} {' '.join(draw.sample(WORDS, 4))}"
        about = {"author": draw.choice(("Ann", "Bob", "Cid")), "source": channel}
        about |= {"time": 60.0 * (n // 3)}
        if draw.random() < 0.1:
            about["thread"] = f"{channel}{n // 50}"
        made.append(Entry(f"m{n}", text, about))
    return made


def of(entries):
    return [Part("IRC", entries, linked=True)]


def content(index):
    made = open_collection(index.folder)
    about = zip(made.texts, made.about, strict=True)
    return {name: (text, dict(one)) for name, (text, one) in zip(made.ids, about, strict=True)}


def scores(index, mode):
    found = index.search(list(SAID), len(index), mode=mode)
    return [{hit.id: pytest.approx(hit.score, abs=1e-6) for hit in hits} for hits in found]


def around(index, name):
    hit = index.around(name, 3)
    return [one.id for one in (*hit.before, *hit.after)]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))]
)
def test_an_index_that_grew_is_that_made_at_once(tmp_path, seed):
    draw, messages = random.Random(seed), chat(400, seed)
    index = Index.create(
        tmp_path / "grown", all_linked(of(messages[:120]), LINKER), "rejoinder-small"
    )
    parts = of(messages[:120])
    for cut in (*sorted(draw.sample(range(121, 400), 3)), 400):
        before = Before(rows_of(parts), index.folder)
        now = messages[:cut]
        for at in draw.sample(range(cut), 2):  # edited
            now[at] = messages[at] = now[at]._replace(text=f"{draw.choice(SAID)} edited")
        rows = rows_of(of(now))
        changes = before.changes(rows)
        assert (changes.new, changes.gone) == (cut - len(before.rows), 0)
        assert changes.changed <= 2
        update(index, of(now), rows, before, LINKER, lambda *_: None)
        parts = of(now)
    whole = Index.create(tmp_path / "whole", all_linked(parts, LINKER), "rejoinder-small")
    assert content(index) == content(whole)
    for mode in ("semantic", "words"):
        assert scores(index, mode) == scores(whole, mode)
    assert all(around(index, one.id) == around(whole, one.id) for one in messages)


def messages_of(path, share):
    """The first messages of a chat of Telegram, WhatsApp or a mailbox."""
    if path.suffix == ".json":
        chat = json.loads(path.read_bytes())
        chat["messages"] = chat["messages"][: int(len(chat["messages"]) * share)]
        return json.dumps(chat).encode()
    content = b"".join(decompressed(path))
    parts = re.split(rb"(?m)^(?=From )" if ".mbox" in path.name else rb"(?<=\n)", content)
    return b"".join(parts[: int(len(parts) * share)])


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name",
    ["telegram/BIG_20A_5475M.json", "whatsapp/whatstk_lorem-2000.txt", "mbox/r-sig-gui.mbox.zst"],
)
def test_real_exports_that_grew_are_those_explored_at_once(shared_data, tmp_path, name):
    source, draw = shared_data / "exports" / name, random.Random(name)
    export = tmp_path / source.name.removesuffix(".zst")
    for share in (*sorted(draw.uniform(0.3, 0.98) for _ in range(2)), 1):
        export.write_bytes(messages_of(source, share))
        ready = explore(export, model="rejoinder-small")
    assert ready.changes is not None
    whole = explore(export, out=tmp_path / "whole", model="rejoinder-small")
    assert content(Index(ready.index)) == content(Index(whole.index))


def test_only_the_end_of_a_channel_is_linked_again(monkeypatch):
    monkeypatch.setattr("rejoinder.links.linker._PIECE", 100)
    monkeypatch.setattr("rejoinder.links.linker._AFTER", 10)
    messages = [one._replace(about={**one.about, "source": "#a"}) for one in chat(400)]
    for one in messages:
        one.about.pop("thread", None)
    whole = linked(messages, LINKER)
    again = linked(messages, LINKER, same={"#a": 315})
    assert again == [None] * 300 + whole[300:]
    assert linked(messages, LINKER, same={"#a": 305}) == [None] * 200 + whole[200:]
    assert linked(messages, LINKER, same={"#a": 401}) == [None] * 400


def test_a_newer_export_adds_to_what_was_explored(tmp_path):
    export = write(slack.FILES, tmp_path / "team")
    first = explore(export, model="rejoinder-small")
    assert first.changes is None
    day = [{"type": "message", "user": "U2", "ts": "1709550000.0001", "text": "Is it Monday?"}]
    (export / "help/2024-03-04.json").write_text(json.dumps(day))
    again = explore(export, model="rejoinder-small")
    assert again.changes == Changes(1, 0, 0)
    index = Index(again.index)
    assert index.search("Is it Monday?", 1)[0][0].text == "Is it Monday?"
    assert sorted(read_facts(again.folder).ids) == sorted(chain(*(s.ids for s in index.segments)))
    whole = explore(export, model="rejoinder-small", out=tmp_path / "whole")
    assert content(index) == content(Index(whole.index))
    count = len(index)
    shutil.rmtree(export / "help")  # the next export has only the last days
    (export / "help").mkdir()
    day[0] |= {"text": "Is it Tuesday?", "edited": {"user": "U2", "ts": "1709550009.0001"}}
    (export / "help/2024-03-04.json").write_text(json.dumps(day))
    third = explore(export, model="rejoinder-small")
    assert (third.changes.new, third.changes.changed) == (0, 1)
    assert third.changes.gone > 0
    assert len(Index(third.index)) == count
    assert not explore(export, model="rejoinder-small").fresh
    fourth = explore(export, model="rejoinder-small", forget_gone=True)
    assert len(Index(fourth.index)) == count - third.changes.gone


def numbered(messages):
    """The messages of a chat by their numbers in it."""
    return of([one._replace(id=f"chat/{n}") for n, one in enumerate(messages, 1)])


@pytest.mark.parametrize("seed", range(5))
def test_overlapping_exports_have_each_message_once(seed):
    draw, messages = random.Random(seed), chat(300, seed)
    for at in draw.sample(range(1, 300), 50):  # the same said twice in a minute
        messages[at] = messages[at - 1]
    said = [one[1:] for one in messages]
    exports = [numbered(messages[:200]), numbered(messages[draw.randrange(200) :])]
    for some in (exports, exports[::-1], [*exports, exports[0]]):
        [part] = once(some)
        assert sorted((one[1:] for one in part.entries), key=str) == sorted(said, key=str)
        assert len({one.id for one in part.entries}) == 300


def test_the_last_export_says_what_an_edited_message_is_and_answers_are_renamed():
    about = {"source": "#a", "author": "Ann", "time": 61.5}
    asked, answer = Entry("1", "Is it open?", about), {**about, "time": 70.0, "answers": "1"}
    edited = asked._replace(text="Is it still open?")
    [part] = once([of([asked, Entry("2", "Yes.", answer)]), of([edited])])
    assert part.entries == [Entry("2", "Yes.", answer), edited]
    other = Entry("1", "Hello", {**about, "source": "#b"})
    [part] = once([of([asked, Entry("2", "Yes.", answer)]), of([other])])
    renamed = [asked._replace(id="1:1"), Entry("2", "Yes.", {**answer, "answers": "1:1"})]
    assert part.entries == [*renamed, other]


def test_several_exports_become_one_archive_and_a_newer_one_adds_to_it(tmp_path):
    team, log = write(slack.FILES, tmp_path / "team"), tmp_path / "help.log"
    log.write_text("[2024-01-01 10:00:01] <ann> Is it open?\n[2024-01-01 10:00:09] <bob> Yes.\n")
    copy = shutil.copytree(team, tmp_path / "copy" / "team")
    first = explore(team, log, copy, team, model="rejoinder-small")
    assert first.folder == tmp_path / "team.explore"
    assert len(Index(first.index)) == 6
    assert read_facts(first.folder).read.startswith("Slack and IRC, ")
    assert not explore(team, log, copy, model="rejoinder-small").fresh
    with log.open("a") as file:
        file.write("[2024-01-01 10:01:00] <ann> Thanks!\n")
    again = explore(team, log, copy, model="rejoinder-small")
    assert again.changes == Changes(1, 0, 0)
    whole = explore(team, log, out=tmp_path / "whole", model="rejoinder-small")
    assert content(Index(again.index)) == content(Index(whole.index))
    lines = tmp_path / "lines.txt"
    lines.write_text("How are you?\n")
    for wrong in (lines, tmp_path / "none.zip"):
        with pytest.raises(InputError, match=wrong.name):
            explore(team, wrong, model="rejoinder-small")


def test_another_model_keeps_what_is_gone(tmp_path):
    export = write(slack.FILES, tmp_path / "team")
    ready = explore(export, model="rejoinder-small")
    count = len(Index(ready.index))
    shutil.rmtree(export / "board")
    ready = explore(export, model="rejoinder-base")
    assert ready.changes is None
    assert len(Index(ready.index)) == count


def test_topics_keep_their_names_and_places(tmp_path):
    lines = tmp_path / "chat.csv"
    rows = [
        f"{n},{('The printer is out of paper', 'The train to Bern is late')[n % 2]} {n % 37}"
        for n in range(400)
    ]
    lines.write_text("\n".join(["id,text", *rows]))
    columns = "text=text,id=id"
    first = explore(lines, model="rejoinder-small", columns=columns)
    topics = json.loads((first.folder / "topics.json").read_bytes())["topics"]
    ids, points = read_facts(first.folder).ids, np.fromfile(first.folder / "points.bin", "<f4")
    lines.write_text("\n".join(["id,text", *rows, "400,The printer is out of paper again"]))
    second = explore(lines, model="rejoinder-small", columns=columns)
    assert second.changes == Changes(1, 0, 0)
    now = json.loads((second.folder / "topics.json").read_bytes())["topics"]
    assert [one["name"] for one in now] == [one["name"] for one in topics]
    assert sum(one["size"] for one in now) == sum(one["size"] for one in topics) + 1
    assert read_facts(second.folder).ids[:400] == ids
    moved = np.fromfile(second.folder / "points.bin", "<f4")
    np.testing.assert_allclose(moved[:400], points[:400], atol=1e-4)
