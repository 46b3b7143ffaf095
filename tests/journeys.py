"""Runs a command and counts the functions that it enters, by file: `journeys.py OUT COMMAND …`."""

import inspect
import json
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent / "src/rejoinder"


class Tracer:
    """Notes the functions of the package that are entered, and the kernels that are called.

    The body of a module or a class does not count: an import alone enters nothing.
    """

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.kernels: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)
        elif event == "c_call":
            # a method of a type in C has no module, its type has
            module = getattr(argument, "__module__", None) or type(argument.__self__).__module__
            if module.startswith("rejoinder."):
                self.kernels.add(module)

    def functions(self) -> Counter[str]:
        """Returns the number of functions entered in each file below the package."""
        counts = Counter[str]()
        for code in self.codes:
            path = Path(code.co_filename)
            named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
            if named and path.is_relative_to(ROOT):
                counts[path.relative_to(ROOT).as_posix()] += 1
        for name in self.kernels:
            counts[f"{name.removeprefix('rejoinder.').replace('.', '/')}.c"] += 1
        return counts


def main() -> None:
    out, *words = sys.argv[1:]
    tracer = Tracer()
    sys.argv = ["rejoinder", *words]
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        from rejoinder.cli.main import run

        status = run()
    finally:
        sys.setprofile(None)
        Path(out).write_text(json.dumps(tracer.functions()), "utf-8")
    sys.exit(status)


if __name__ == "__main__":
    main()
