# SPDX-License-Identifier: Apache-2.0
"""Reads files again when they change; after an invalid change, the last valid version stays in
force.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from berth.hosts.errors import BadConfiguration

LOG = logging.getLogger(__name__)

Read = TypeVar("Read")

#: Of each file its path and, if it exists, its modification time, size and inode.
_Signature = tuple[tuple[Path, tuple[int, int, int] | None], ...]


class Watched(Generic[Read]):
    """The content of some files, in their last valid version.

    Args:
        list_files: lists the files; some may not exist.
        read: reads them, or raises BadConfiguration.
    """

    def __init__(
        self,
        list_files: Callable[[], Sequence[Path]],
        read: Callable[[Sequence[Path]], Read],
    ) -> None:
        self._list_files = list_files
        self._read = read
        self._signature: _Signature | None = None
        #: In a tuple, because the content may be None.
        self._good: tuple[Read] | None = None
        #: What is wrong with the present files, if an older version is in force.
        self._problem: BadConfiguration | None = None

    def value(self) -> Read:
        """The content; the files are read if one has changed since the last call.

        Raises:
            BadConfiguration: the files are invalid, and were never valid.
        """
        # RACE tests/hosts/test_drivers.py: checked before reading, so that the next call
        # notices a change during the reading.
        files = self._list_files()
        signature = tuple((file, _stat(file)) for file in files)
        if signature != self._signature:
            self._signature = signature
            self._read_anew(files)
        if self._good is None:
            assert self._problem is not None, "what was read is good or has faults"
            raise self._problem
        return self._good[0]

    def _read_anew(self, files: Sequence[Path]) -> None:
        try:
            self._good = (self._read(files),)
            self._problem = None
        except BadConfiguration as error:
            self._problem = error
            if self._good is not None:
                for fault in error.faults:
                    LOG.error("%s; the previous version stays in force", fault)


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
