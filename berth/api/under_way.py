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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

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

    @contextmanager
    def choosing(self, began: int) -> Iterator[Counter[tuple[ProviderId, ClassId]]]:
        """Choose, one at a time. Gives what others take that a snapshot since `began` may lack."""
        with self._choosing:
            taken: Counter[tuple[ProviderId, ClassId]] = Counter()
            with self._lock:
                seen = [each for each in self._claiming if each.ended is None or each.ended > began]
            for each in seen:
                taken.update(each.taken)
            yield taken

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
