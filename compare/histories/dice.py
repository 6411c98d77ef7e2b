# SPDX-License-Identifier: Apache-2.0
"""The chance that a history is drawn from: the same seed throws the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

_MINOR_MAX = 39
#: How many requests ask for the newest microversion among those that could be asked.
_NEWEST_SHARE = 0.35


class Dice:
    """Throws of the kinds that histories need.

    Args:
        since: the oldest minor number of a microversion that is thrown.
    """

    def __init__(self, seed: str, since: int = 0) -> None:
        self._random = random.Random(seed)
        self._since = since

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def between(self, lowest: int, highest: int) -> int:
        """A whole number, both ends included."""
        return self._random.randint(lowest, highest)

    def one_of(self, choices: Sequence[T]) -> T:
        """One of the choices, each as likely."""
        return self._random.choice(choices)

    def weighted(self, choices: Sequence[T], weights: Sequence[int]) -> T:
        """One of the choices, as likely as its weight says."""
        return self._random.choices(choices, weights)[0]

    def drawn(self, table: Mapping[T, int]) -> T:
        """One of the keys, as likely as its weight says."""
        return self.weighted(tuple(table), tuple(table.values()))

    def some_of(self, choices: Sequence[T], fewest: int, most: int) -> list[T]:
        """Between `fewest` and `most` of the choices without repetition, if there are so many."""
        count = min(self.between(fewest, most), len(choices))
        return self._random.sample(choices, count)

    def fresh_uuid(self) -> str:
        """A uuid that nothing has yet."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def minor(self, since: int = 0, until: int = _MINOR_MAX) -> int:
        """The minor number of a microversion between the two, now and then the newest."""
        return until if self.chance(_NEWEST_SHARE) else self.between(max(since, self._since), until)
