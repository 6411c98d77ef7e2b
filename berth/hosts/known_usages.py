# SPDX-License-Identifier: Apache-2.0
"""Remembers the usage of providers that a host no longer has: an idle pass costs few requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from berth.hosts.report_client import ReportClient

#: Seconds before a usage is read again.
_PAUSE_S: Final = 50.0


@dataclass(slots=True)
class _Remembered:
    usages: Mapping[str, int]
    generation: int | None
    at: float
    #: When a driver last asked for it.
    wanted_at: float


class KnownUsages:
    """Remembers usages for the drivers, which ask in every pass.

    A claim increases a provider's generation, so its usage is read again. Releasing an
    allocation does not, so in each pass one of the other usages is read again, in turn.
    """

    def __init__(self, client: ReportClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._remembered: dict[str, _Remembered] = {}
        #: When a usage was last read again.
        self._turn_at = clock()

    def used(self, uuid: str) -> Mapping[str, int]:
        """The usage of a provider, by resource class; a `drivers.Used`."""
        last, now = self._remembered.get(uuid), self._clock()
        generation = self._client.last_known_generation(uuid)
        if last is not None and last.generation == generation:
            last.wanted_at = now
            if not self._has_turn(last, now):
                return last.usages
            self._turn_at = now
        usages = self._client.get_usages(uuid)
        self._remembered[uuid] = _Remembered(usages, generation, now, now)
        return usages

    def _has_turn(self, last: _Remembered, now: float) -> bool:
        """Whether this usage is the oldest of those that drivers still ask for."""
        still = self._turn_at - _PAUSE_S
        oldest = min(other.at for other in self._remembered.values() if other.wanted_at >= still)
        return now - self._turn_at >= _PAUSE_S and last.at <= oldest
