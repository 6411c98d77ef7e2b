# SPDX-License-Identifier: Apache-2.0
"""The audit log: a JSON line for every request for an operation that writes, whatever its outcome,
and for every consumer that berth releases because its lease has expired.

The line is written after the commit and before the response, by the thread that serves the request.
A line that cannot be written never fails the request: it is counted, and reported in the log.

Several processes append whole lines to the file, which may be rotated at any time. Each line is one
write to a file that is opened to append, so lines of different processes never mix. Before each
line the file at the path is compared with the open one: after a rotation by renaming, or if the
file was removed, the line starts the new file.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.audit import TRAIL, Trail
from berth.config import ConfigurationError
from berth.edge.audit_line import line_of, line_of_expiry
from berth.edge.request_log import Headers, noting
from berth.index import Index
from berth.store.engine.write_record import Holdings

LOG = logging.getLogger(__name__)

#: Seconds after which the same trouble is logged again.
AGAIN_S: Final = 10.0

#: A new file is private to its owner: it shows who did what.
_MODE: Final = 0o600

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


class Observer:
    """Receives the events of an audit log; this one ignores them. Calls may overlap, and must be
    short."""

    def line_written(self) -> None:
        """A line is in the file."""

    def line_lost(self) -> None:
        """A line could not be written."""


class AuditLog:
    """The audit log of one application.

    Args:
        clock: monotonic seconds.

    Raises:
        ConfigurationError: the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        index: Index,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.observer = Observer()
        self._file = open_file(path)
        self._index = index
        self._clock = clock
        self._lock = threading.Lock()
        self._lost = 0
        self._logged_at = float("-inf")

    def layer(self, application: WSGIApplication) -> WSGIApplication:
        """Wrap an application that leaves trails."""

        def audited(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            def note(status: str, _: Headers) -> None:
                trail: Trail | None = environ.pop(TRAIL, None)
                if trail is not None:
                    self.write(trail, environ, int(status[:3]))

            return application(environ, noting(start_response, note))

        return audited

    def write(self, trail: Trail, environ: WSGIEnvironment, status: int) -> None:
        """Write the line of a request that is answered with a status."""
        self._append(lambda: line_of(trail, environ, status, self._index, time.time()))

    def write_expired(self, former: Holdings, *, is_unknown: bool = False) -> None:
        """Write a line for each consumer whose lease had expired.

        Args:
            former: what they had.
            is_unknown: whether they may have kept that.
        """
        for each in former.each():
            line = partial(line_of_expiry, each, self._index, time.time(), is_unknown=is_unknown)
            self._append(line)

    def _append(self, line: Callable[[], bytes]) -> None:
        try:
            self._file.append(line())
        except OSError as error:
            self._note_lost(error.strerror or str(error))
        except Exception:  # the write is committed, so its answer must not become a 500
            LOG.exception("Cannot make a line of the audit log")
            self._note_lost("a bug in berth")
        else:
            self.observer.line_written()

    def _note_lost(self, reason: str) -> None:
        self.observer.line_lost()
        with self._lock:
            self._lost += 1
            now = self._clock()
            if now - self._logged_at < AGAIN_S:
                return
            lost, self._lost, self._logged_at = self._lost, 0, now
        LOG.error(
            "Cannot write the audit log %s: %s; lines lost since the last such message: %d",
            self._file.path,
            reason,
            lost,
        )


def open_file(path: Path) -> AuditFile:
    """The file of an audit log.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        return AuditFile(path)
    except OSError as error:
        raise ConfigurationError(
            f"[berth]audit_log: cannot write {path}: {(error.strerror or str(error)).lower()}"
        ) from error


class AuditFile:
    """The file at a path, for all threads of this process.

    Raises:
        OSError: it cannot be opened, or created.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._lock = threading.Lock()
        self._descriptor, self._identity = _open(path)
        #: Whether the last line was only written in part, because the disk is full.
        self._is_torn = False

    def append(self, line: bytes) -> None:
        """Append a line, which must end in a newline.

        Raises:
            OSError: the line was not written, or only in part.
        """
        with self._lock:
            self._follow()
            text = b"\n" + line if self._is_torn else line
            written = os.write(self._descriptor, text)
            self._is_torn = written < len(text) and (written > 0 or self._is_torn)
            if written < len(text):
                raise OSError("only a part of the line was written")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._descriptor)

    def _follow(self) -> None:
        """Open the file again if another one, or none, is at the path."""
        try:
            status = os.stat(self.path)
            if (status.st_dev, status.st_ino) == self._identity:
                return
        except FileNotFoundError:
            pass
        descriptor, self._identity = _open(self.path)
        os.close(self._descriptor)
        self._descriptor, self._is_torn = descriptor, False


def _open(path: Path) -> tuple[int, tuple[int, int]]:
    """Open a file to append, and identify it by its device and inode."""
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
        os.fchmod(descriptor, _MODE)
    except FileExistsError:
        # Also if another process has just created it.
        descriptor = os.open(path, _FLAGS | os.O_CREAT, _MODE)
    status = os.fstat(descriptor)
    return descriptor, (status.st_dev, status.st_ino)
