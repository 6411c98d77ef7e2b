# SPDX-License-Identifier: Apache-2.0
"""A file of credentials that may change while the service runs.

`WatchedFile` checks the file when a caller needs its content, at most twice a second, and reads it
again when its time, size or inode has changed. While the file cannot be read or parsed, every login
is refused.
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

#: Seconds between two checks.
LOOK_EVERY_S: Final = 0.5

#: Larger files are refused: a million users take about 100 MB.
_SIZE_MAX: Final = 256 * 2**20

_READABLE_OR_WRITABLE_BY_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH

Content = TypeVar("Content")


class CredentialsUnusable(ConfigurationError):
    """A file of credentials cannot be read or parsed.

    The message names the file and the reason, and quotes nothing secret.
    """


class MalformedLine(Exception):
    """A line is malformed; the message says why, and quotes nothing secret."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"line {number}: {why}")


class _Signature(NamedTuple):
    """Detects a change of a file without reading it."""

    inode: int
    size: int
    modified_ns: int
    #: Also changes with the permissions.
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Signature:
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_credentials(path: Path, parse: Callable[[str], Content]) -> Content:
    """Read a file of credentials once.

    Raises:
        CredentialsUnusable: the file cannot be read or parsed.
    """
    return _read(path, parse)[0]


def is_open_to_others(path: Path) -> bool:
    """Whether accounts other than the file's owner and group may read or write it.

    Raises:
        OSError: the file's status cannot be read.
    """
    return bool(path.stat().st_mode & _READABLE_OR_WRITABLE_BY_OTHERS)


class WatchedFile(Generic[Content]):
    """The current content of a file.

    Args:
        parse: makes the content from the file's text; raises MalformedLine.
        clock: monotonic seconds.

    Raises:
        CredentialsUnusable: the file cannot be read or parsed at the start.
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
        #: Held by the thread that checks the file; the others use the content they have.
        self._looking = threading.Lock()
        self._next_look = clock() + LOOK_EVERY_S
        #: The content, or the reason why the file cannot be used.
        self._current: Content | CredentialsUnusable
        #: None: the file could not be read.
        self._signature: _Signature | None
        self._current, self._signature = _read(path, parse)
        if is_open_to_others(path):
            LOG.warning("Every user of this machine can access %s: run chmod o= %s", path, path)

    def content(self) -> Content:
        """The content, at most half a second old.

        Raises:
            CredentialsUnusable: the file cannot be read or parsed at the moment.
        """
        if self._clock() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._next_look = self._clock() + LOOK_EVERY_S
                self._looking.release()
        content = self._current
        if isinstance(content, CredentialsUnusable):
            # A new exception each time: one that is raised repeatedly accumulates tracebacks.
            raise CredentialsUnusable(str(content))
        return content

    def _look(self) -> None:
        try:
            signature = _Signature.of(self._path.stat())
        except OSError:
            signature = None
        if signature is not None and signature == self._signature:
            return
        before = self._current
        try:
            self._current, self._signature = _read(self._path, self._parse)
        except CredentialsUnusable as problem:
            # Without a signature, each check reads the file again: the disk may recover.
            self._current, self._signature = problem, None
            if str(before) != str(problem):
                LOG.error("%s; every login is refused until the file is fixed", problem)
        else:
            LOG.info("%s has changed; its new content is in use", self._path)


def _read(path: Path, parse: Callable[[str], Content]) -> tuple[Content, _Signature]:
    try:
        with path.open("rb") as file:
            # Before reading, so that the next check notices a change made meanwhile.
            signature = _Signature.of(os.fstat(file.fileno()))
            raw = file.read(_SIZE_MAX + 1)
    except OSError as error:
        raise CredentialsUnusable(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}"
        ) from error
    if len(raw) > _SIZE_MAX:
        raise CredentialsUnusable(f"cannot read {path}: it is larger than 256 MiB")
    try:
        return parse(raw.decode()), signature
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise CredentialsUnusable(f"{path}, line {number}: this is not UTF-8") from None
    except MalformedLine as error:
        raise CredentialsUnusable(f"{path}, {error}") from None
