# SPDX-License-Identifier: Apache-2.0
"""What stands in files, read again when they change; a broken version does not end a good one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from berth.hosts.errors import BadConfiguration

LOG = logging.getLogger(__name__)

Read = TypeVar("Read")

#: Of each file its path, and where it exists its time of change, size and inode.
_Signature = tuple[tuple[Path, tuple[int, int, int] | None], ...]


class Watched(Generic[Read]):
    """What some files say, as of their last good version.

    Args:
        list_files: the files there are now; one that does not exist may be among them.
        read: makes of them what they say, or raises BadConfiguration.
    """

    def __init__(
        self,
        list_files: Callable[[], Sequence[Path]],
        read: Callable[[Sequence[Path]], Read],
    ) -> None:
        self._list_files = list_files
        self._read = read
        self._signature: _Signature | None = None
        #: In a tuple, since None may be what files say.
        self._good: tuple[Read] | None = None
        #: What is wrong with the files as they are; an older version is in force then.
        self.problem: BadConfiguration | None = None

    def value(self) -> Read:
        """What the files say; they are read where one has changed since the last look.

        Raises:
            BadConfiguration: they cannot be meant, and there was no good version before.
        """
        # RACE tests/hosts/test_static_driver.py: looked at before reading, so that a change
        # while they are read is seen at the next look.
        files = self._list_files()
        signature = tuple((file, _stat(file)) for file in files)
        if signature != self._signature:
            self._signature = signature
            self._read_anew(files)
        if self._good is None:
            assert self.problem is not None, "what was read is good or has faults"
            raise self.problem
        return self._good[0]

    def _read_anew(self, files: Sequence[Path]) -> None:
        try:
            self._good = (self._read(files),)
            self.problem = None
        except BadConfiguration as error:
            self.problem = error
            if self._good is not None:
                for fault in error.faults:
                    LOG.error("%s; the version before it stays in force", fault)


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
