# SPDX-License-Identifier: Apache-2.0
"""A copy of the fleet that is kept by `GET /berth/v1/changes` alone, and held against the fleet."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from berth.api.berth_v1.changes import events_since
from berth.api.berth_v1.fleet import INCLUDED, _lines, _plain
from berth.index import Index, Snapshot
from berth.store.engine.database import Database, Observer


def lines_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The lines of the fleet by UUID."""
    parts = _lines(snapshot, _plain(snapshot, INCLUDED), math.inf)
    lines = map(msgspec.json.decode, chain.from_iterable(parts))
    return {line["uuid"]: line for line in lines}


@dataclass
class Follower:
    """A copy of the fleet, kept by the changes alone."""

    revision: str
    lines: dict[str, dict[str, Any]]
    commits: Counter[str] = field(default_factory=Counter)
    names: int = 0

    @classmethod
    def of(cls, index: Index) -> Follower:
        """A copy of the whole fleet."""
        snapshot = index.snapshot()
        return cls(snapshot.revision, lines_of(snapshot))

    def follow(self, db: Database, index: Index) -> None:
        """Apply what has changed; any worker can answer."""
        snapshot = index.snapshot()
        for event in events_since(db, snapshot, self.revision):
            self._apply(**event)
        self.revision = snapshot.revision
        assert self.lines == lines_of(snapshot)

    def _apply(self, *, change: str, commits: int, uuid: str = "", **state: Any) -> None:
        if change == "names":
            self.names += commits
            return
        self.commits[uuid] += commits
        if change == "gone":
            # It may have come and gone between two looks.
            self.lines.pop(uuid, None)
            return
        if change == "usage":
            before = self.lines[uuid]
            assert state["generation"] >= before["generation"]
            self.lines[uuid] = {**before, **state}
        else:
            assert state["parent"] is None or state["parent"] in self.lines
            self.lines[uuid] = {"uuid": uuid, **state}


class Counting(Observer):
    """Counts the reports of foreign writes."""

    found = 0

    def found_foreign_write(self) -> None:
        """Count one provider."""
        self.found += 1
