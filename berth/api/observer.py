# SPDX-License-Identifier: Apache-2.0
"""The events that the API reports, for metrics."""

from __future__ import annotations

from typing import Protocol

from berth.model.errors import Unavailable


class Observer(Protocol):
    """Receives the events of one application. Calls may overlap, and must be short."""

    def claimed(self, consumers: int) -> None:
        """A write gave this many consumers allocations."""

    def released(self, consumers: int) -> None:
        """A write removed this many consumers' allocations."""

    def searched(self, *, trees: int, candidates: int, ended: str | None) -> None:
        """A search for candidates ended.

        Args:
            trees: how many it examined.
            candidates: how many it returned.
            ended: why it ended before it had everything: `time`, `size`, `memory` or `gone`.
        """

    def search_refused(self) -> None:
        """A search was refused a place."""

    def conflicted(self, code: str) -> None:
        """A request was refused with 409 and this error code."""

    def database_failed(self, error: Unavailable, request_id: str | None) -> None:
        """A request was refused because the database is unavailable."""
