"""What differs between Linux, macOS and Windows: locks on open files."""

import os
import sys
from contextlib import suppress

if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> bool:
        """Lock the open file `handle` for this process; false where another one holds it."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def remove_locked(path: str, handle: int) -> None:
        """Remove a lock file that this process holds. An open file can't be removed here."""
        os.close(handle)
        with suppress(OSError):  # another process has opened it meanwhile: it is that one's now
            os.unlink(path)  # noqa: PTH108 -- beside os.open and os.close

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Lock the open file `handle` for this process; false where another one holds it.

        The kernel gives the lock back when the process ends, however it ends.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def remove_locked(path: str, handle: int) -> None:
        """Remove a lock file that this process holds, then let go of it."""
        with suppress(OSError):  # somebody removed the folder around it: nothing is left
            os.unlink(path)  # noqa: PTH108 -- beside os.open and os.close
        os.close(handle)
