# SPDX-License-Identifier: Apache-2.0
"""The audit log: a JSON line for every request for an operation that writes, whatever its outcome,
and for every consumer that berth releases because its lease has expired.

The line is written after the commit and before the response, by the thread that serves the request.
A line that cannot be written never fails the request: it is counted, and reported in the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.audit import TRAIL, Trail
from berth.config import ConfigurationError
from berth.edge.audit_file import AuditFile
from berth.edge.audit_line import line_of, line_of_expiry
from berth.edge.request_log import Headers, noting
from berth.index import Index
from berth.store.replaced import ReplacedAllocations

LOG = logging.getLogger(__name__)

#: Seconds after which the same trouble is logged again.
AGAIN_S: Final = 10.0


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

    def write_expired(self, replaced: ReplacedAllocations, *, is_unknown: bool = False) -> None:
        """Write a line for each consumer whose lease had expired.

        Args:
            replaced: what they had.
            is_unknown: whether they may have kept that.
        """
        for each in replaced.each():
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
