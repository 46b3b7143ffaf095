"""One session of Spark for the tests of several files: Java takes long to start."""

import signal
from pathlib import Path

import pytest

from rejoinder.io.spark_session import OpenSession, open_session


class SharedSpark:
    """A session that is opened where the first test asks for it, and again after it was closed."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._session: OpenSession | None = None

    def open(self) -> None:
        if self._session is None:
            with pytest.MonkeyPatch.context() as patch:
                # better code and a collector of several threads cost more here than they save
                patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
                handler = signal.getsignal(signal.SIGINT)
                self._session = open_session("local[2]", "1GB", scratch=self._scratch)
                signal.signal(signal.SIGINT, handler)  # Spark's outlives the session
            self._session.expect(0)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
