# SPDX-License-Identifier: Apache-2.0
"""Checks a node's tree after a pass for providers that are over capacity.

A service accepts an inventory that is smaller than its usage; nothing more fits there until some of
it is released. The usage is read when an inventory shrank, when the usage of an overfull one
changed, and otherwise once an hour: one provider in each idle pass, and all of them in a pass that
sent more requests anyway. So an idle pass needs at most two requests, and a start no extra one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from berth.hosts.drivers.ownership import is_owned
from berth.hosts.errors import ComputeError, some_of
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import ProviderData
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Node
from berth.model.inventory import Inventory

LOG = logging.getLogger(__name__)

#: Seconds after which the usage of a provider is read again in any case.
_LOOK_S: Final = 3600.0

#: The number of requests that an idle pass may need.
_IDLE_MAX: Final = 2

#: Providers that a message names.
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class OverFull:
    """More of a resource class is used than there is."""

    provider: str
    resource_class: str
    used: int
    capacity: int

    def __str__(self) -> str:
        return f"{self.provider} has {self.capacity} {self.resource_class}, and {self.used} is used"


@dataclass(frozen=True, slots=True)
class TreeView:
    """The state of a node's tree."""

    providers: int = 0
    #: Children that no driver of berth has created.
    others: int = 0
    over_full: tuple[OverFull, ...] = ()
    #: The drains in effect in it.
    drains: tuple[str, ...] = ()


@dataclass(slots=True)
class _Seen:
    """A provider when it was last read, and the time when its usage was last read."""

    generation: int | None = None
    capacities: Mapping[str, int] = field(default_factory=dict)
    looked_at: float = -inf
    over_full: tuple[OverFull, ...] = ()


class TreeWatch:
    """Checks the trees of nodes after they were reported, in the thread that reports them."""

    def __init__(self, client: ReportClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        #: By node and provider.
        self._seen: dict[Node, dict[str, _Seen]] = {}
        #: By node: the drains in effect, and what each drains.
        self._drained: dict[Node, Mapping[str, Sequence[str]]] = {}
        self._requests_before = 0

    def look(self, node: Node, plan: Plan) -> TreeView:
        """Check a node's tree.

        Args:
            plan: what the report has just sent.
        """
        sent = self._client.service.requests.total() - self._requests_before
        tree = self._client.last_known_tree(node.uuid)
        providers = [tree.data(uuid) for uuid in tree.get_provider_uuids(node.uuid)]
        is_first = node not in self._seen
        before = self._seen.get(node, {})
        seen = {data.uuid: _see(data, before.get(data.uuid, _Seen())) for data in providers}
        self._seen[node] = seen
        urgent = [
            data
            for data in providers
            if _is_urgent(seen[data.uuid], before.get(data.uuid))
            or (is_first and data.uuid in plan.inventories)
        ]
        self._look_at(urgent, seen)
        since = self._clock() - _LOOK_S
        due = [data for data in providers if data.inventory and seen[data.uuid].looked_at <= since]
        is_idle = is_first or sent + len(urgent) <= _IDLE_MAX
        spare = 0 if is_first else max(_IDLE_MAX - sent - len(urgent), 0)
        self._look_at(due[:spare] if is_idle else due, seen)
        self._look_for_drains(node)
        self._requests_before = self._client.service.requests.total()
        over_full = tuple(excess for provider in seen.values() for excess in provider.over_full)
        _tell(over_full, [excess for provider in before.values() for excess in provider.over_full])
        others = sum(1 for data in providers[1:] if not is_owned(data.traits))
        return TreeView(len(providers), others, over_full, tuple(sorted(self._drained[node])))

    def _look_for_drains(self, node: Node) -> None:
        """Log once that a drain takes effect in the tree, and once that it no longer has any."""
        before, now = self._drained.get(node, {}), self._client.drains_of(node.uuid)
        self._drained[node] = now
        for drain in before.keys() - now.keys():
            LOG.info("%s is no longer drained by %s", node.name, drain)
        for drain in now.keys() - before.keys():
            why = self._client.reason_of_drain(drain)
            LOG.warning(
                "%s %s drained by %s%s: nothing new is placed there",
                *_subject(node, now[drain]),
                drain,
                f" ({why})" if why else "",
            )

    def _look_at(self, providers: Iterable[ProviderData], seen: Mapping[str, _Seen]) -> None:
        """Read the usage of some providers; if that fails, keep the previous state."""
        for data in providers:
            try:
                used = self._client.get_usages(data.uuid)
            except ComputeError as error:
                LOG.debug("Cannot read the usage of %s: %s", data.name, error)
                return
            last = seen[data.uuid]
            last.looked_at = self._clock()
            last.over_full = tuple(
                OverFull(data.name, name, used[name], capacity)
                for name, capacity in last.capacities.items()
                if used.get(name, 0) > capacity
            )


def _see(data: ProviderData, before: _Seen) -> _Seen:
    capacities = {name: Inventory(**record).capacity for name, record in data.inventory.items()}
    return replace(before, generation=data.generation, capacities=capacities)


def _is_urgent(seen: _Seen, before: _Seen | None) -> bool:
    """Whether the inventory shrank, or the usage of an overfull one may have changed."""
    if before is None:
        return False
    return any(
        seen.capacities.get(name, 0) < capacity for name, capacity in before.capacities.items()
    ) or (bool(before.over_full) and seen.generation != before.generation)


def _subject(node: Node, drained: Sequence[str]) -> tuple[str, str]:
    """What is drained of a node, and the verb that goes with it."""
    if node.name in drained:
        return node.name, "is"
    verb = "is" if len(drained) == 1 else "are"
    return f"{some_of(drained, _NAMED_MAX)} of {node.name}", verb


def _tell(over_full: Iterable[OverFull], before: Iterable[OverFull]) -> None:
    """Log once for each provider that it became overfull, and that it no longer is."""

    def keys(items: Iterable[OverFull]) -> dict[tuple[str, str], OverFull]:
        return {(item.provider, item.resource_class): item for item in items}

    now, then = keys(over_full), keys(before)
    for key in now.keys() - then.keys():
        LOG.warning("%s: nothing more fits there until some of it is released", now[key])
    for provider, resource_class in then.keys() - now.keys():
        LOG.info("%s has enough %s again", provider, resource_class)
