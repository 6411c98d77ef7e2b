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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from berth.candidates.shared_pools import SharedPools
from berth.index.overlay import Overlay
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
        ahead: the same with what others are claiming. For `UnderWay.choosing` only as long as that
            lasts.
        pools: what it may share with other choices that see the same; None if nobody else places.
    """

    fleet: Snapshot
    ahead: Snapshot
    pools: SharedPools | None = None


class UnderWay:
    """The placements of one process.

    Moments are numbered. A choice sees the placements whose outcome was not known when it began, or
    at a later moment: it takes its snapshot later still, and the snapshot has the outcome of all
    others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self._claiming: list[Claiming] = []
        #: When each choice that is being made began.
        self._begun: Counter[int] = Counter()
        #: Guards the attributes below.
        self._choosing = threading.Lock()
        #: What the last choice saw, with what has been chosen since, and the moment before its
        #: snapshot was taken. PERF bench, place: with 64 clients, a snapshot for each choice and
        #: the sum of all claims took four times as long as the search.
        self._fleet: Snapshot | None = None
        self._ahead: Overlay | None = None
        #: The claims that `ahead` has.
        self._added: set[Claiming] = set()
        self._pools = SharedPools()
        self._moment = 0

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
        ahead = _with(snapshot, self._seen_since(began))
        return View(snapshot, snapshot if ahead is None else ahead.snapshot)

    @contextmanager
    def choosing(self, began: int, take: Callable[[], Snapshot]) -> Iterator[View]:
        """Choose what will be claimed, one choice at a time. Gives what it sees.

        Args:
            take: takes a snapshot; not called if another choice has taken one since this one began.
        """
        with self._choosing:
            fleet = self._fleet
            if fleet is None or began > self._moment:
                fleet = self._taken(take)
            ahead = fleet if self._ahead is None else self._ahead.snapshot
            yield View(fleet, ahead, self._pools if self._has_others() else None)

    def _taken(self, take: Callable[[], Snapshot]) -> Snapshot:
        """A new snapshot, and what goes with it."""
        with self._lock:
            moment = self._now
        fleet = take()
        seen = self._seen_since(moment)
        # What goes with the same snapshot stays, unless one of the claims has failed.
        if fleet is not self._fleet or not self._added.issubset(seen):
            self._ahead, self._added = _with(fleet, seen), set(seen)
            self._fleet, self._pools = fleet, SharedPools()
        self._moment = moment
        return fleet

    def _has_others(self) -> bool:
        """Whether others place at the same time."""
        return len(self._begun) > 1 or bool(self._claiming)

    def fix(self) -> None:
        """Let `View.ahead` stay as it is after the choice. Call it while choosing."""
        if self._ahead is not None:
            self._ahead.fix()

    def add(self, taken: Taken) -> Claiming:
        """A placement was chosen, and will be claimed. Call it while choosing."""
        assert self._fleet is not None, "it was chosen from this"
        if self._ahead is None:
            self._ahead = Overlay(self._fleet)
        self._ahead.use(taken)
        self._pools.note(taken)
        claiming = Claiming(taken)
        self._added.add(claiming)
        with self._lock:
            self._claiming.append(claiming)
        return claiming

    def end(self, claiming: Claiming) -> None:
        """The outcome of a placement is known."""
        with self._lock:
            self._now += 1
            claiming.ended = self._now
            self._forget()

    def _seen_since(self, moment: int) -> list[Claiming]:
        """The claims that a snapshot taken since a moment may lack."""
        with self._lock:
            return [each for each in self._claiming if each.ended is None or each.ended > moment]

    def _forget(self) -> None:
        """Drop what every choice sees in its snapshot. Needs the lock."""
        oldest = min(self._begun, default=self._now + 1)
        self._claiming = [
            each for each in self._claiming if each.ended is None or each.ended > oldest
        ]
        if not self._claiming and not self._begun:
            # Holds no snapshot while nothing is placed.
            self._fleet = self._ahead = None
            self._added, self._pools = set(), SharedPools()


def _with(snapshot: Snapshot, claims: Sequence[Claiming]) -> Overlay | None:
    """The fleet as if some claims were written; None if there are none."""
    if not claims:
        return None
    overlay = Overlay(snapshot)
    for each in claims:
        overlay.use(each.taken)
    return overlay
