# SPDX-License-Identifier: Apache-2.0
"""The file of an SQLite database: made for its owner alone, and watched while it is open.

A file that is removed or replaced beneath a process lives on for as long as the process has it
open: what is committed then lands where nobody will find it again. So the file at the path is
compared with the one that is open, and so is the write-ahead log beside it, which holds the last
commits.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from berth.model.errors import DatabaseMoved

LOG = logging.getLogger(__name__)

#: Seconds between two looks at the path.
LOOK_EACH_S: Final = 1.0

_MODE: Final = 0o600

#: Device and inode.
_Identity = tuple[int, int]


class DatabaseFile:
    """The file that one `Database` has open.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: None where SQLite was given a URI instead of a path: then nothing is compared.
        self._path: str | None = None
        self._opened: _Identity | None = None
        #: The write-ahead log of the connection that writes.
        self._wal: _Identity | None = None
        #: For reads, and for writes, which look at more: the last look, and what was wrong then.
        self._looked_at = {False: float("-inf"), True: float("-inf")}
        self._faults: dict[bool, str | None] = {False: None, True: None}

    def connecting(self, name: str) -> None:
        """Before a connection to `name`: make the file, and make no second one in its place.

        Raises:
            DatabaseMoved: there is another file than the one that is open.
        """
        if self._opened is not None:
            self._look(writing=False)
        elif not name.startswith("file:"):
            self._path = name
            _make(name)

    def connected(self) -> None:
        """After a connection was made: the first says which file it is."""
        if self._opened is None and self._path is not None:
            self._opened = _identity(self._path)

    def writing(self) -> None:
        """The connection that writes has been made: what it commits is in the log that is there."""
        if self._path is not None:
            self._wal = _identity(f"{self._path}-wal")

    def check(self, *, writing: bool = False) -> None:
        """Look at the path, unless that was done within a second.

        Args:
            writing: the connection that writes is open, and about to commit.

        Raises:
            DatabaseMoved: the file there is not the one that is open.
        """
        if self._clock() - self._looked_at[writing] >= LOOK_EACH_S:
            self._look(writing=writing)
        elif self._faults[writing] is not None:
            raise DatabaseMoved

    def _look(self, *, writing: bool) -> None:
        self._looked_at[writing] = self._clock()
        fault, before = self._fault_now(writing=writing), self._faults[writing]
        if fault is not None and fault not in self._faults.values():
            LOG.error(
                "%s: this is refused until the file is back in its place, or the service is "
                "started again",
                fault,
            )
        self._faults[writing] = fault
        if before is not None and not any(self._faults.values()):
            LOG.warning("%s is back in its place, and served again", self._path)
        if fault is not None:
            raise DatabaseMoved

    def _fault_now(self, *, writing: bool) -> str | None:
        if self._path is None or self._opened is None:
            return None
        found = _identity(self._path)
        if found is None:
            return f"{self._path} was removed while its database is read and written"
        if found != self._opened:
            return f"{self._path} was replaced while its database is read and written"
        if writing and self._wal is not None and _identity(f"{self._path}-wal") != self._wal:
            return f"{self._path}-wal was removed or replaced while the database is written"
        return None


def _make(path: str) -> None:
    """Make an empty file that only its owner may read, where there is none; SQLite gives the files
    beside it the same mode."""
    try:
        # Never one that is there: closing it would let go of all locks that this process has on it.
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    except OSError:
        return  # it is there, or SQLite says why it cannot be
    try:
        os.fchmod(made, _MODE)
    finally:
        os.close(made)


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
