# SPDX-License-Identifier: Apache-2.0
"""A file of credentials that may change while the service runs.

It is looked at when somebody asks for its content, twice a second at most, and read again when its
time, size or inode has changed. A file that cannot be read or understood lets nobody in.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from berth.config import ConfigurationError

LOG = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK_EVERY_S: Final = 0.5

#: Larger files are none of ours: a million users would take some 100 MB.
_SIZE_MAX: Final = 256 * 2**20

_READABLE_OR_WRITABLE_BY_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH

Content = TypeVar("Content")


class CredentialsUnusable(ConfigurationError):
    """A file of credentials cannot be read, or not be understood; the message says which and why,
    and has nothing secret in it."""


class MalformedLine(Exception):
    """A line is not what it should be; the message says why, and quotes nothing secret."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"line {number}: {why}")


class _Signature(NamedTuple):
    """What tells two states of a file apart, without reading it."""

    inode: int
    size: int
    modified_ns: int
    #: Moves with permissions too.
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> _Signature:
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_credentials(path: Path, parse: Callable[[str], Content]) -> Content:
    """Read a file of credentials once.

    Raises:
        CredentialsUnusable: it cannot be read or understood.
    """
    return _read(path, parse)[0]


def is_open_to_others(path: Path) -> bool:
    """Whether accounts of this machine other than the file's owner and group may read or write it.

    Raises:
        OSError: it cannot be looked at.
    """
    return bool(path.stat().st_mode & _READABLE_OR_WRITABLE_BY_OTHERS)


class WatchedFile(Generic[Content]):
    """The content of a file, as it is now.

    Args:
        parse: from its text; raises MalformedLine.
        clock: monotonic seconds.

    Raises:
        CredentialsUnusable: it cannot be read or understood at the start.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[str], Content],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._parse = parse
        self._clock = clock
        #: Held by whoever looks; the others go on with what is known.
        self._looking = threading.Lock()
        self._next_look = clock() + LOOK_EVERY_S
        #: The content, or what is wrong with the file.
        self._known: Content | CredentialsUnusable
        #: None: it could not be read.
        self._signature: _Signature | None
        self._known, self._signature = _read(path, parse)
        if is_open_to_others(path):
            LOG.warning("%s is open to everybody on this machine: chmod o= %s", path, path)

    def content(self) -> Content:
        """The content, at most half a second old.

        Raises:
            CredentialsUnusable: it cannot be read or understood at the moment.
        """
        if self._clock() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._next_look = self._clock() + LOOK_EVERY_S
                self._looking.release()
        known = self._known
        if isinstance(known, CredentialsUnusable):
            # Anew: an exception that is raised again and again collects its traces.
            raise CredentialsUnusable(str(known))
        return known

    def _look(self) -> None:
        try:
            signature = _Signature.of(self._path.stat())
        except OSError:
            signature = None
        if signature is not None and signature == self._signature:
            return
        before = self._known
        try:
            self._known, self._signature = _read(self._path, self._parse)
        except CredentialsUnusable as problem:
            # Without a signature it is read again at each look: the disk may recover.
            self._known, self._signature = problem, None
            if str(before) != str(problem):
                LOG.error("%s; until it is mended nobody is let in", problem)
        else:
            LOG.info("%s has changed and counts from now on", self._path)


def _read(path: Path, parse: Callable[[str], Content]) -> tuple[Content, _Signature]:
    try:
        with path.open("rb") as file:
            # Before reading: a change made meanwhile is then seen at the next look.
            signature = _Signature.of(os.fstat(file.fileno()))
            raw = file.read(_SIZE_MAX + 1)
    except OSError as error:
        raise CredentialsUnusable(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error
    if len(raw) > _SIZE_MAX:
        raise CredentialsUnusable(f"{path} cannot be read: it is larger than 256 MiB")
    try:
        return parse(raw.decode()), signature
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise CredentialsUnusable(f"{path}, line {number}: this is not UTF-8") from None
    except MalformedLine as error:
        raise CredentialsUnusable(f"{path}, {error}") from None
