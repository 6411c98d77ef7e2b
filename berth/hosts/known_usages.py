# SPDX-License-Identifier: Apache-2.0
"""What is used of what a host does not have any more, at the price that an idle pass may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from berth.hosts.report_client import ReportClient

#: Seconds between two questions whose answer may be what it was.
_PAUSE_S: Final = 50.0


@dataclass(slots=True)
class _Told:
    usages: Mapping[str, int]
    generation: int | None
    at: float
    #: When a driver last wanted to know it.
    wanted_at: float


class KnownUsages:
    """Remembers what was told of the use of providers, for the drivers, who ask in each pass.

    A claim moves a provider's generation on, so it is asked for again; who lets go of something
    does not, and so of the rest one is asked for again in each pass, in turn.
    """

    def __init__(self, client: ReportClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._told: dict[str, _Told] = {}
        #: When one was asked for again.
        self._turn_at = clock()

    def used(self, uuid: str) -> Mapping[str, int]:
        """What is used of a provider, by resource class; a `drivers.Used`."""
        told, now = self._told.get(uuid), self._clock()
        generation = self._client.last_known_generation(uuid)
        if told is not None and told.generation == generation:
            told.wanted_at = now
            if not self._has_turn(told, now):
                return told.usages
            self._turn_at = now
        usages = self._client.get_usages(uuid)
        self._told[uuid] = _Told(usages, generation, now, now)
        return usages

    def _has_turn(self, told: _Told, now: float) -> bool:
        """Whether it was told longest ago, of what is still wanted to be known."""
        still = self._turn_at - _PAUSE_S
        oldest = min(one.at for one in self._told.values() if one.wanted_at >= still)
        return now - self._turn_at >= _PAUSE_S and told.at <= oldest
