"""Blocks of whole lines, whatever the pieces."""

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.io.formats.line_blocks import BlockMemory, line_blocks, reused_line_blocks

pieces = st.lists(st.binary(max_size=9) | st.sampled_from([b"\n", b"ab\nc", b"\n\n"]), max_size=9)


@given(pieces, st.integers(1, 12))
def test_blocks_are_the_content_in_whole_lines(parts, size):
    blocks = list(line_blocks(parts, size))
    assert b"".join(blocks) == b"".join(parts)
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert b"" not in blocks


@given(pieces, st.integers(1, 12), st.integers(0, 3))
def test_memory_is_used_again_when_it_was_given_back(parts, size, held):
    memory = BlockMemory()
    waiting, found, used = [], [], set()
    for block in reused_line_blocks(parts, size, memory):
        used.add(id(block.obj))
        waiting.append(block)
        if len(waiting) > held:
            found.append(bytes(waiting[0]))
            memory.give_back(waiting.pop(0))
    assert found + [bytes(block) for block in waiting] == list(line_blocks(parts, size))
    assert len(used) <= held + 2
