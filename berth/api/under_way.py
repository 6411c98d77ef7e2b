# SPDX-License-Identifier: Apache-2.0
"""Placements whose claims are being written: what they take counts as used for the next choice.

Without this, clients that place at the same time would all choose the same best host, and all but
one would lose a race. It is a help, not a promise: other processes do not see it, and the claim
itself decides. So where nothing fits with it, a placement looks again without.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from msgspec import Struct

from berth.api.errors import overloaded
from berth.candidates.place import SharedPools
from berth.index.scenario import Overlay
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: Provider and class -> amount.
Taken = Mapping[tuple[ProviderId, ClassId], int]


class Claiming(Struct, eq=False):
    """A placement that was chosen.

    Attributes:
        commit: the writer and its count of commits with which it was written, or is about to be.
        has_ended: whether the outcome is known.
    """

    taken: Taken
    commit: tuple[int, int] | None = None
    has_ended: bool = False

    def committing(self, writer: int, seq: int) -> None:
        """It is about to be written with a commit."""
        self.commit = writer, seq

    def is_in(self, fleet: Snapshot) -> bool:
        """Whether a fleet has what it takes as used."""
        if self.commit is None:
            return False
        writer, seq = self.commit
        return fleet.clock.heads.get(writer, 0) >= seq


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

    A placement counts until it has failed, or a snapshot has its commit. Moments are numbered: a
    choice may see a snapshot that was taken after it began.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        #: The choices that are being made.
        self._choices = 0
        self._claiming: list[Claiming] = []
        #: Whether `_ahead` has a claim that has failed.
        self._has_failed = False
        #: Guards the attributes below.
        self._choosing = threading.Lock()
        #: What the last choice saw, with what has been chosen since, and the moment before its
        #: snapshot was taken. PERF bench, place: with 64 clients, a snapshot for each choice and
        #: the sum of all claims took four times as long as the search.
        self._fleet: Snapshot | None = None
        self._ahead: Overlay | None = None
        self._pools = SharedPools()
        self._moment = 0

    @contextmanager
    def begun(self) -> Iterator[int]:
        """A choice begins; take the snapshot after this. Gives the moment."""
        with self._lock:
            self._now += 1
            self._choices += 1
            began = self._now
        try:
            yield began
        finally:
            with self._lock:
                self._choices -= 1
                self._forget()

    def view(self, take: Callable[[], Snapshot]) -> View:
        """What a choice sees that will not be claimed."""
        with self._lock:
            claiming = [*self._claiming]
        snapshot = take()
        ahead = _with(snapshot, claiming)
        return View(snapshot, snapshot if ahead is None else ahead.snapshot)

    @contextmanager
    def choosing(
        self, began: int, take: Callable[[], Snapshot], *, within: float = math.inf
    ) -> Iterator[View]:
        """Choose what will be claimed, one choice at a time. Gives what it sees.

        Args:
            take: takes a snapshot; not called if another choice has taken one since this one began.
            within: seconds that it may wait for those before it.

        Raises:
            Refused: 503, those before it took longer.
        """
        # -1 stands for as long as it takes.
        if not self._choosing.acquire(timeout=-1 if within == math.inf else max(within, 0)):
            raise overloaded()
        try:
            fleet = self._fleet
            if fleet is None or began > self._moment:
                fleet = self._taken(take)
            ahead = fleet if self._ahead is None else self._ahead.snapshot
            has_others = self._choices > 1 or bool(self._claiming)
            yield View(fleet, ahead, self._pools if has_others else None)
        finally:
            self._choosing.release()

    def _taken(self, take: Callable[[], Snapshot]) -> Snapshot:
        """A new snapshot, and what goes with it."""
        with self._lock:
            moment = self._now
        fleet = take()
        # What goes with the same snapshot stays, unless one of the claims has failed.
        if fleet is not self._fleet or self._has_failed:
            with self._lock:
                self._has_failed = False
                self._claiming = [each for each in self._claiming if not each.is_in(fleet)]
                claiming = [*self._claiming]
            self._ahead = _with(fleet, claiming)
            self._fleet, self._pools = fleet, SharedPools()
        self._moment = moment
        return fleet

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
        with self._lock:
            self._claiming.append(claiming)
        return claiming

    def end(self, claiming: Claiming, *, is_written: bool) -> None:
        """The outcome of a placement is known."""
        with self._lock:
            if not is_written and claiming in self._claiming:
                self._claiming.remove(claiming)
                self._has_failed = True
            claiming.has_ended = True
            self._forget()

    def _forget(self) -> None:
        """Hold no snapshot while nothing is placed: the next one has all commits. Needs the
        lock."""
        if not self._choices and all(each.has_ended for each in self._claiming):
            self._claiming = []
            self._fleet = self._ahead = None
            self._pools = SharedPools()


def _with(snapshot: Snapshot, claiming: Iterable[Claiming]) -> Overlay | None:
    """The fleet as if some claims were written; None if it has all of them."""
    taken: Counter[tuple[ProviderId, ClassId]] = Counter()
    for each in claiming:
        if not each.is_in(snapshot):
            taken.update(each.taken)
    if not taken:
        return None
    overlay = Overlay(snapshot)
    overlay.use(taken)
    return overlay
