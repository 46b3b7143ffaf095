"""The fastest engine for one machine: comments are parted by thread and joined on hashes of ids.

Comments that can't be parted go to DuckDB: those without a thread, those whose parent is in another
thread, and a limit on the replies with the same text, which takes a look at all pairs.
"""

import shutil

from rejoinder.corpus.engines.base import Extraction, Outcome
from rejoinder.corpus.engines.duckdb import DuckDBEngine
from rejoinder.corpus.engines.local.rows import CrossingError
from rejoinder.corpus.engines.local.run import PartedExtraction
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.io.files.places import Place


class LocalEngine(DuckDBEngine):
    """An engine that joins each part of the comments by itself, and DuckDB where that can't be."""

    def at_once(
        self, extraction: Extraction, folder: Place, progress: ExtractProgress
    ) -> Outcome | None:
        """Extracts by parts, or returns None where comments can't be parted.

        Raises:
            InputError: they can't be parted, and comments of earlier extractions are carried.
        """
        if extraction.max_reply_count is not None:
            return None
        folder_of_parts = self.spill / "parts"
        folder_of_parts.mkdir()
        try:
            outcome = PartedExtraction(extraction, self, folder_of_parts, progress).run(folder)
        except CrossingError as error:
            if extraction.carry is not None:
                raise InputError(
                    f"--carry can't be used with these comments: {error}. Name a column that holds "
                    "the thread of each comment, --columns thread=…, or extract all files "
                    "together, without --carry."
                ) from None
            outcome = None
        finally:
            shutil.rmtree(folder_of_parts, ignore_errors=True)
        if outcome is None or outcome.written.rows or extraction.carry is not None:
            return outcome
        return None  # the query can tell why there are no pairs
