"""Writes the shipped list of hashes. Arguments: a folder of data sets, the file to write."""

import sys
from pathlib import Path

from safetensors.numpy import save

from rejoinder.files.atomic import write_bytes
from rejoinder.leaks.build import build
from rejoinder.leaks.sets import as_tensors

if __name__ == "__main__":
    write_bytes(Path(sys.argv[2]), save(as_tensors(build(Path(sys.argv[1])))))
