"""Comments of a part as record batches of Arrow, for files."""

import numpy as np
import pyarrow as pa

from rejoinder.corpus.engines.local.rows import NUMBERS, STRINGS, Block, Blocks, Rows
from rejoinder.corpus.reading.strings import as_strings, gather

SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")
"""How files that do not outlive an extraction are written: disks are slower than LZ4."""
SCHEMA = pa.schema(
    [
        *((f"hash_{name}", pa.uint64()) for name in ("id", "parent", "thread")),
        ("hash_answers", pa.bool_()),
        ("hash_rule", pa.uint8()),
        *((name, pa.large_string()) for name in STRINGS),
    ]
)


def batch_of(rows: Rows, blocks: Blocks) -> pa.RecordBatch:
    """Returns the comments, whose strings are in `blocks`, with the columns `SCHEMA`."""
    numbers = [pa.array(getattr(rows, name)) for name in NUMBERS]
    # with their prefixes, which are left out when they are read again
    strings = [gather([b[name] for b in blocks], rows.which, rows.row) for name in STRINGS]
    return pa.record_batch([*numbers, *(one.to_arrow() for one in strings)], schema=SCHEMA)


def rows_of(batch: pa.RecordBatch, which: int) -> Rows:
    """Returns the comments of a batch, whose strings are those of block `which`."""
    numbers = {name: batch[f"hash_{name}"].to_numpy(False) for name in NUMBERS}
    count = batch.num_rows
    return Rows(
        **numbers,
        which=np.full(count, which, np.uint32),
        row=np.arange(count, dtype=np.uint32),
    )


def block_of(batch: pa.RecordBatch | pa.Table) -> Block:
    """Returns the strings of the comments of a batch."""
    return {name: as_strings(batch[name]) for name in STRINGS}
