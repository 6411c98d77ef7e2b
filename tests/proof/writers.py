# SPDX-License-Identifier: Apache-2.0
"""Clients that write everything that a service lets them, as fast as they can, and record nothing.

Where `load` records what each request saw, these only count what was acknowledged.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.proof.fleet import HOSTS, NODES, POOL, STOCK, TRAITS
from tests.proof.history import aggregate_uuid, consumer_uuid, provider_uuid
from tests.proof.wire import Answer, Connection, Lost, NotSent

#: Seconds for which nobody may listen before a writer gives up.
_PATIENCE: Final = 60.0

#: Versions in which a claim and a set of aggregates need no generation, and a class is renamed.
_CLAIMS: Final = "1.12"
_AGGREGATES: Final = "1.18"
_RENAMES: Final = "1.6"

_OWNER: Final = {"project_id": "proof", "user_id": "proof"}


class Writers:
    """Some writers, each with a connection of its own."""

    def __init__(self, addresses: Sequence[tuple[str, int]], count: int, seed: int) -> None:
        self.writers = [
            Writer(Connection(*addresses[number % len(addresses)]), number, seed)
            for number in range(count)
        ]

    @property
    def acknowledged(self) -> Counter[str]:
        """The acknowledged writes, by what they did."""
        return sum((writer.acknowledged for writer in self.writers), Counter())

    def write(self, writes: int) -> list[threading.Thread]:
        """Begin to send requests until so many more writes have been acknowledged in all."""
        share = -(-writes // len(self.writers))
        threads = [threading.Thread(target=writer.write, args=(share,)) for writer in self.writers]
        for thread in threads:
            thread.start()
        return threads


class Writer:
    """One of them."""

    def __init__(self, connection: Connection, number: int, seed: int) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.faults: list[str] = []
        self._connection = connection
        self._rng = random.Random(f"{seed}/{number}")
        self._consumers = [consumer_uuid(100 * number + each) for each in range(8)]
        #: Few, so that they come again.
        self._children = [provider_uuid(10_000 + 10 * number + each) for each in range(4)]
        self._name = f"tree{number}"

    def write(self, share: int) -> None:
        """Send random requests until so many have been acknowledged."""
        steps: Mapping[Callable[[], Answer], int] = {
            self._claim: 40,
            self._release: 12,
            self._place: 8,
            self._lease: 6,
            self._stock: 6,
            self._traits: 6,
            self._aggregates: 5,
            self._create: 6,
            self._move: 5,
            self._delete: 5,
            self._tree: 8,
            self._drain: 4,
            self._label: 2,
            self._flavor: 2,
            self._define: 3,
        }
        kinds, weights = list(steps), list(steps.values())
        upto = self.acknowledged.total() + share
        try:
            while self.acknowledged.total() < upto:
                step = self._rng.choices(kinds, weights)[0]
                try:
                    answer = step()
                except Lost:
                    continue
                if answer.status < 300:
                    self.acknowledged[step.__name__] += 1
                elif answer.status >= 500 and answer.status != 503:
                    self.faults.append(f"{step.__name__}: {answer}")
        except Exception as error:  # noqa: BLE001 - told by the test
            self.faults.append(repr(error))

    def _ask(self, method: str, path: str, body: Any = None, version: str | None = None) -> Answer:
        options = {} if version is None else {"version": version}
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._connection.ask(method, path, body, **options)
            except NotSent:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    # --- Consumers ---

    def _claim(self) -> Answer:
        places = self._rng.sample((*HOSTS, *NODES, POOL), self._rng.randint(1, 3))
        held = {
            place: {"resources": {STOCK[place][0]: self._rng.randint(1, 3)}} for place in places
        }
        consumer = self._rng.choice(self._consumers)
        body = {"allocations": held, **_OWNER}
        return self._ask("PUT", f"/allocations/{consumer}", body, _CLAIMS)

    def _release(self) -> Answer:
        return self._ask("DELETE", f"/allocations/{self._rng.choice(self._consumers)}")

    def _place(self) -> Answer:
        request = {"groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 2}}}}
        consumers = [
            {"uuid": each, "consumer_type": "INSTANCE", **_OWNER}
            for each in self._rng.sample(self._consumers, 2)
        ]
        body = {"request": request, "consumers": consumers, "explain": False}
        return self._ask("POST", "/berth/v1/place", body)

    def _lease(self) -> Answer:
        path = f"/berth/v1/leases/{self._rng.choice(self._consumers)}"
        if self._rng.random() < 0.3:
            return self._ask("DELETE", path)
        return self._ask("PUT", path, {"seconds": self._rng.choice((1, 600))})

    # --- Providers ---

    def _stock(self) -> Answer:
        provider = self._some_provider()
        path = f"/resource_providers/{provider}/inventories"
        found = self._ask("GET", path)
        if found.status != 200:
            return found
        name, most = STOCK.get(provider, ("VCPU", 4))
        return self._ask(
            "PUT",
            path,
            {
                "resource_provider_generation": found.body["resource_provider_generation"],
                "inventories": {name: {"total": self._rng.randint(most // 2, most)}},
            },
        )

    def _traits(self) -> Answer:
        path = f"/resource_providers/{self._some_provider()}/traits"
        found = self._ask("GET", path)
        if found.status != 200:
            return found
        traits = set(found.body["traits"]) ^ {self._rng.choice(TRAITS)}
        return self._ask("PUT", path, {**found.body, "traits": sorted(traits)})

    def _aggregates(self) -> Answer:
        some = [aggregate_uuid(number) for number in (1, 2, 3) if self._rng.random() < 0.5]
        path = f"/resource_providers/{self._some_provider()}/aggregates"
        return self._ask("PUT", path, some, _AGGREGATES)

    def _create(self) -> Answer:
        child, *_ = self._rng.sample(self._children, 1)
        body = {"uuid": child, "name": child, "parent_provider_uuid": self._rng.choice(HOSTS)}
        return self._ask("POST", "/resource_providers", body)

    def _move(self) -> Answer:
        child, other = self._rng.sample(self._children, 2)
        parent = self._rng.choice((None, other, *HOSTS))
        name = f"{child}{self._rng.choice(('', ' renamed'))}"
        body = {"name": name, "parent_provider_uuid": parent}
        return self._ask("PUT", f"/resource_providers/{child}", body)

    def _delete(self) -> Answer:
        return self._ask("DELETE", f"/resource_providers/{self._rng.choice(self._children)}")

    def _tree(self) -> Answer:
        """A tree that grows and shrinks."""
        nodes = self._rng.sample(range(4), self._rng.randint(0, 3))
        providers = [
            {"name": self._name, "inventories": {"DISK_GB": {"total": self._rng.randint(1, 99)}}},
            *(
                {
                    "name": f"{self._name}_{node}",
                    "parent": self._name,
                    "inventories": {"VCPU": {"total": self._rng.randint(1, 8)}},
                    "traits": self._rng.sample(TRAITS, 1),
                }
                for node in nodes
            ),
        ]
        body = {"providers": providers, "remove_missing": True}
        return self._ask("PUT", f"/berth/v1/trees/{self._name}", body)

    # --- Names ---

    def _drain(self) -> Answer:
        path = f"/berth/v1/drains/d{self._rng.randint(1, 3)}"
        if self._rng.random() < 0.4:
            return self._ask("DELETE", path)
        body = {
            "providers": self._rng.sample((*HOSTS, *NODES), self._rng.randint(1, 3)),
            **({"effect": "none"} if self._rng.random() < 0.3 else {}),
        }
        return self._ask("PUT", path, body)

    def _label(self) -> Answer:
        path = f"/berth/v1/aggregates/{aggregate_uuid(self._rng.randint(1, 3))}"
        return self._ask("PUT", path, {"labels": {"zone": f"z{self._rng.randint(1, 3)}"}})

    def _flavor(self) -> Answer:
        path = f"/berth/v1/flavors/f{self._rng.randint(1, 3)}"
        resources = {"VCPU": self._rng.randint(1, 4)}
        return self._ask("PUT", path, {"request": {"groups": {"": {"resources": resources}}}})

    def _define(self) -> Answer:
        name = f"CUSTOM_{self._rng.choice('ABC')}"
        act = self._rng.choice(("PUT", "DELETE"))
        if self._rng.random() < 0.5:
            return self._ask(act, f"/traits/{name}")
        if self._rng.random() < 0.5:
            body = {"name": f"CUSTOM_{self._rng.choice('ABC')}"}
            return self._ask("PUT", f"/resource_classes/{name}", body, _RENAMES)
        return self._ask(act, f"/resource_classes/{name}")

    def _some_provider(self) -> str:
        return self._rng.choice((*HOSTS, *NODES, POOL, *self._children))
