# SPDX-License-Identifier: Apache-2.0
"""What a node's tree looks like after a pass, for those who watch over it: who has overfilled it.

A service accepts inventory below what is used of it, and from then on nothing more fits there. That
is looked at where an inventory has become smaller, where the use of one that was too small has
changed, and else once an hour: one provider in a pass that asked little, and all of them in one
that asked more anyway. So an idle pass stays at two requests, and a start costs nothing more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from berth.hosts.drivers.owned import OWNER_TRAIT
from berth.hosts.errors import ComputeError
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import Inventory as Records
from berth.hosts.provider_tree import ProviderData
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Node
from berth.model.inventory import Inventory

LOG = logging.getLogger(__name__)

#: Seconds after which the use of a provider is looked at again, whatever has happened.
_LOOK_S: Final = 3600.0

#: Requests that an idle pass may cost.
_IDLE_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class OverFull:
    """More is used of a resource class than there is."""

    provider: str
    resource_class: str
    used: int
    capacity: int

    def __str__(self) -> str:
        return f"{self.provider} has {self.capacity} {self.resource_class}, and {self.used} is used"


@dataclass(frozen=True, slots=True)
class TreeView:
    """A node's tree in numbers."""

    providers: int = 0
    #: Children that no driver of berth has made.
    others: int = 0
    over_full: tuple[OverFull, ...] = ()


@dataclass(slots=True)
class _Seen:
    """A provider when it was last seen, and when its use was last looked at."""

    generation: int | None
    capacities: Mapping[str, int]
    looked_at: float = -inf
    over_full: tuple[OverFull, ...] = ()


class TreeWatch:
    """Looks at the trees of nodes when they were reported; from the thread that reports them."""

    def __init__(self, client: ReportClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        #: By node and provider.
        self._seen: dict[Node, dict[str, _Seen]] = {}
        self._requests_before = 0

    def look(self, node: Node, plan: Plan) -> TreeView:
        """A node's tree, with what is known of its use.

        Args:
            plan: what the report has just sent.
        """
        sent = self._client.service.requests.total() - self._requests_before
        tree = self._client.last_known_tree(node.uuid)
        found = [tree.data(uuid) for uuid in tree.get_provider_uuids(node.uuid)]
        is_first = node not in self._seen
        before = self._seen.get(node, {})
        seen = {data.uuid: self._see(data, before.get(data.uuid)) for data in found}
        self._seen[node] = seen
        urgent = [
            data
            for data in found
            if _is_urgent(seen[data.uuid], before.get(data.uuid))
            or (is_first and data.uuid in plan.inventories)
        ]
        self._look_at(urgent, seen)
        since = self._clock() - _LOOK_S
        due = [data for data in found if data.inventory and seen[data.uuid].looked_at <= since]
        is_idle = is_first or sent + len(urgent) <= _IDLE_MAX
        spare = 0 if is_first else max(_IDLE_MAX - sent - len(urgent), 0)
        self._look_at(due[:spare] if is_idle else due, seen)
        self._requests_before = self._client.service.requests.total()
        over_full = tuple(one for provider in seen.values() for one in provider.over_full)
        _tell(over_full, [one for provider in before.values() for one in provider.over_full])
        others = sum(1 for data in found[1:] if not _is_own(data))
        return TreeView(len(found), others, over_full)

    def _see(self, data: ProviderData, before: _Seen | None) -> _Seen:
        seen = _Seen(data.generation, _capacities(data.inventory))
        if before is not None:
            seen.looked_at, seen.over_full = before.looked_at, before.over_full
        return seen

    def _look_at(self, providers: Iterable[ProviderData], seen: Mapping[str, _Seen]) -> None:
        """Ask for the use of some providers; where that fails, they are as they were."""
        for data in providers:
            try:
                used = self._client.get_usages(data.uuid)
            except ComputeError as error:
                LOG.debug("The use of %s is not known: %s", data.name, error)
                return
            one = seen[data.uuid]
            one.looked_at = self._clock()
            one.over_full = tuple(
                OverFull(data.name, name, used[name], capacity)
                for name, capacity in one.capacities.items()
                if used.get(name, 0) > capacity
            )


def _is_urgent(seen: _Seen, before: _Seen | None) -> bool:
    """Whether less is there than before, or what was too little may have become enough."""
    if before is None:
        return False
    return any(
        seen.capacities.get(name, 0) < capacity for name, capacity in before.capacities.items()
    ) or (bool(before.over_full) and seen.generation != before.generation)


def _capacities(records: Records) -> dict[str, int]:
    return {name: Inventory(**record).capacity for name, record in records.items()}


def _is_own(data: ProviderData) -> bool:
    return any(trait.startswith(OWNER_TRAIT) for trait in data.traits)


def _tell(over_full: Iterable[OverFull], before: Iterable[OverFull]) -> None:
    """Say once of each that it is over-full, and that it is so no more."""

    def keys(some: Iterable[OverFull]) -> dict[tuple[str, str], OverFull]:
        return {(one.provider, one.resource_class): one for one in some}

    now, then = keys(over_full), keys(before)
    for key in now.keys() - then.keys():
        LOG.warning("%s: nothing more fits there until some of it is given back", now[key])
    for provider, resource_class in then.keys() - now.keys():
        LOG.info("%s has enough %s again", provider, resource_class)
