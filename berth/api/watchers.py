# SPDX-License-Identifier: Apache-2.0
"""What requests that wait for the fleet to change wait for. Source: spec/beyond.md 6.2.

`berth.edge.watchers` wakes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import msgspec

from berth.index import Snapshot

_encode = msgspec.json.Encoder().encode

#: Bytes that an event takes beside its data.
_EVENT_BYTES: Final = 256

#: Events that are sent in one piece.
_PART: Final = 1000


class Changes:
    """What has changed up to a revision, encoded once for whoever is told.

    Args:
        events: each has its kind as `change`.

    Attributes:
        count: the number of events.
        size: the bytes of memory that they take, about.
    """

    def __init__(self, revision: str, events: Sequence[Mapping[str, Any]]) -> None:
        self._revision = revision
        self._events = [(event["change"].encode(), _encode(event)) for event in events]
        self.count = len(events)
        self.size = sum(_EVENT_BYTES + len(data) for _, data in self._events)

    def lines(self) -> Iterator[bytes]:
        """As JSON lines, in pieces."""
        return self._pieces(b"%.0s%s\n", self._closing() + b"\n")

    def sent(self) -> Iterator[bytes]:
        """As server-sent events, in pieces."""
        id_ = self._revision.encode()
        end = b"event: revision\nid: %s\ndata: %s\n\n" % (id_, self._closing())
        return self._pieces(b"event: %s\ndata: %s\n\n", end)

    def _pieces(self, form: bytes, end: bytes) -> Iterator[bytes]:
        """The events, each in a form, and the end, which is sent with the last ones."""
        piece = b""
        for begin in range(0, self.count, _PART):
            if begin:
                yield piece
            piece = b"".join(form % event for event in self._events[begin : begin + _PART])
        yield piece + end

    def _closing(self) -> bytes:
        return _encode({"revision": self._revision, "events": self.count})


class Step:
    """A revision, and what has changed since the step before.

    Attributes:
        changes: None: it cannot be told, because the database was restored, or is not kept longer.
        next: the step after this one; None: there is none yet.
    """

    __slots__ = ("changes", "next", "revision")

    def __init__(self, revision: str, changes: Changes | None) -> None:
        self.revision = revision
        self.changes = changes
        self.next: Step | None = None


class Watchers(Protocol):
    """The requests of one process that wait for changes."""

    def clock(self) -> float:
        """Monotonic seconds."""

    def place(self) -> AbstractContextManager[None]:
        """A place to wait, for as long as the context lasts.

        Raises:
            Refused: 503, if there is none.
        """

    def join(self) -> tuple[Step, Snapshot]:
        """The present step and its fleet, for a request that has a place.

        Raises:
            Unavailable: the database cannot be read.
        """

    def wait(self, step: Step, until: float, goes_on: Callable[[], bool]) -> Step | None:
        """The step after one; None if there is none until a time, or if the wait is over.

        Args:
            until: by `clock`.
            goes_on: whether to wait at all; called again and again.
        """
