"""Threads and processes that change one index at the same time lose nothing."""

import pytest


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_threads_and_processes_change_one_index(changes, tmp_path, count):
    counts = changes.changed_by_many(tmp_path / "index", count)
    assert counts["changes"] == count * (changes.THREADS + changes.PROCESSES)
    assert counts["searches"]
    assert counts["segments"] <= counts["texts"].bit_length()
    assert {path.name for path in tmp_path.iterdir()} == {"index"}
