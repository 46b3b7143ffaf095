"""`rejoinder mcp`: what it refuses. `tests/serve/test_mcp.py` has what it answers."""

import pytest


@pytest.mark.parametrize("more", [(), ("--allowed-host", "chats"), ("--port", "70000")])
def test_what_can_not_be_served_is_one_sentence(call, tmp_path, more):
    status, out, err = call("mcp", tmp_path / "none.zip", *more)
    assert (status, out, len(err.strip().splitlines())) == (2, "", 1)
