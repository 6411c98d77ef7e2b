# SPDX-License-Identifier: Apache-2.0
"""Pools from which several calls choose, one after another, while they see one state of the fleet.

Clients who place at the same time mostly ask the same question. The search then runs once for all
of them: what one chooses counts as used for the next, as it does for the consumers of one call.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from berth.candidates.choosing import Chosen, Limits, choose_from
from berth.candidates.pool import Amounts, Pool
from berth.model.budget import Budget

#: Candidates of all pools together: some 100 bytes each.
CANDIDATES_MAX: Final = 1 << 17
_POOLS_MAX: Final = 8


@dataclass(slots=True)
class _Shared:
    """A pool.

    Attributes:
        noted: how many of `SharedPools._taken` it has.
    """

    pool: Pool
    noted: int


class SharedPools:
    """The pools of one state. For one thread at a time."""

    def __init__(self) -> None:
        self._pools: dict[Hashable, _Shared] = {}
        #: What the choices so far take, in their order.
        self._taken: list[Amounts] = []

    def chosen(
        self, question: Hashable, count: int, limits: Limits, budget: Budget
    ) -> tuple[Pool, Chosen] | None:
        """Candidates from the pool of a question; None if there is none, or it has too few.

        What they take must be noted next.
        """
        shared = self._pools.pop(question, None)
        if shared is None:
            return None
        for taken in self._taken[shared.noted :]:
            shared.pool.use(taken)
        chosen = choose_from(shared.pool, count, limits, budget)
        if chosen is None:
            return None
        self._pools[question] = shared
        shared.noted = len(self._taken) + 1
        return shared.pool, chosen

    def keep(self, question: Hashable, pool: Pool) -> None:
        """Keep a pool, from which a choice was made, for the next with the same question.

        What was chosen must be noted next.
        """
        size = len(pool.fits) + sum(len(each.pool.fits) for each in self._pools.values())
        if size > CANDIDATES_MAX or len(self._pools) == _POOLS_MAX:
            self._pools.clear()
        if len(pool.fits) <= CANDIDATES_MAX:
            pool.outlive()
            self._pools[question] = _Shared(pool, len(self._taken) + 1)

    def note(self, taken: Amounts) -> None:
        """A choice was made."""
        if self._pools:
            self._taken.append(taken)
