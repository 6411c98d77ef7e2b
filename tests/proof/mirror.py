# SPDX-License-Identifier: Apache-2.0
"""A fleet with a single writer, who therefore knows what every read must show.

Hosts offer VCPU in amounts that change, children come and go, and consumers claim from one host at
a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.proof.history import aggregate_uuid, consumer_uuid, provider_uuid
from tests.proof.wire import Answer

TRAITS: Final = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "STORAGE_DISK_SSD")
AGGREGATES: Final = tuple(aggregate_uuid(number) for number in (1, 2, 3))
HOSTS: Final = tuple(provider_uuid(number) for number in range(1, 9))
CHILDREN: Final = tuple(provider_uuid(100 + number) for number in range(1, 4))
CONSUMERS: Final = tuple(consumer_uuid(number) for number in range(1, 13))
PROJECTS: Final = ("red", "blue")

#: Lists and sums after each write.
_OTHERS: Final = 6

#: All consumers together fit into the smallest inventory.
_TOTAL_MIN: Final = 64
_AMOUNT_MAX: Final = 5

#: Sends a request; the answer.
Ask = Callable[[str, str, Any], Answer]


@dataclass(slots=True)
class Provider:
    """What is known of a provider."""

    name: str
    parent: str | None = None
    generation: int = 0
    #: Of VCPU; 0: no inventory.
    total: int = 0
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


class Claim(NamedTuple):
    """What a consumer has."""

    provider: str
    amount: int
    project: str


class Read(NamedTuple):
    """A request, and what it must show."""

    kind: str
    path: str
    #: What a body shows.
    shown: Callable[[Any], object]
    #: None: 404.
    expected: object


@dataclass(slots=True)
class Mirror:
    """The fleet as its writer knows it."""

    rng: random.Random
    providers: dict[str, Provider] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    def build(self, ask: Ask) -> None:
        """Make the hosts in an empty database."""
        for number, host in enumerate(HOSTS):
            self._create(ask, host, f"host-{number}", None)
            self._replace_inventory(ask, host)

    def write(self, ask: Ask) -> list[Read]:
        """Change something at random.

        Returns:
            The reads of the provider that has changed, and some of the lists and sums that it is
            part of.
        """
        changes = (self._replace_inventory, self._replace_traits, self._replace_aggregates)
        more = (self._rename, self._claim, self._claim, self._release, self._come_or_go)
        touched = self.rng.choice((*changes, *more))(ask, self.rng.choice(HOSTS))
        others = [*self._lists(touched), *self._sums()]
        return [*self._of_provider(touched), *self.rng.sample(others, _OTHERS)]

    # --- Reads ------------------------------------------------------------------------------------

    def _of_provider(self, uuid: str) -> Iterator[Read]:
        path = f"/resource_providers/{uuid}"
        provider = self.providers.get(uuid)
        if provider is None:
            for part in ("", "/inventories", "/traits", "/aggregates", "/usages", "/allocations"):
                yield Read(f"a provider that is gone{part}", f"{path}{part}", str, None)
            return
        seen, used = provider.generation, self._used(uuid)
        holders = {
            name: claim.amount for name, claim in self.claims.items() if claim.provider == uuid
        }
        itself = provider.name, seen, provider.parent
        yield Read("itself", path, _itself, itself)
        yield Read("inventories", f"{path}/inventories", _inventory, (seen, provider.total))
        yield Read("traits", f"{path}/traits", _traits, (seen, provider.traits))
        yield Read("aggregates", f"{path}/aggregates", _aggregates, (seen, provider.aggregates))
        yield Read("usages", f"{path}/usages", _usage, (seen, used if provider.total else None))
        yield Read("allocations", f"{path}/allocations", _holders, (seen, holders))
        if provider.total:
            candidates = f"/allocation_candidates?resources=VCPU:1&in_tree={uuid}"
            yield Read("candidates", candidates, _room, (provider.total, used, provider.traits))

    def _lists(self, uuid: str) -> Iterator[Read]:
        """By every filter that the last write can have made true or false."""
        everyone = self.providers.items()
        yield self._list("", list(self.providers))
        yield self._list(f"uuid={uuid}", [uuid])
        root = self._root(uuid)
        yield self._list(
            f"in_tree={uuid}", [each for each in self.providers if self._root(each) == root]
        )
        for trait in TRAITS:
            having = [each for each, provider in everyone if trait in provider.traits]
            yield self._list(f"required={trait}", having)
            without = [each for each in self.providers if each not in having]
            yield self._list(f"required=!{trait}", without)
        for aggregate in AGGREGATES:
            members = [each for each, provider in everyone if aggregate in provider.aggregates]
            yield self._list(f"member_of={aggregate}", members)
        if (provider := self.providers.get(uuid)) is not None:
            yield self._list(f"name={provider.name}", [uuid])
            free = provider.total - self._used(uuid)
            for amount in (max(free, 1), free + 1):
                fitting = [each for each, of in everyone if of.total - self._used(each) >= amount]
                yield self._list(f"resources=VCPU:{amount}", fitting)

    def _list(self, query: str, uuids: list[str]) -> Read:
        listed = {
            each: (provider.name, provider.generation)
            for each in uuids
            if (provider := self.providers.get(each)) is not None
        }
        kind = f"list by {query.partition('=')[0] or 'nothing'}"
        return Read(kind, f"/resource_providers?{query}", _listed, listed)

    def _sums(self) -> Iterator[Read]:
        for project in PROJECTS:
            amounts = [claim.amount for claim in self.claims.values() if claim.project == project]
            path = f"/usages?project_id={project}"
            yield Read("usages of a project", path, _project, sum(amounts))
            counted = sum(amounts), len(amounts)
            path = f"{path}&consumer_type=all"
            yield Read("usages of a project, with consumers", path, _project_with_count, counted)

    # --- Writes: of a host, or of what belongs to it; the provider that has changed ---------------

    def _replace_inventory(self, ask: Ask, uuid: str) -> str:
        total = self.rng.randint(_TOTAL_MIN, 4 * _TOTAL_MIN)
        self._put(ask, uuid, "inventories", {"VCPU": {"total": total}})
        self.providers[uuid].total = total
        return uuid

    def _replace_traits(self, ask: Ask, uuid: str) -> str:
        traits = self.rng.sample(TRAITS, self.rng.randint(0, len(TRAITS)))
        self._put(ask, uuid, "traits", traits)
        self.providers[uuid].traits = frozenset(traits)
        return uuid

    def _replace_aggregates(self, ask: Ask, uuid: str) -> str:
        aggregates = self.rng.sample(AGGREGATES, self.rng.randint(0, len(AGGREGATES)))
        self._put(ask, uuid, "aggregates", aggregates)
        self.providers[uuid].aggregates = frozenset(aggregates)
        return uuid

    def _rename(self, ask: Ask, uuid: str) -> str:
        name = f"host-{self.rng.randrange(10**9)}"
        _done(ask("PUT", f"/resource_providers/{uuid}", {"name": name}))
        self.providers[uuid].name = name
        return uuid

    def _claim(self, ask: Ask, uuid: str) -> str:
        """For a consumer without allocations; where there is none, one is released."""
        idle = [consumer for consumer in CONSUMERS if consumer not in self.claims]
        if not idle:
            return self._release(ask, uuid)
        claim = Claim(uuid, self.rng.randint(1, _AMOUNT_MAX), self.rng.choice(PROJECTS))
        consumer = self.rng.choice(idle)
        body = {
            "allocations": {uuid: {"resources": {"VCPU": claim.amount}}},
            "project_id": claim.project,
            "user_id": "proof",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        _done(ask("PUT", f"/allocations/{consumer}", body))
        self.claims[consumer] = claim
        self.providers[uuid].generation += 1
        return uuid

    def _release(self, ask: Ask, uuid: str) -> str:
        """Of any consumer; where there is none, one claims. The generation stays."""
        if not self.claims:
            return self._claim(ask, uuid)
        consumer = self.rng.choice(sorted(self.claims))
        _done(ask("DELETE", f"/allocations/{consumer}", None))
        return self.claims.pop(consumer).provider

    def _come_or_go(self, ask: Ask, uuid: str) -> str:
        """A child of the host, or of another if it is there already."""
        child = self.rng.choice(CHILDREN)
        if child in self.providers:
            _done(ask("DELETE", f"/resource_providers/{child}", None))
            del self.providers[child]
        else:
            self._create(ask, child, f"child-{self.rng.randrange(10**9)}", uuid)
        return child

    def _create(self, ask: Ask, uuid: str, name: str, parent: str | None) -> None:
        body = {"uuid": uuid, "name": name, "parent_provider_uuid": parent}
        _done(ask("POST", "/resource_providers", body))
        self.providers[uuid] = Provider(name, parent)

    def _put(self, ask: Ask, uuid: str, part: str, value: object) -> None:
        provider = self.providers[uuid]
        body = {part: value, "resource_provider_generation": provider.generation}
        answer = _done(ask("PUT", f"/resource_providers/{uuid}/{part}", body))
        # The same traits again leave it as it was.
        provider.generation = answer["resource_provider_generation"]

    def _used(self, uuid: str) -> int:
        return sum(claim.amount for claim in self.claims.values() if claim.provider == uuid)

    def _root(self, uuid: str) -> str | None:
        provider = self.providers.get(uuid)
        return None if provider is None else provider.parent or uuid


def _done(answer: Answer) -> Any:
    """The body of a write, which has to be accepted."""
    assert 200 <= answer.status < 300, answer
    return answer.body


def _itself(body: Any) -> object:
    return body["name"], body["generation"], body["parent_provider_uuid"]


def _inventory(body: Any) -> object:
    totals = {name: fields["total"] for name, fields in body["inventories"].items()}
    return body["resource_provider_generation"], totals.get("VCPU", 0)


def _traits(body: Any) -> object:
    return body["resource_provider_generation"], frozenset(body["traits"])


def _aggregates(body: Any) -> object:
    return body["resource_provider_generation"], frozenset(body["aggregates"])


def _usage(body: Any) -> object:
    return body["resource_provider_generation"], body["usages"].get("VCPU")


def _room(body: Any) -> object:
    """Of the only provider with an inventory in its tree."""
    (summary,) = (each for each in body["provider_summaries"].values() if each["resources"])
    resource = summary["resources"]["VCPU"]
    return resource["capacity"], resource["used"], frozenset(summary["traits"])


def _holders(body: Any) -> object:
    amounts = {name: held["resources"]["VCPU"] for name, held in body["allocations"].items()}
    return body["resource_provider_generation"], amounts


def _listed(body: Any) -> object:
    return {each["uuid"]: (each["name"], each["generation"]) for each in body["resource_providers"]}


def _project(body: Any) -> object:
    return sum(usage.get("VCPU", 0) for usage in body["usages"].values())


def _project_with_count(body: Any) -> object:
    usage = body["usages"].get("all", {})
    return usage.get("VCPU", 0), usage.get("consumer_count", 0)
