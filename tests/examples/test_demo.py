"""`make demo`: with a dump of one's own or without, in any order."""

import runpy
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def test_a_dump_of_ones_own_leaves_the_model_of_the_readme_alone():
    place_of = runpy.run_path(str(DEMO))["place_of"]
    own, yours = place_of(None), place_of("dump.zst")
    assert own == Path("demo")
    for inside in ("run", "pairs", "results.json"):
        assert own / inside not in (yours, *yours.parents)
