# SPDX-License-Identifier: Apache-2.0
"""Every route that writes, as a rule of the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.client import NOTHING
from tests.proof.model import plain_reads, wire
from tests.proof.model.asking import Asking
from tests.proof.model.names import (
    CONSUMERS,
    PROVIDERS,
    aggregates,
    classes,
    consumers,
    custom_classes,
    custom_traits,
    minors,
    names,
    parents,
    projects,
    providers,
    records,
    seen_words,
    stocks,
    traits,
    types,
    users,
    wishes,
)
from tests.proof.model.plain_model import KEEP, Held, Keep, Record
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid


class Writing(Asking):
    """Each rule is one request; many are refused, and the model says which."""

    # --- Writing: providers ----------------------------------------------------------------------

    @initialize()
    def begin_with_two_hosts(self) -> None:
        """Two hosts with inventory, so that histories need not begin with an empty fleet."""
        stock = {"VCPU": Record(8), "DISK_GB": Record(8)}
        for place, name in (("p1", "one"), ("p2", "two")):
            self.create_provider(39, place, name, KEEP)
            self.replace_inventories(39, place, "right", stock)

    @rule(minor=minors(0), place=providers, name=names, parent=parents)
    def create_provider(self, minor: int, place: str, name: str, parent: str | Keep | None) -> None:
        uuid = provider_uuid(place)
        body: dict[str, Any] = {"uuid": uuid, "name": name}
        above = _above(minor, body, parent)

        def due() -> Any:
            self.model.create_provider(uuid, name, None if isinstance(above, Keep) else above)
            provider = self.model.providers[uuid]
            return plain_reads.provider_body(self.model, minor, provider) if minor >= 20 else None

        success = 200 if minor >= 20 else 201
        self.send(minor, "POST", "/resource_providers", body, success, due)

    @rule(minor=minors(0), place=providers, name=names, parent=parents)
    def update_provider(self, minor: int, place: str, name: str, parent: str | Keep | None) -> None:
        uuid = provider_uuid(place)
        body: dict[str, Any] = {"name": name}
        above = _above(minor, body, parent)

        def due() -> Any:
            self.model.update_provider(minor, uuid, name, above)
            return plain_reads.provider_body(self.model, minor, self.model.providers[uuid])

        self.send(minor, "PUT", wire.path_of(place), body, 200, due)

    @rule(minor=minors(0), place=providers)
    def delete_provider(self, minor: int, place: str) -> None:
        uuid = provider_uuid(place)
        self.send(
            minor,
            "DELETE",
            wire.path_of(place),
            NOTHING,
            204,
            lambda: self.model.delete_provider(uuid),
        )

    # --- Writing: inventories --------------------------------------------------------------------

    @rule(minor=minors(0), place=providers, name=classes, record=records)
    def add_inventory(self, minor: int, place: str, name: str, record: Record) -> None:
        uuid = provider_uuid(place)
        body = {"resource_class": name} | asdict(record)

        def due() -> Any:
            self.model.add_inventory(minor, uuid, name, record)
            return plain_reads.inventory_body(self.model.providers[uuid], name)

        self.send(minor, "POST", wire.path_of(place, "inventories"), body, 201, due)

    @rule(minor=minors(0), place=providers, seen=seen_words, stock=stocks)
    def replace_inventories(
        self, minor: int, place: str, seen: str, stock: dict[str, Record]
    ) -> None:
        uuid, generation = provider_uuid(place), self.generation(place, seen)
        body = wire.inventories_body(generation, stock)

        def due() -> Any:
            self.model.replace_inventories(minor, uuid, generation, stock)
            return plain_reads.inventories_body(self.model.providers[uuid])

        self.send(minor, "PUT", wire.path_of(place, "inventories"), body, 200, due)

    @rule(minor=minors(0), place=providers, name=classes, seen=seen_words, record=records)
    def update_inventory(
        self, minor: int, place: str, name: str, seen: str, record: Record
    ) -> None:
        uuid, generation = provider_uuid(place), self.generation(place, seen)
        body = asdict(record) | {"resource_provider_generation": generation}

        def due() -> Any:
            self.model.update_inventory(minor, uuid, name, generation, record)
            return plain_reads.inventory_body(self.model.providers[uuid], name)

        self.send(minor, "PUT", wire.path_of(place, f"inventories/{name}"), body, 200, due)

    @rule(minor=minors(0), place=providers, name=classes)
    def delete_inventory(self, minor: int, place: str, name: str) -> None:
        uuid = provider_uuid(place)
        path = wire.path_of(place, f"inventories/{name}")
        self.send(
            minor, "DELETE", path, NOTHING, 204, lambda: self.model.delete_inventory(uuid, name)
        )

    @rule(minor=minors(5), place=providers)
    def delete_inventories(self, minor: int, place: str) -> None:
        uuid = provider_uuid(place)
        path = wire.path_of(place, "inventories")
        self.send(
            minor, "DELETE", path, NOTHING, 204, lambda: self.model.delete_inventories(minor, uuid)
        )

    # --- Writing: aggregates, traits, classes ----------------------------------------------------

    @rule(minor=minors(1), place=providers, seen=seen_words, members=st.frozensets(aggregates))
    def replace_aggregates(
        self, minor: int, place: str, seen: str, members: frozenset[str]
    ) -> None:
        uuid, generation = provider_uuid(place), self.generation(place, seen)
        wanted = [aggregate_uuid(name) for name in sorted(members)]
        body: Any = wanted
        if minor >= 19:
            body = {"aggregates": wanted, "resource_provider_generation": generation}

        def due() -> Any:
            self.model.replace_aggregates(minor, uuid, generation, wanted)
            return plain_reads.aggregates_body(minor, self.model.providers[uuid])

        self.send(minor, "PUT", wire.path_of(place, "aggregates"), body, 200, due, since=1)

    @rule(minor=minors(6), place=providers, seen=seen_words, wanted=st.frozensets(traits))
    def replace_traits(self, minor: int, place: str, seen: str, wanted: frozenset[str]) -> None:
        uuid, generation = provider_uuid(place), self.generation(place, seen)
        body = {"traits": sorted(wanted), "resource_provider_generation": generation}

        def due() -> Any:
            self.model.replace_traits(uuid, generation, wanted)
            return plain_reads.traits_body(self.model.providers[uuid])

        self.send(minor, "PUT", wire.path_of(place, "traits"), body, 200, due, since=6)

    @rule(minor=minors(6), place=providers)
    def delete_traits(self, minor: int, place: str) -> None:
        uuid = provider_uuid(place)
        self.send(
            minor,
            "DELETE",
            wire.path_of(place, "traits"),
            NOTHING,
            204,
            lambda: self.model.delete_traits(uuid),
            since=6,
        )

    @rule(minor=minors(6), name=custom_traits)
    def define_trait(self, minor: int, name: str) -> None:
        success = 204 if name in self.model.traits else 201

        def due() -> None:
            self.model.define_trait(name)

        self.send(minor, "PUT", f"/traits/{name}", NOTHING, success, due, since=6)

    @rule(minor=minors(6), name=custom_traits | traits)
    def forget_trait(self, minor: int, name: str) -> None:
        path = f"/traits/{name}"
        self.send(
            minor, "DELETE", path, NOTHING, 204, lambda: self.model.delete_trait(name), since=6
        )

    @rule(minor=minors(2), name=custom_classes)
    def create_class(self, minor: int, name: str) -> None:
        body = {"name": name}
        self.send(
            minor,
            "POST",
            "/resource_classes",
            body,
            201,
            lambda: self.model.create_class(name),
            since=2,
        )

    @rule(minor=minors(7), name=custom_classes)
    def define_class(self, minor: int, name: str) -> None:
        if minor < 7:
            return
        success = 204 if name in self.model.classes else 201

        def due() -> None:
            self.model.define_class(name)

        self.send(minor, "PUT", f"/resource_classes/{name}", NOTHING, success, due)

    @rule(minor=st.sampled_from((6, 5, 4)), name=custom_classes | classes, new=custom_classes)
    def rename_class(self, minor: int, name: str, new: str) -> None:
        path = f"/resource_classes/{name}"

        def due() -> Any:
            self.model.rename_class(name, new)
            return plain_reads.class_body(new)

        self.send(minor, "PUT", path, {"name": new}, 200, due)

    @rule(minor=minors(2), name=custom_classes | classes)
    def forget_class(self, minor: int, name: str) -> None:
        path = f"/resource_classes/{name}"
        self.send(
            minor, "DELETE", path, NOTHING, 204, lambda: self.model.delete_class(name), since=2
        )

    # --- Writing: allocations --------------------------------------------------------------------

    @rule(
        minor=minors(0),
        consumer=consumers,
        seen=seen_words,
        held=wishes,
        project=projects,
        user=users,
        kind=types,
    )
    def claim(
        self,
        minor: int,
        consumer: str,
        seen: str,
        held: dict[str, dict[str, int]],
        project: str,
        user: str,
        kind: str,
    ) -> None:
        uuid = consumer_uuid(consumer)
        claim = self.claim_of(consumer, seen, held, project, user, kind)
        self.send(
            minor,
            "PUT",
            f"/allocations/{uuid}",
            wire.claim_body(minor, claim),
            204,
            lambda: self.model.claim(minor, {uuid: claim}),
        )

    @rule(minor=minors(28), consumer=consumers, seen=seen_words)
    def empty_consumer(self, minor: int, consumer: str, seen: str) -> None:
        """Below 1.28 an empty set of allocations is invalid."""
        if minor >= 28:
            self.claim(minor, consumer, seen, {}, "red", "ann", "INSTANCE")

    @rule(
        minor=minors(13),
        wanted=st.dictionaries(consumers, st.just({}) | wishes | wishes, min_size=1, max_size=3),
        seen=seen_words,
        project=projects,
        kind=types,
    )
    def claim_for_several(
        self,
        minor: int,
        wanted: dict[str, dict[str, dict[str, int]]],
        seen: str,
        project: str,
        kind: str,
    ) -> None:
        claims = self.claims_of(wanted, seen, project, kind)
        self.send(
            minor,
            "POST",
            "/allocations",
            wire.claims_body(minor, claims),
            204,
            lambda: self.model.claim(minor, claims),
            since=13,
        )

    @rule(minor=minors(0), consumer=consumers)
    def release(self, minor: int, consumer: str) -> None:
        uuid = consumer_uuid(consumer)
        path = f"/allocations/{uuid}"
        self.send(minor, "DELETE", path, NOTHING, 204, lambda: self.model.release(uuid))

    # --- Writing: reshaping ----------------------------------------------------------------------

    @rule(
        minor=minors(30),
        stock=st.dictionaries(providers, stocks, min_size=1, max_size=2),
        wanted=st.dictionaries(consumers, st.just({}) | wishes, max_size=2),
        seen=seen_words,
        seen_consumers=seen_words,
    )
    def reshape(
        self,
        minor: int,
        stock: dict[str, dict[str, Record]],
        wanted: dict[str, dict[str, dict[str, int]]],
        seen: str,
        seen_consumers: str,
    ) -> None:
        """Inventories and allocations that may be unrelated."""
        news = {
            provider_uuid(place): (self.generation(place, seen), some)
            for place, some in stock.items()
        }
        claims = self.claims_of(wanted, seen_consumers, "red", "INSTANCE")
        body = {
            "inventories": {
                uuid: wire.inventories_body(generation, some)
                for uuid, (generation, some) in news.items()
            },
            "allocations": wire.claims_body(minor, claims),
        }
        self.send(
            minor,
            "POST",
            "/reshaper",
            body,
            204,
            lambda: self.model.reshape(minor, news, claims),
            since=30,
        )

    @precondition(lambda self: self.model.consumers)
    @rule(minor=minors(30), source=providers, home=providers, name=classes)
    def reshape_a_class_away(self, minor: int, source: str, home: str, name: str) -> None:
        """One class moves from one provider to another, with all its allocations."""
        old, new = provider_uuid(source), provider_uuid(home)
        there = self.model.providers
        if old == new or not {old, new} <= there.keys() or name not in there[old].inventories:
            return
        stock = {
            source: _without(there[old].inventories, name),
            home: {**there[new].inventories, name: there[old].inventories[name]},
        }
        wanted = {
            consumer: _moved(held, old, new, name)
            for consumer in CONSUMERS
            if (held := self.held(consumer)).get(old, {}).get(name)
        }
        places = {provider_uuid(place): place for place in PROVIDERS}
        by_place = {
            consumer: {places[uuid]: some for uuid, some in held.items()}
            for consumer, held in wanted.items()
        }
        self.reshape(minor, stock, by_place, "right", "right")


def _above(minor: int, body: dict[str, Any], parent: str | Keep | None) -> str | Keep | None:
    """Add the parent to a body, from 1.14 on; return it for the model."""
    if minor < 14 or isinstance(parent, Keep):
        return KEEP
    body["parent_provider_uuid"] = None if parent is None else provider_uuid(parent)
    return cast("str | None", body["parent_provider_uuid"])


def _without(stock: Mapping[str, Record], gone: str) -> dict[str, Record]:
    return {name: record for name, record in stock.items() if name != gone}


def _moved(held: Held, source: str, home: str, name: str) -> dict[str, dict[str, int]]:
    """Allocations after a class has moved from one provider to another."""
    after = {uuid: dict(some) for uuid, some in held.items()}
    amount = after[source].pop(name)
    there = after.setdefault(home, {})
    there[name] = there.get(name, 0) + amount
    return {uuid: some for uuid, some in after.items() if some}
