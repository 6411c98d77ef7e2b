# SPDX-License-Identifier: Apache-2.0
"""Clients that write everything that a service lets them, as fast as they can, each a history of
its own, and count what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from compare.histories import writers as write
from compare.histories.dice import Dice
from compare.histories.history import History
from compare.histories.picture import Picture
from compare.histories.spoil import well_formed
from compare.histories.writers import Writer
from compare.script.step import Step, request, uid
from compare.wire import Answer
from tests.proof.wire import Connection, Lost, NotSent
from tests.routes import BERTH_ROUTES, ROUTES, route_of

#: Seconds for which nobody may listen before a writer gives up.
_PATIENCE: Final = 60.0

_OWN: Final = "/berth/v1"


def place(dice: Dice, picture: Picture) -> Step:
    """Place two consumers that nobody else writes."""
    consumers: Any = [
        {
            "uuid": uid(f"{picture.token}-placed-{number}"),
            "consumer_type": "INSTANCE",
            "project_id": "p",
            "user_id": "u",
        }
        for number in dice.some_of(range(8), 2, 2)
    ]
    asked: Any = {"groups": {"": {"resources": {"VCPU": 1}}}}
    body: Any = {"request": asked, "consumers": consumers, "explain": False}
    return request("POST", f"{_OWN}/place", json_body=body)


def lease(dice: Dice, picture: Picture) -> Step:
    """Give what a consumer holds an end, or none."""
    path = f"{_OWN}/leases/{write.consumer_uuid(dice, picture)}"
    if dice.chance(0.3):
        return request("DELETE", path)
    return request("PUT", path, json_body={"seconds": dice.one_of((1, 600))})


def tree(dice: Dice, picture: Picture) -> Step:
    """A tree that grows or shrinks, not both at once: then one commit could have one note for a
    provider that is gone and one that gets its id."""
    name = f"{picture.token}-tree"
    children: list[Any] = [
        {
            "name": f"{name}_{number}",
            "parent": name,
            "inventories": {"VCPU": {"total": dice.between(1, 8)}},
            "traits": ["HW_CPU_X86_AVX2"],
        }
        for number in range(dice.between(0, 3))
    ]
    root = {"name": name, "inventories": {"DISK_GB": {"total": dice.between(1, 99)}}}
    body: Any = {"providers": [root, *children], "remove_missing": True}
    return request("PUT", f"{_OWN}/trees/{name}", json_body=body)


def drain(dice: Dice, picture: Picture) -> Step:
    """Drain some providers, or no longer."""
    path = f"{_OWN}/drains/d{dice.between(1, 3)}"
    if dice.chance(0.4):
        return request("DELETE", path)
    body: dict[str, Any] = {"providers": dice.some_of(list(picture.providers), 1, 3)}
    return request("PUT", path, json_body=body | ({"effect": "none"} if dice.chance(0.3) else {}))


def label(dice: Dice, picture: Picture) -> Step:
    """Label an aggregate."""
    path = f"{_OWN}/aggregates/{write.aggregate(dice, picture)}"
    return request("PUT", path, json_body={"labels": {"zone": f"z{dice.between(1, 3)}"}})


def flavor(dice: Dice, picture: Picture) -> Step:
    """Change a flavor."""
    asked: Any = {"groups": {"": {"resources": {"VCPU": dice.between(1, 4)}}}}
    path = f"{_OWN}/flavors/f{dice.between(1, 3)}"
    return request("PUT", path, json_body={"request": asked})


WRITES: Final[Mapping[Writer, int]] = {
    write.put_allocations: 30,
    write.post_allocations: 10,
    write.touch_allocations: 16,
    write.put_inventories: 6,
    write.post_inventory: 2,
    write.put_inventory: 2,
    write.delete_inventory: 2,
    write.put_traits: 6,
    write.delete_traits: 1,
    write.put_aggregates: 5,
    write.create_provider: 8,
    write.update_provider: 5,
    write.delete_provider: 4,
    write.touch_trait: 2,
    write.touch_class: 3,
    write.reshape: 3,
    place: 8,
    lease: 6,
    tree: 8,
    drain: 4,
    label: 2,
    flavor: 2,
}


class Writers:
    """Some writers, each with a connection of its own."""

    def __init__(self, addresses: Sequence[tuple[str, int]], count: int, seed: int) -> None:
        self.writers = [
            Writing(Connection(*addresses[number % len(addresses)]), f"{seed}.{number}")
            for number in range(count)
        ]

    @property
    def acknowledged(self) -> Counter[str]:
        """The acknowledged writes, by method and route."""
        return sum((writer.acknowledged for writer in self.writers), Counter())

    def write(self, writes: int) -> list[threading.Thread]:
        """Begin to send requests until so many more writes have been acknowledged in all."""
        share = -(-writes // len(self.writers))
        threads = [threading.Thread(target=writer.write, args=(share,)) for writer in self.writers]
        for thread in threads:
            thread.start()
        return threads


class Writing:
    """One of them, with a world of its own."""

    def __init__(self, connection: Connection, seed: str) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.faults: list[str] = []
        self._connection = connection
        self._history = History(seed, 1 << 60, writers=WRITES, spoilers={well_formed: 1})
        self._steps = self._history.steps()

    def write(self, share: int) -> None:
        """Send requests until so many have been acknowledged."""
        upto = self.acknowledged.total() + share
        try:
            while self.acknowledged.total() < upto:
                self._send(next(self._steps))
        except Exception as error:  # noqa: BLE001 - told by the test
            self.faults.append(repr(error))

    def _send(self, step: Step) -> None:
        answer = self._answer(step)
        if answer is None:
            return
        self._history.picture.learn(step, answer)
        if answer.status < 300 and step.method != "GET":
            route = route_of(step.path, ROUTES + BERTH_ROUTES)
            assert route is not None
            self.acknowledged[f"{step.method} {route.template}"] += 1
        elif answer.status >= 500 and answer.status != 503:
            self.faults.append(f"{step}: {answer}")

    def _answer(self, step: Step) -> Answer | None:
        """The answer, once somebody listens; None if it was lost."""
        deadline = time.monotonic() + _PATIENCE
        assert step.version is not None
        while True:
            try:
                raw = self._connection.ask_raw(
                    step.method, step.path, step.body, version=step.version
                )
                return Answer(raw.status, raw.headers, raw.body)
            except Lost:
                return None
            except NotSent:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
