# SPDX-License-Identifier: Apache-2.0
"""A small world in which every object is deleted and created again, so that other names get its id.

There are few names. What is created again has the same layout: the same places have the first, the
second ... of the traits and classes, whatever their names are this time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tests.proof.history import aggregate_uuid, consumer_uuid, provider_uuid
from tests.proof.wire import Answer, Connection

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"

TRAITS: Final = tuple(f"CUSTOM_{name}" for name in ("FAST", "SAFE", "COLD", "WARM", "NEAR", "FAR"))
CLASSES: Final = tuple(f"CUSTOM_{name}" for name in ("GPU", "FPGA", "PORT", "CORE", "LICENCE"))
STANDARD: Final = ("VCPU", "DISK_GB")
PROVIDERS: Final = tuple(provider_uuid(number) for number in range(1, 12))
PROVIDER_NAMES: Final = tuple(f"host-{letter}" for letter in "abcdefghijklm")
AGGREGATES: Final = tuple(aggregate_uuid(number) for number in range(1, 6))
CONSUMERS: Final = tuple(consumer_uuid(number) for number in range(1, 8))
PROJECTS: Final = ("red", "green", "blue")
USERS: Final = ("ann", "bob", "cleo")
CONSUMER_TYPES: Final = ("INSTANCE", "MIGRATION", "VOLUME")

#: The version up to which a class is renamed by PUT.
_RENAMES: Final = "1.6"


class Place(NamedTuple):
    """A provider of the layout: its parent's place, and the numbers of its classes and traits."""

    parent: int | None
    classes: tuple[int, ...] = ()
    standard: tuple[str, ...] = ()
    traits: tuple[int, ...] = ()
    shares: bool = False


LAYOUT: Final = (
    Place(None, (0,), ("VCPU",), (0,)),
    Place(None, (0,), ("VCPU",), (0,)),
    Place(None, (), ("VCPU",), (0, 1)),
    Place(2, (1,), (), (2,)),
    Place(2, (1,), (), (2,)),
    Place(None, (), ("VCPU",), (0, 1)),
    Place(5, (1,), (), (2,)),
    Place(5, (1,), (), (2,)),
    Place(None, (2,), ("DISK_GB",), (3,), shares=True),
)


class World:
    """Creates, changes and deletes objects through any worker of a service; many requests are
    refused."""

    def __init__(self, rng: random.Random, workers: Sequence[Connection]) -> None:
        self._rng = rng
        self._workers = workers

    def take_down(self) -> None:
        """Delete everything that can be deleted."""
        for consumer in CONSUMERS:
            self._ask("DELETE", f"/allocations/{consumer}")
        while left := self._listed("/resource_providers", "resource_providers", "uuid"):
            self._rng.shuffle(left)
            for uuid in left:
                self._ask("DELETE", f"/resource_providers/{uuid}")
        for trait in self._traits():
            self._ask("DELETE", f"/traits/{trait}")
        for name in self._classes():
            self._ask("DELETE", f"/resource_classes/{name}")

    def make(self) -> None:
        """Create the layout, with names drawn for this time."""
        rng = self._rng
        traits, classes = rng.sample(TRAITS, 4), rng.sample(CLASSES, 3)
        for trait in traits:
            self._ask("PUT", f"/traits/{trait}")
        for name in classes:
            self._ask("PUT", f"/resource_classes/{name}")
        uuids = rng.sample(PROVIDERS, len(LAYOUT))
        names = rng.sample(PROVIDER_NAMES, len(LAYOUT))
        for uuid, name, place in zip(uuids, names, LAYOUT, strict=True):
            parent = None if place.parent is None else uuids[place.parent]
            self._create(uuid, name, parent)
            self._stock(uuid, [*(classes[number] for number in place.classes), *place.standard])
            given = [traits[number] for number in place.traits]
            self._replace(uuid, "traits", [*given, SHARES] if place.shares else given)
            self._replace(uuid, "aggregates", rng.sample(AGGREGATES, rng.randint(0, 2)))
        for consumer in rng.sample(CONSUMERS, 4):
            self.claim(consumer)

    def change(self) -> None:
        """Make one change."""
        self._rng.choice(
            (
                self.claim,
                self._release,
                self._restock,
                self._restock,
                self._give_traits,
                self._join,
                self._rename_provider,
                self._move_provider,
                self._delete_provider,
                self._create_provider,
                self._swap_trait,
                self._swap_trait,
                self._swap_class,
                self._swap_class,
                self._rename_class,
                self._forget_names,
            )
        )()

    def claim(self, consumer: str | None = None) -> None:
        """Replace a consumer's allocations on a provider."""
        rng = self._rng
        consumer = consumer or rng.choice(CONSUMERS)
        held = self._ask("GET", f"/allocations/{consumer}").body
        body = {
            "allocations": {},
            "project_id": rng.choice(PROJECTS),
            "user_id": rng.choice(USERS),
            "consumer_type": rng.choice(CONSUMER_TYPES),
            "consumer_generation": held.get("consumer_generation"),
        }
        for uuid in rng.sample(PROVIDERS, 2):
            answer = self._ask("GET", f"/resource_providers/{uuid}/inventories")
            if answer.status == 200 and answer.body["inventories"]:
                name = rng.choice(sorted(answer.body["inventories"]))
                body["allocations"][uuid] = {"resources": {name: rng.randint(1, 3)}}
        self._ask("PUT", f"/allocations/{consumer}", body)

    def _release(self) -> None:
        self._ask("DELETE", f"/allocations/{self._rng.choice(CONSUMERS)}")

    def _restock(self) -> None:
        """Give a provider other amounts, or sometimes other classes."""
        uuid = self._rng.choice(PROVIDERS)
        if self._rng.random() < 0.3:
            self._stock(uuid, self._rng.sample((*self._classes(), *STANDARD), 2))
            return
        answer = self._ask("GET", f"/resource_providers/{uuid}/inventories")
        if answer.status == 200:
            self._stock(uuid, list(answer.body["inventories"]))

    def _give_traits(self) -> None:
        known = (*self._traits(), SHARES)
        few = self._rng.randint(0, min(3, len(known)))
        self._replace(self._rng.choice(PROVIDERS), "traits", self._rng.sample(known, few))

    def _join(self) -> None:
        few = self._rng.randint(0, 3)
        self._replace(self._rng.choice(PROVIDERS), "aggregates", self._rng.sample(AGGREGATES, few))

    def _rename_provider(self) -> None:
        self._update(self._rng.choice(PROVIDERS), self._rng.choice(PROVIDERS + (None,) * 11))

    def _move_provider(self) -> None:
        self._update(*self._rng.sample(PROVIDERS, 2))

    def _update(self, uuid: str, parent: str | None) -> None:
        body: dict[str, Any] = {"name": self._rng.choice(PROVIDER_NAMES)}
        self._ask("PUT", f"/resource_providers/{uuid}", {**body, "parent_provider_uuid": parent})

    def _delete_provider(self) -> None:
        self._ask("DELETE", f"/resource_providers/{self._rng.choice(PROVIDERS)}")

    def _create_provider(self) -> None:
        uuid, parent = self._rng.sample(PROVIDERS, 2)
        self._create(
            uuid, self._rng.choice(PROVIDER_NAMES), parent if self._rng.random() < 0.5 else None
        )

    def _swap_trait(self) -> None:
        """A provider loses a trait, and gets another."""
        known = self._traits()
        if not known:
            return
        old, new = self._rng.choice(known), self._rng.choice(TRAITS)
        having = self._listed(f"/resource_providers?required={old}", "resource_providers", "uuid")
        kept = {
            uuid: self._ask("GET", f"/resource_providers/{uuid}/traits").body["traits"]
            for uuid in having
        }
        for uuid, traits in kept.items():
            self._replace(uuid, "traits", [trait for trait in traits if trait != old])
        self._ask("DELETE", f"/traits/{old}")
        self._ask("PUT", f"/traits/{new}")
        for uuid, traits in kept.items():
            self._replace(uuid, "traits", [*{*traits, new} - {old}])

    def _swap_class(self) -> None:
        """A class is deleted unless it is in use, and another is created."""
        known = self._classes()
        if not known:
            return
        old, new = self._rng.choice(known), self._rng.choice(CLASSES)
        having = [
            uuid
            for uuid in PROVIDERS
            if self._ask("DELETE", f"/resource_providers/{uuid}/inventories/{old}").status == 204
        ]
        self._ask("DELETE", f"/resource_classes/{old}")
        self._ask("PUT", f"/resource_classes/{new}")
        for uuid in having:
            body = {"resource_class": new, "total": 8, "resource_provider_generation": 0}
            body["resource_provider_generation"] = self._generation(uuid)
            self._ask("POST", f"/resource_providers/{uuid}/inventories", body)

    def _rename_class(self) -> None:
        known = self._classes()
        if known:
            name = {"name": self._rng.choice(CLASSES)}
            self._ask("PUT", f"/resource_classes/{self._rng.choice(known)}", name, _RENAMES)

    def _forget_names(self) -> None:
        """Unused traits and classes are deleted, and none is created."""
        for trait in self._traits():
            self._ask("DELETE", f"/traits/{trait}")
        for name in self._classes():
            self._ask("DELETE", f"/resource_classes/{name}")

    def _create(self, uuid: str, name: str, parent: str | None) -> None:
        body: dict[str, Any] = {"name": name, "uuid": uuid}
        if parent is not None:
            body["parent_provider_uuid"] = parent
        self._ask("POST", "/resource_providers", body)

    def _stock(self, uuid: str, classes: Sequence[str]) -> None:
        rng = self._rng
        units: tuple[dict[str, int], ...] = (
            {},
            {},
            {},
            {"step_size": 2},
            {"min_unit": 2},
            {"max_unit": 3},
            {"reserved": 1},
        )
        self._replace(
            uuid,
            "inventories",
            {name: {"total": rng.randint(4, 12), **rng.choice(units)} for name in classes},
        )

    def _replace(self, uuid: str, what: str, value: Any) -> None:
        body = {what: value, "resource_provider_generation": self._generation(uuid)}
        self._ask("PUT", f"/resource_providers/{uuid}/{what}", body)

    def _generation(self, uuid: str) -> int:
        answer = self._ask("GET", f"/resource_providers/{uuid}")
        return int(answer.body["generation"]) if answer.status == 200 else 0

    def _traits(self) -> list[str]:
        found = self._ask("GET", "/traits?name=startswith:CUSTOM_").body["traits"]
        return [str(name) for name in found]

    def _classes(self) -> list[str]:
        every = self._listed("/resource_classes", "resource_classes", "name")
        return [name for name in every if name.startswith("CUSTOM_")]

    def _listed(self, path: str, key: str, field: str) -> list[str]:
        return [str(each[field]) for each in self._ask("GET", path).body[key]]

    def _ask(self, method: str, path: str, body: Any = None, version: str = "1.39") -> Answer:
        answer = self._rng.choice(self._workers).ask(method, path, body, version=version)
        assert answer.status < 500, f"{method} {path} {body}: {answer}"
        return answer
