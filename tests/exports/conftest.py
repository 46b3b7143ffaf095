"""What tests of readers share."""

from pathlib import Path
from typing import Any

import pytest

from export_samples import write
from rejoinder.exports import format_of_export
from rejoinder.exports.files import opened


@pytest.fixture
def read(tmp_path: Path):
    """Reads files as the export that they are recognised as."""

    def reading(name: str, files: dict[str, Any]) -> list[Any]:
        folder = write(files, tmp_path / "export")
        found = format_of_export(folder)
        assert found is not None
        assert found.name == name
        with opened(folder) as content:
            return list(found.read(content))

    return reading
