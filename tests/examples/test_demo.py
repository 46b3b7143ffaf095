"""`make demo`: with a dump of one's own or without, in any order."""

import runpy
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def test_a_dump_of_ones_own_leaves_the_model_of_the_readme_alone():
    output_folder = runpy.run_path(str(DEMO))["output_folder"]
    own, yours = output_folder(None), output_folder("dump.zst")
    assert own == Path("demo")
    for inside in ("run", "pairs", "results.json"):
        assert own / inside not in (yours, *yours.parents)
