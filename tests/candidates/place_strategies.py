# SPDX-License-Identifier: Apache-2.0
"""Random bodies of `POST /berth/v1/place`, and worlds for them that are small enough for loops.

Consumers that give something back are those that hold what is used of a provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tests.brute_question import Request, find
from tests.brute_scenario import what_if
from tests.candidates.question_strategies import Dice, fleet, order, request
from tests.candidates.strategies import CLASSES, TRAITS
from tests.worlds import SHARING_TRAIT, Stock, World, WorldProvider, consumer_uuid

#: Consumers of one call at most: plain loops try all selections.
COUNT_MAX: Final = 4

Body = dict[str, Any]
Asked = tuple[World, list[Body]]

#: Requests that are drawn at most until one fits.
_DRAWS: Final = 6
_LEVEL: Final = "HW_NUMA_ROOT"
_SHARED: Final = frozenset({SHARING_TRAIT})


def fleet_with_bodies(dice: Dice) -> Asked:
    """A world of any trees, with any requests."""
    world = fleet(dice)
    return world, [body(dice, request(dice, world), world) for _ in range(4)]


def flat_fleet_with_bodies(dice: Dice) -> Asked:
    """A world in which berth must always know: hosts that share nothing and serve a request in one
    way, and nested labels."""
    world = flat_fleet(dice)
    amounts = {name: dice.number(1, 3) for name in dice.some(("VCPU", "MEMORY_MB"), 1, 2)}
    asked = {"groups": {"": {"resources": amounts}}}
    return world, [body(dice, asked, world) for _ in range(4)]


def crowded_fleet_with_bodies(dice: Dice) -> Asked:
    """Few hosts and pools, in which several consumers of one request get in each other's way."""
    world = crowded_fleet(dice)
    bodies = [body(dice, fitting_request(dice, world), world) for _ in range(4)]
    return world, [limited(dice, each) for each in bodies]


# --- Worlds


def flat_fleet(dice: Dice) -> World:
    """Up to six hosts in racks, of which each is in one zone; some hosts are in none."""
    racks = {"R1": "z1", "R2": "z1", "R3": "z2"}
    hosts = [
        WorldProvider(
            f"h{number}",
            stocks={
                name: Stock(dice.number(1, 6), used=dice.number(0, 2))
                for name in ("VCPU", "MEMORY_MB")
            },
            aggregates=frozenset(dice.some([*racks], 0, 1)),
        )
        for number in range(dice.number(1, 6))
    ]
    labels = {rack: {"rack": rack, "zone": zone} for rack, zone in racks.items()}
    traits = frozenset((*TRAITS, SHARING_TRAIT))
    return World(tuple(hosts), extra_classes=frozenset(CLASSES), extra_traits=traits, labels=labels)


def crowded_fleet(dice: Dice) -> World:
    """One to three hosts of one or two nodes, and up to two pools that serve some of them. Labels
    are of the hosts, and often of the pools too."""
    providers: list[WorldProvider] = []
    for number in range(dice.one((1, 2, 2, 3))):
        providers += _host(dice, f"h{number}")
    for number in range(dice.one((0, 1, 1, 2))):
        stocks = {name: _small(dice) for name in dice.some(("DISK_GB", "VCPU"), 1, 2)}
        served = frozenset(dice.some("AB", 1, 2))
        providers.append(WorldProvider(f"pool{number}", None, stocks, _SHARED, served))
    labels = {
        "A": {"rack": "r1", "zone": "z1"},
        "B": {"rack": "r2", "zone": dice.one(("z1", "z2"))},
    }
    classes = frozenset((*CLASSES, "VCPU", "MEMORY_MB", "DISK_GB"))
    traits = frozenset((*TRAITS, SHARING_TRAIT, _LEVEL))
    return World(tuple(providers), extra_classes=classes, extra_traits=traits, labels=labels)


def _host(dice: Dice, name: str) -> list[WorldProvider]:
    root = WorldProvider(
        name,
        stocks={each: _small(dice) for each in dice.some(("DISK_GB", "VCPU"), 0, 1)},
        aggregates=frozenset(dice.some("AB", 0, 2)),
    )
    level = frozenset({_LEVEL})
    nodes = []
    for number in range(dice.one((1, 2, 2))):
        stocks = {each: _small(dice) for each in ("VCPU", "MEMORY_MB")}
        node = WorldProvider(f"{name}n{number}", name, stocks, level | dice.few(TRAITS, 1))
        nodes.append(node)
        if dice.sometimes():
            stocks = {dice.one(("VCPU", "MEMORY_MB")): _small(dice)}
            nodes.append(WorldProvider(f"{name}d{number}", node.name, stocks))
    return [root, *nodes]


def _small(dice: Dice) -> Stock:
    stock = Stock(dice.number(1, 5), used=dice.one((0, 0, 1, 2)))
    if dice.seldom():
        return replace(stock, step_size=2)
    return replace(stock, max_unit=dice.number(1, 3)) if dice.seldom() else stock


# --- Bodies


def crowded_request(dice: Dice) -> Request:
    """Two or three groups, related to each other; most have an amount that may be split."""
    groups: dict[str, Body] = {
        "_A": {"resources": {"VCPU": dice.number(1, 4)}},
        "_B": {"resources": {dice.one(("MEMORY_MB", "DISK_GB", "VCPU")): dice.number(1, 2)}},
    }
    if dice.number(1, 3) > 1:
        rule = {"parts": dice.number(2, 3)}
        if dice.seldom():
            rule["min"] = 2
        groups["_A"]["split"] = {"VCPU": rule}
    if dice.sometimes():
        other = dice.one(("", "_C"))
        groups[other] = {"resources": {"DISK_GB": 1}}
    if dice.seldom():
        del groups["_B"]
    asked: Body = {"groups": groups}
    for _ in range(dice.number(0, 2) if len(groups) > 1 else 0):
        kind = dice.one(("together", "apart"))
        named = sorted(dice.some([*groups], 2, len(groups)))
        at = dice.one(("provider", "tree", "subtree", "subtree", _LEVEL))
        asked[kind] = [*asked.get(kind, []), {"groups": named, "at": at}]
    return asked


def fitting_request(dice: Dice, world: World) -> Request:
    """A crowded request of which mostly one fits."""
    several = (crowded_request(dice) for _ in range(_DRAWS))
    return next((each for each in several if find(world, each)), crowded_request(dice))


def body(dice: Dice, asked: Request, world: World) -> Body:
    """A body for new consumers, or for some that give back what they have; often with limits."""
    holding = [each.name for each in world.providers if any(each.used.values())]
    replaces = bool(holding) and dice.seldom()
    consumers = [new_consumer(f"c{number}") for number in range(dice.number(1, COUNT_MAX))]
    if replaces:
        names = dice.some(holding, 1, COUNT_MAX)
        consumers = [{**new_consumer(name), "consumer_generation": 1} for name in names]
    made: Body = {
        "request": asked,
        "consumers": consumers,
        "order": {"seed": dice.number(0, 9), **order(dice, world, [])},
        "explain": False,
    }
    if replaces:
        made["replace"] = True
    keys = _keys(world)
    if dice.half():
        made["max_per"] = {key: dice.number(1, 2) for key in dice.some(keys, 1, 3)}
    if dice.sometimes():
        made["within"] = dice.one(keys)
    if dice.sometimes():
        made["order"]["among"] = dice.number(1, 2)
    return made


def limited(dice: Dice, made: Body) -> Body:
    """A body that has at least one limit."""
    if not made.keys() & {"max_per", "within"}:
        made["max_per"] = {dice.one(("host", "rack", "zone")): dice.number(1, 3)}
    return made


def given_back(world: World, sent: Body) -> World:
    """The world without what the consumers of a body have, if it replaces them."""
    if not sent.get("replace"):
        return world
    return what_if(world, {"without_consumers": [each["uuid"] for each in sent["consumers"]]})


def new_consumer(name: str) -> Body:
    """A consumer of a body."""
    return {
        "uuid": consumer_uuid(name),
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }


def _keys(world: World) -> Sequence[str]:
    labels = {key for labels in world.labels.values() for key in labels}
    return ["host", *sorted(labels - {"name"})]
