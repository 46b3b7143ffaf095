"""Runs a command as on Windows, as far as another system can: `python windows.py encode hello`.

The package finds no module and no function that Windows lacks, and what this process has open can't
be renamed, replaced or removed; `HELD` names a file that it opens. Libraries keep what they need of
this system.
"""

import builtins
import errno
import mmap
import os
import shutil
import signal
import sys
from pathlib import Path

MISSING = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
LACKS = {
    mmap: ("MADV_DONTNEED",),
    os: ("fork", "geteuid", "getuid", "killpg", "pread", "preadv", "sched_getaffinity", "sysconf"),
    signal: ("SIGALRM", "SIGHUP", "SIGUSR1", "alarm", "setitimer"),
}


def hide_modules():
    really_import = builtins.__import__

    def import_as_there(name, globals=None, *arguments, **named):  # noqa: A002
        if name in MISSING and str((globals or {}).get("__name__")).startswith("rejoinder"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return really_import(name, globals, *arguments, **named)

    builtins.__import__ = import_as_there


def open_files():
    """The paths that this process has open or mapped."""
    maps = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
    found = {line.split(maxsplit=5)[5] for line in maps if line.count("/")}
    for handle in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(handle.readlink()))
        except FileNotFoundError:  # that of the list itself
            continue
    return found


def refuse_open_files():
    def checked(function):
        def call(*paths, **named):
            for path in paths:
                place = os.path.realpath(path)
                taken = [one for one in open_files() if one == place or one.startswith(f"{place}/")]
                if taken:
                    raise PermissionError(errno.EACCES, f"open: {taken}", place)
            return function(*paths, **named)

        return call

    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, checked(getattr(os, name)))
    shutil._use_fd_functions = False  # as where no file is removed by its folder's number


def lock_once():
    """A process can't lock again what it has locked, which `flock` allows."""
    import filelock

    really_lock, really_close, locked = filelock.lock_descriptor, os.close, set()

    def lock(handle, *, blocking=True):
        if handle in locked or not really_lock(handle, blocking=blocking):
            return False
        locked.add(handle)
        return True

    def close(handle):
        locked.discard(handle)
        really_close(handle)

    filelock.lock_descriptor, os.close = lock, close


def main():
    hide_modules()
    lock_once()
    import ctypes  # noqa: F401 -- read this system's name

    import rejoinder.errors

    here, sys.platform = sys.platform, "win32"
    import rejoinder.io.files.system

    sys.platform = here
    assert rejoinder.io.files.system.WINDOWS
    for module, names in LACKS.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    refuse_open_files()
    held = os.environ.get("HELD") and open(os.environ["HELD"], "rb")  # noqa: F841, PTH123, SIM115
    from rejoinder.cli.main import run

    run()


if __name__ == "__main__":
    main()
