"""Known links are cut into pieces, thinned out to quiet chats, and found again."""

import random

import numpy as np
import pytest

from rejoinder.links.linker import Linker, Links
from rejoinder.links.threads import Channel, found_again, pieces, quiet_chats, with_beginnings


def channel(count, labels):
    authors = [f"a{at % 3}" for at in range(count)]
    texts = [f"text {at}" for at in range(count)]
    return Channel(authors, [60.0 * at for at in range(count)], texts, labels)


class Fixed:
    """Says what it is told."""

    def __init__(self, parents, confidence):
        self.links = Links(np.array(parents), np.array(confidence, np.float32))

    def link(self, *_given):
        return self.links


def test_pieces_have_each_known_link_once_and_the_messages_around():
    whole = channel(900, {row: [row - 2] for row in range(400, 800)} | {880: [10]})
    parts = list(pieces(whole, 150))
    assert [len(part.labels) for part in parts] == [150, 150, 101]
    assert [len(part.texts) for part in parts] == [514, 514, 900 - 400]
    texts = [
        (part.texts[row], part.texts[answered[0]])
        for part in parts
        for row, answered in part.labels.items()
    ]
    assert texts[:-1] == [(f"text {row}", f"text {row - 2}") for row in range(400, 800)]


def test_quiet_chats_are_whole_conversations_made_slower():
    labels = {row: [row - row % 4 if row % 4 == 1 else max(row - 1, 0)] for row in range(400)}
    labels |= {row: [row] for row in range(0, 400, 4)}
    chats = list(quiet_chats(channel(400, labels), random.Random(0)))
    assert len(chats) == 4
    for chat in chats:
        assert len(chat.texts) % 4 == 0
        said = [int(text.split()[1]) for text in chat.texts]
        assert said == sorted(said)
        assert chat.times[-1] >= 60.0 * said[-1]
        for row, answered in chat.labels.items():
            assert [said[one] for one in answered] == labels[said[row]]


def test_what_is_found_again_is_counted():
    known = channel(5, {0: [0], 1: [0], 2: [0, 1], 3: [1], 4: [4]})
    found = found_again(Fixed([-1, 0, 1, 2, 3], [1, 0.9, 0.8, 0.7, 0.2]), [known])
    assert (found.messages, found.right) == (5, 0.6)
    assert (found.precision, found.recall) == (2 / 3, 2 / 3)
    before = found_again(None, [known])
    assert (before.right, before.precision, before.recall) == (0.6, 0.5, 2 / 3)


def test_beginnings_are_added_where_nothing_is_stated():
    known = channel(6, {1: [0], 5: [4]})
    sure = Fixed([-1, -1, -1, -1, 3, -1], [0.9, 0.9, 0.9, 0.4, 0.9, 0.9])
    assert with_beginnings(known, sure).labels == {1: [0], 2: [2], 5: [4]}


@pytest.mark.parametrize("names", [True, False])
def test_the_linker_of_the_package_finds_links_that_the_message_before_does_not(names):
    said = [
        ("ann", "how do I mount a usb stick?"), ("bob", "does firefox crash for anyone else?"),
        ("cid", "sudo mount /dev/sdb1 /mnt mounts the usb stick"), ("eve", "no, firefox works"),
    ]  # fmt: skip
    authors, texts = zip(*said, strict=True)
    known = Channel(authors, [0.0, 20.0, 40.0, 50.0], texts, {0: [0], 1: [1], 2: [0], 3: [1]})
    assert found_again(Linker(names=names), [known]).right > found_again(None, [known]).right
