# SPDX-License-Identifier: Apache-2.0
"""Small files of hosts: written atomically, for the right user; undo files; files that are watched.

Root may run a command in the state directory of an agent that is not root. The agent's user must
own what root creates there, and must not be able to redirect root elsewhere with a link.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from berth.hosts.errors import BadConfiguration

LOG = logging.getLogger(__name__)


@contextmanager
def refusing(prevented: str) -> Iterator[None]:
    """Say what an OSError prevents.

    Raises:
        BadConfiguration: instead of the OSError, with its reason after `prevented`.
    """
    try:
        yield
    except OSError as error:
        raise BadConfiguration(f"{prevented}: {error.strerror or error}") from error


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically and durably, creating its folder: readers see the old or the new
    content.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(beside, flags, 0o666), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hand_over(beside)
    beside.replace(path)
    keep_names(path.parent)


def hand_over(path: Path) -> None:
    """Give what root has just created to the owner of its folder.

    Raises:
        OSError: it cannot be given.
    """
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def keep_names(folder: Path) -> None:
    """Make sure that the names in a folder survive a crash.

    Raises:
        OSError: they cannot be written.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- Undo files: a line of JSON for each change, on disk before the change is made ----------------
#
# So after any crash, a check of the service shows for each change whether it was made.


class UndoFile:
    """Changes that were made, or were about to be made.

    Args:
        path: a file to create, or to read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Create the file, for this user only, and make sure that it survives a crash.

        Raises:
            BadConfiguration: the file exists, or cannot be created.
        """
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            hand_over(self.path)
            keep_names(self.path.parent)
        except OSError as error:
            raise BadConfiguration(
                f"{self.path} cannot be made: {(error.strerror or str(error)).lower()}"
            ) from error

    def append(self, change: Mapping[str, Any]) -> None:
        """Record a change; it is on disk when this returns.

        Raises:
            BadConfiguration: the file cannot be written.
        """
        with refusing(f"{self.path} cannot be written"), self.path.open("r+b") as file:
            _go_to_end(file)
            file.write(json.dumps(change).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self, is_change: Callable[[Mapping[str, Any]], bool], *, made_by: str) -> list[Any]:
        """The changes, in the order in which they were made.

        An incomplete last line is left out: its change was not made.

        Args:
            is_change: whether a line is a change.
            made_by: the program that writes such files, for messages.

        Raises:
            BadConfiguration: the file cannot be read, or is not an undo file.
        """
        try:
            whole, newline, rest = self.path.read_text().rpartition("\n")
            changes = [json.loads(line) for line in whole.splitlines()]
            with suppress(ValueError) if newline else nullcontext():
                changes += [json.loads(line) for line in rest.splitlines()]
        except (OSError, ValueError) as error:
            raise BadConfiguration(f"{self.path} cannot be read: {error}") from error
        if not all(isinstance(change, dict) and is_change(change) for change in changes):
            raise BadConfiguration(f"{self.path} is not an undo file of {made_by}")
        return changes


def _go_to_end(file: BinaryIO) -> None:
    """Seek to the end of the last complete line: a crash or a full disk may have left a partial
    one.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 1, 0))
    if end and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)


# --- Files that are read again when they change ---------------------------------------------------
#
# After an invalid change, the last valid version stays in force.

Read = TypeVar("Read")

#: Of each file its path and, if it exists, its modification time, size and inode.
_Signature = tuple[tuple[Path, tuple[int, int, int] | None], ...]


@dataclass(eq=False)
class Watched(Generic[Read]):
    """The content of some files, in their last valid version.

    Attributes:
        list_files: lists the files; some may not exist.
        read: reads them, or raises BadConfiguration.
    """

    list_files: Callable[[], Sequence[Path]]
    read: Callable[[Sequence[Path]], Read]
    _signature: _Signature | None = field(default=None, init=False)
    #: In a tuple, because the content may be None.
    _good: tuple[Read] | None = field(default=None, init=False)
    #: What is wrong with the present files, if an older version is in force.
    _problem: BadConfiguration | None = field(default=None, init=False)

    def value(self) -> Read:
        """The content; the files are read if one has changed since the last call.

        Raises:
            BadConfiguration: the files are invalid, and were never valid.
        """
        # RACE tests/hosts/test_drivers.py: checked before reading, so that the next call
        # notices a change during the reading.
        files = self.list_files()
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
            self._good = (self.read(files),)
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
