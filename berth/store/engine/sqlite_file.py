# SPDX-License-Identifier: Apache-2.0
"""The file of an SQLite database: readable by its owner only, and watched while it is open.

A file that is removed or replaced lives on for as long as a process has it open: later commits go
to a file without a name, and are lost. So this module compares the file at the path with the open
one. It does the same for the write-ahead log beside it, which contains the last commits.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from berth.model.errors import DatabaseMoved, OutcomeUnknown

LOG = logging.getLogger(__name__)

#: Seconds between two checks of the path.
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
        #: None if SQLite was given a URI instead of a path: then nothing is compared.
        self._path: str | None = None
        self._opened: _Identity | None = None
        #: The write-ahead log of the connection that writes.
        self._wal: _Identity | None = None
        #: The folder of the path; empty if that tells nothing.
        self._folder = ""
        #: Device, inode and time of the last change of the folder in which both were in place.
        self._untouched: tuple[int, int, int] | None = None
        #: For reads (False) and for writes (True), which check more: the last check and its result.
        self._looked_at = {False: float("-inf"), True: float("-inf")}
        self._faults: dict[bool, str | None] = {False: None, True: None}

    def connecting(self, name: str) -> None:
        """Call before connecting to `name`: creates the file, but never replaces the open one.

        Raises:
            DatabaseMoved: the file there is not the open one.
        """
        if self._opened is not None:
            self._look(writing=False)
        elif not name.startswith("file:"):
            self._path = name
            # What happens to the target of a link does not show in the folder of the link.
            self._folder = "" if os.path.islink(name) else os.path.dirname(name) or "."
            _make(name)

    def connected(self) -> None:
        """Call after connecting: the first connection determines which file is the open one."""
        if self._opened is None and self._path is not None:
            self._opened = _identity(self._path)

    def writing(self) -> None:
        """Call when the writing connection is open: its commits go to the log that exists now."""
        if self._path is not None:
            self._wal = _identity(f"{self._path}-wal")

    def check(self, *, writing: bool = False) -> None:
        """Check the path, unless that was done within the last second.

        Args:
            writing: the writing connection is open, and about to commit.

        Raises:
            DatabaseMoved: the file there is not the open one.
        """
        if self._clock() - self._looked_at[writing] >= LOOK_EACH_S:
            self._look(writing=writing)
        elif self._faults[writing] is not None:
            raise DatabaseMoved

    def committed(self) -> None:
        """Call after each commit, and before anyone learns of it.

        Raises:
            OutcomeUnknown: the file is not the open one, so the commit is in no file that has a
                name, and is lost unless that file comes back.
        """
        if self._is_untouched() or self._fault_now(writing=True) is None:
            return
        self._looked_at[False] = float("-inf")  # reads, too, need not wait for their second
        try:
            self._look(writing=True)
        except DatabaseMoved as moved:
            raise OutcomeUnknown(
                "The database's file was removed or replaced while it committed: the write is lost "
                "unless that file comes back; read what is there before you repeat the write"
            ) from moved

    def _is_untouched(self) -> bool:
        """Whether nothing was made, renamed or removed beside the file since it was in place.

        PERF bench, claims: each commit comes here, and one look at the folder is enough.
        """
        with suppress(OSError):
            status = os.stat(self._folder)
            folder = status.st_dev, status.st_ino, status.st_ctime_ns
            # The next change of a folder that has just changed may get the same time.
            is_settled = time.time() - status.st_ctime > 1.0
            if folder != self._untouched and is_settled and not self._fault_now(writing=True):
                self._untouched = folder
            return folder == self._untouched
        return False

    def _look(self, *, writing: bool) -> None:
        self._looked_at[writing] = self._clock()
        fault, before = self._fault_now(writing=writing), self._faults[writing]
        if fault is not None and fault not in self._faults.values():
            LOG.error(
                "%s: requests fail until you put the file back or restart the service",
                fault,
            )
        self._faults[writing] = fault
        if before is not None and not any(self._faults.values()):
            LOG.warning("%s is back in its place; requests succeed again", self._path)
        if fault is not None:
            raise DatabaseMoved

    def _fault_now(self, *, writing: bool) -> str | None:
        if self._path is None or self._opened is None:
            return None
        identity = _identity(self._path)
        if identity is None:
            return f"{self._path} was removed while the database is in use"
        if identity != self._opened:
            return f"{self._path} was replaced while the database is in use"
        if writing and self._wal not in (None, _identity(f"{self._path}-wal")):
            return f"{self._path}-wal was removed or replaced while the database is in use"
        return None


def _make(path: str) -> None:
    """Create an empty file that only its owner may read, unless it exists; SQLite gives the files
    beside it the same mode."""
    try:
        # Never open an existing file: closing it would release all locks of this process on it.
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    except OSError:
        return  # it exists, or SQLite will report why it cannot
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
