# SPDX-License-Identifier: Apache-2.0
"""Placements whose claims are being written: what they take counts as used for the next choice.

Without this, clients that place at the same time would all choose the same best host, and all but
one would lose a race. It is a help, not a promise: other processes do not see it, and the claim
itself decides. So where nothing fits with it, a placement looks again without.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: Provider and class -> amount.
Taken = Mapping[tuple[ProviderId, ClassId], int]


@dataclass(slots=True, eq=False)
class Claiming:
    """A placement that was chosen.

    Attributes:
        ended: when its outcome was known; None before.
    """

    taken: Taken
    ended: int | None = None


class View(NamedTuple):
    """What a choice sees.

    Attributes:
        fleet: a snapshot that was taken after the choice began.
        ahead: the same with what others are claiming.
    """

    fleet: Snapshot
    ahead: Snapshot


class UnderWay:
    """The placements of one process.

    Moments are numbered. A choice sees the placements whose outcome was not known when it began:
    it takes its snapshot later, and the snapshot has the outcome of all others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._choosing = threading.Lock()
        self._now = 0
        self._claiming: list[Claiming] = []
        #: When each choice that is being made began.
        self._begun: Counter[int] = Counter()
        #: The view of the last choice, when that choice began, and whose claims `ahead` has.
        #: PERF bench, place: with 64 clients, adding all of them up each time took four times as
        #: long as the search.
        self._view: View | None = None
        self._moment = 0
        self._added: list[Claiming] = []

    @contextmanager
    def begun(self) -> Iterator[int]:
        """A choice begins; take the snapshot after this. Gives the moment."""
        with self._lock:
            self._now += 1
            began = self._now
            self._begun[began] += 1
        try:
            yield began
        finally:
            with self._lock:
                del self._begun[began]
                self._forget()

    def view(self, began: int, snapshot: Snapshot) -> View:
        """What a choice sees that began at a moment, and took a snapshot since."""
        return View(snapshot, _with(snapshot, self._seen_since(began)))

    @contextmanager
    def choosing(self, began: int, snapshot: Snapshot) -> Iterator[View]:
        """Choose what will be claimed, one choice at a time. Gives what it sees, perhaps in a
        newer snapshot of another choice."""
        with self._choosing:
            yield self._newest(began, snapshot)

    def _newest(self, began: int, snapshot: Snapshot) -> View:
        view, added = self._view, self._added
        if view is None or began > self._moment:
            self._moment = began
            if view is None or view.fleet is not snapshot:
                view, added = View(snapshot, snapshot), []
        seen = self._seen_since(self._moment)
        if not set(added).issubset(seen):
            view, added = View(view.fleet, view.fleet), []
        new = [each for each in seen if each not in added]
        self._view = View(view.fleet, _with(view.ahead, new))
        self._added = [*added, *new]
        return self._view

    def _seen_since(self, moment: int) -> list[Claiming]:
        """The claims that a snapshot taken since a moment may lack."""
        with self._lock:
            return [each for each in self._claiming if each.ended is None or each.ended > moment]

    def add(self, taken: Taken) -> Claiming:
        """A placement was chosen, and will be claimed. Call it while choosing."""
        claiming = Claiming(taken)
        with self._lock:
            self._claiming.append(claiming)
        return claiming

    def end(self, claiming: Claiming) -> None:
        """The outcome of a placement is known."""
        with self._lock:
            self._now += 1
            claiming.ended = self._now
            self._forget()

    def _forget(self) -> None:
        """Drop what every choice sees in its snapshot. Needs the lock."""
        oldest = min(self._begun, default=self._now + 1)
        self._claiming = [
            each for each in self._claiming if each.ended is None or each.ended > oldest
        ]
        if not self._claiming and not self._begun:
            # Holds no snapshot while nothing is placed.
            self._view, self._added = None, []


def _with(snapshot: Snapshot, claims: Iterable[Claiming]) -> Snapshot:
    """The fleet as if some claims were written."""
    taken: Counter[tuple[ProviderId, ClassId]] = Counter()
    for each in claims:
        taken.update(each.taken)
    return with_usage(snapshot, taken)
