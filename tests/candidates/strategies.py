# SPDX-License-Identifier: Apache-2.0
"""Random worlds, and random questions about them: the one generator of all comparisons.

Worlds have up to twelve providers, so that brute force stays fast, and are odd, so that rules
interact: trees of up to four levels, several of one shape, traits at all levels, racks of similar
hosts with similar pools, pools with children, labels on aggregates, drains, odd names, overused
inventories, units, ratios that do not divide. Questions have few names, so that they often name
something that exists, and amounts at the edges of what is free.

A case follows from one seed: drawing each choice by Hypothesis takes twenty times as long, and
half of the cases are then the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from tests.brute_question import Request, find, root_of
from tests.brute_scenario import what_if
from tests.queries import Group, Query
from tests.worlds import (
    MAX_INT,
    SHARING_TRAIT,
    Stock,
    World,
    WorldProvider,
    aggregate_uuid,
    consumer_uuid,
    provider_uuid,
)

T = TypeVar("T")

CLASSES: Final = ("VCPU", "DISK_GB", "CUSTOM_VF")
TRAITS: Final = ("CUSTOM_X", "CUSTOM_Y", "HW_NUMA_ROOT")
AGGREGATES: Final = ("A", "B", "C")
#: Suffixes of groups, and those below 1.33.
GROUPS: Final = ("", "_A", "1", "-x")
NUMBERED: Final = ("", "1", "2", "30")
LEVELS: Final = ("provider", "tree", "subtree", *TRAITS)
DRAINS: Final = ("firmware", "heat")
#: What references to aggregates stand for: nothing, one, or several.
LABELS: Final = ("rack-A", "name=rack-B", "zone=z1", "zone=z2", "zone=z3", "no-rack")
#: A name that JSON escapes.
ODD_NAME: Final = 'p"é"=\\'

#: Microversions at which something about the query or the answer changes, the newest most often.
MINORS: Final = (
    *((39,) * 12),
    *(10, 12, 16, 17, 21, 22, 24, 25, 26, 27, 28, 28, 29, 31, 32, 33, 34, 35, 36, 36, 38),
)

PROVIDERS_MAX: Final = 12
ATOMS_MAX: Final = 8
#: Greater amounts that are split would take the twin too long.
SPLIT_MAX: Final = 32
#: Consumers of one placement at most: plain loops try all selections.
COUNT_MAX: Final = 4

_SHARED: Final = frozenset({SHARING_TRAIT})

#: Anything as JSON.
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the minor version at which it is sent."""

    query: Query
    minor: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a shape; `parent` is the index of its parent in the list, or None."""

    parent: int | None
    classes: frozenset[str]
    traits: frozenset[str]


class Dice:
    """Random choices that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, of: Sequence[T]) -> T:
        """One of some things."""
        return self._random.choice(of)

    def number(self, least: int, most: int) -> int:
        """A number, the bounds included."""
        return self._random.randint(least, most)

    def shuffled(self, of: Sequence[T]) -> list[T]:
        """All of some things."""
        return self._random.sample(of, len(of))

    def some(self, of: Sequence[T], least: int, most: int) -> list[T]:
        """Different ones of some things."""
        return self._random.sample(of, min(len(of), self.number(least, most)))

    def few(self, names: Sequence[str], most: int = 2) -> frozenset[str]:
        """A small set of names, empty half of the time."""
        return frozenset(self.some(names, 1, most)) if self.half() else frozenset()

    def half(self) -> bool:
        """True one time in two."""
        return self.number(1, 2) == 1

    def sometimes(self) -> bool:
        """True one time in three."""
        return self.number(1, 3) == 1

    def seldom(self) -> bool:
        """True one time in six."""
        return self.number(1, 6) == 1


def seeded(make: Callable[[Dice], T]) -> st.SearchStrategy[T]:
    """A strategy of what is made with random choices; it prints what was made."""
    return st.integers(0, 2**64 - 1).map(lambda seed: make(Dice(seed)))


# --- Worlds


def fleet(dice: Dice) -> World:
    """A world of up to twelve providers, often with labels."""
    of_hosts = (numa_shape, numa_shape, any_shape, any_shape, forked_shape)
    shapes = [dice.one(of_hosts)(dice) for _ in range(2)]
    shapes += [pool_shape(dice) for _ in range(dice.number(0, 2))]
    providers = racks(dice) if dice.seldom() else []
    for shape in dice.shuffled(shapes):
        for _ in range(dice.number(1, 3)):
            if len(providers) + len(shape) <= PROVIDERS_MAX:
                providers += tree(dice, shape, first=len(providers))
    labels = {
        "A": {"name": "rack-A", "zone": dice.one(("z1", "z2"))},
        "B": {"name": "rack-B", "zone": "z2"},
    }
    world = World(tuple(providers), frozenset(CLASSES[2:]), frozenset(TRAITS[:2]))
    return renamed(dice, drained(dice, replace(world, labels={} if dice.seldom() else labels)))


def racks(dice: Dice) -> list[WorldProvider]:
    """Two or three racks, each a host and a pool in an aggregate of its own; the racks differ only
    in the traits of some pools."""
    of_hosts, of_pools = dice.some(CLASSES, 1, 2), dice.some(CLASSES, 1, 2)
    of_all = dice.few(TRAITS, 1)
    providers = []
    for number, aggregate in enumerate(AGGREGATES[: dice.number(2, 3)]):
        traits = dice.few(TRAITS) if dice.seldom() else of_all
        for kind, classes, having in (
            ("host", of_hosts, frozenset[str]()),
            ("pool", of_pools, traits | _SHARED),
        ):
            stocks = {name: stock(dice) for name in sorted(classes)}
            aggregates = frozenset({aggregate})
            providers.append(WorldProvider(f"{kind}{number}", None, stocks, having, aggregates))
    return providers


def drained(dice: Dice, world: World) -> World:
    """The same world, sometimes with one or two drains, of which one may only be announced."""
    if not dice.sometimes():
        return world
    drains: dict[str, set[str]] = {}
    for drain in dice.some(DRAINS, 1, 2):
        for each in dice.some(world.providers, 1, 3):
            drains.setdefault(each.name, set()).add(drain)
    return replace(
        world,
        providers=tuple(
            replace(each, drains=frozenset(drains.get(each.name, ()))) for each in world.providers
        ),
        announced=frozenset(DRAINS[:1] if dice.seldom() else ()),
    )


def numa_shape(dice: Dice) -> list[Node]:
    """A root, one to three nodes with traits that serve as levels, and devices below them."""
    nodes = [Node(None, dice.few(CLASSES), dice.few(TRAITS, 1))]
    of_nodes = frozenset(dice.some(CLASSES, 1, 2))
    level = dice.few(TRAITS) | dice.few(("HW_NUMA_ROOT",))
    for _ in range(dice.one((1, 2, 2, 3, 3))):
        top = len(nodes)
        nodes.append(Node(0, of_nodes, dice.few(TRAITS) if dice.seldom() else level))
        for _ in range(dice.one((0, 0, 1, 1, 2))):
            if len(nodes) < PROVIDERS_MAX // 2:
                parent = dice.number(top, len(nodes) - 1)
                nodes.append(Node(parent, dice.few(CLASSES), device_traits(dice)))
    return nodes


def device_traits(dice: Dice) -> frozenset[str]:
    """Traits, seldom with that of a sharing provider."""
    return dice.few(TRAITS) | (_SHARED if dice.seldom() else frozenset())


def any_shape(dice: Dice) -> list[Node]:
    """One to four nodes, each below any other."""
    nodes = [Node(None, dice.few(CLASSES), device_traits(dice))]
    for _ in range(dice.number(0, 3)):
        parent = dice.number(0, len(nodes) - 1)
        nodes.append(Node(parent, frozenset(dice.some(CLASSES, 0, 2)), device_traits(dice)))
    return nodes


def forked_shape(dice: Dice) -> list[Node]:
    """A root that has some of what its children have, each of which has one class."""
    classes = dice.some(CLASSES, 2, 3)
    nodes = [Node(None, frozenset(classes[:1]), dice.few(TRAITS, 1))]
    for each in (*classes, dice.one(classes)):
        nodes.append(Node(0, frozenset({each}), device_traits(dice)))
    return nodes


def pool_shape(dice: Dice) -> list[Node]:
    """A sharing provider, sometimes with a child, which may be the one that shares."""
    traits, classes = dice.few(TRAITS, 1), frozenset(dice.some(CLASSES, 1, 2))
    if dice.half():
        return [Node(None, classes, traits | _SHARED)]
    pool = Node(None, classes, traits if dice.sometimes() else traits | _SHARED)
    if dice.half():
        return [pool, Node(0, dice.few(CLASSES), dice.few(TRAITS) | dice.few((SHARING_TRAIT,)))]
    return [pool, Node(0, classes, dice.few(TRAITS, 1) | _SHARED)]


def tree(dice: Dice, shape: Sequence[Node], first: int) -> list[WorldProvider]:
    """A tree of a shape; the providers are numbered from `first`. Some are in the aggregates of the
    root, most of them in a pool, and a pool is in some."""
    is_pool = SHARING_TRAIT in shape[0].traits
    of_root = frozenset(dice.some(AGGREGATES, 1, 2)) if is_pool else dice.few(AGGREGATES)
    like_root = (True, True, True, False) if is_pool else (True, False, False, False)
    return [
        WorldProvider(
            name=f"p{first + place}",
            parent=None if node.parent is None else f"p{first + node.parent}",
            stocks={name: stock(dice) for name in sorted(node.classes)},
            traits=node.traits,
            aggregates=of_root if not place or dice.one(like_root) else dice.few(AGGREGATES),
        )
        for place, node in enumerate(shape)
    ]


def stock(dice: Dice) -> Stock:
    """An inventory that mostly has free capacity; sometimes with units, a ratio, or overused."""
    total = dice.one((1, 2, 3, 4, 6, 8, 8, 100))
    plain = Stock(total, used=dice.one((0, 0, 0, 1, 2, 5)))
    if dice.seldom():
        return replace(plain, max_unit=dice.number(1, 4))
    if dice.seldom():
        return replace(plain, reserved=dice.number(1, total))
    if dice.seldom():
        return replace(plain, step_size=dice.number(2, 3), min_unit=dice.number(1, 3))
    if not dice.seldom():
        return plain
    return replace(
        plain,
        reserved=dice.one((0, dice.number(0, total))),
        min_unit=dice.number(1, 3),
        max_unit=dice.one((MAX_INT, dice.number(1, 6))),
        step_size=dice.number(1, 3),
        allocation_ratio=dice.one((1.0, 0.29, 0.7, 1.5, 16.0)),
    )


def renamed(dice: Dice, world: World) -> World:
    """The same world, seldom with a provider whose name needs care: the uuid of another one, or
    with letters that JSON escapes."""
    if not dice.seldom():
        return world
    old = dice.one(world.providers).name
    new = dice.one((provider_uuid(world.providers[0].name), ODD_NAME))

    def other(name: str) -> str:
        return new if name == old else name

    return replace(
        world,
        providers=tuple(
            replace(each, name=other(each.name), parent=each.parent and other(each.parent))
            for each in world.providers
        ),
    )


# --- Queries of the old API


def questions(fleet: World) -> st.SearchStrategy[Question]:
    """Queries for a world, at a microversion that has every parameter they use."""
    return seeded(lambda dice: question(dice, fleet))


def question(dice: Dice, fleet: World) -> Question:
    """A query at any microversion."""
    minor = dice.one(MINORS)
    return Question(query(dice, fleet, minor), minor)


def query(dice: Dice, world: World, minor: int = 39) -> Query:
    """A query of one to four small groups with any members that a microversion has."""
    suffixes = GROUPS if minor >= 33 else NUMBERED
    named = dice.some(suffixes[1:], 0, 3) if minor >= 25 else []
    names = [*named]
    if not named or dice.half():
        names.insert(dice.number(0, len(names)), "")
    picky = dice.seldom if named else dice.sometimes
    groups = [_queried_group(dice, world, name, minor, picky) for name in names]
    if not any(group.resources for group in groups):
        groups[0] = replace(groups[0], resources={dice.one(_classes(world)): 1})
    subtrees: list[frozenset[str]] = []
    if minor >= 36 and named:
        if dice.half():
            subtrees = [frozenset(dice.some(named, 1, 3)) for _ in range(dice.number(1, 2))]
        bare = frozenset(group.suffix for group in groups if not group.resources)
        unnamed = bare.difference(*subtrees)
        subtrees += [unnamed | {dice.one(named)}] if unnamed else []
    policies = ("none", "isolate") if len(named) > 1 else (None, None, "none", "isolate")
    root = dice.shuffled((*TRAITS, SHARING_TRAIT)) if minor >= 35 else []
    return Query(
        groups=tuple(groups),
        group_policy=dice.one(policies) if minor >= 25 else None,
        root_required=frozenset(root[:1] if dice.seldom() else ()),
        root_forbidden=frozenset(root[1:2] if dice.seldom() else ()),
        same_subtree=tuple(subtrees),
    )


def _queried_group(
    dice: Dice, world: World, name: str, minor: int, picky: Callable[[], bool]
) -> Group:
    """A group with few classes and conditions; seldom only with conditions.

    Args:
        picky: whether it has a kind of condition.
    """

    def wants(since: int) -> bool:
        return minor >= since and picky()

    of_pools = {each for p in world.providers if SHARING_TRAIT in p.traits for each in p.traits}
    classes = [dice.one(_classes(world)) for _ in range(dice.one((1, 1, 2) if name else (1, 2, 3)))]
    forbidden = dice.few((*TRAITS, *sorted(of_pools))) if wants(22) else frozenset[str]()
    alternatives_max = 2 if minor >= 39 else 1
    required = [frozenset(dice.some(TRAITS, 1, alternatives_max)) for _ in range(dice.number(1, 2))]
    members = [frozenset(dice.some(AGGREGATES, 1, 2)) for _ in range(dice.number(1, 2))]
    homes = [*(each.name for each in world.providers), "unknown"]
    asked = Group(
        suffix=name,
        resources={each: dice.one((1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 29)) for each in classes},
        required=tuple(each for each in required if each - forbidden) if wants(17) else (),
        forbidden=forbidden,
        member_of=tuple(members[: 1 + (minor >= 24)]) if wants(21) else (),
        not_member_of=dice.few(AGGREGATES) if wants(32) else frozenset(),
        in_tree=dice.one(homes) if wants(31) else None,
    )
    if minor < 36 or not name or not dice.seldom():
        return asked
    bare = replace(asked, resources={})
    is_empty = bare == Group(name)
    return replace(bare, required=(frozenset({TRAITS[0]}),)) if is_empty else bare


def changed(dice: Dice, fleet: World) -> World:
    """The same providers, but some have other inventories of the same classes, or another usage."""
    providers = [*fleet.providers]
    for place in dice.some(range(len(providers)), 1, 3):
        claims_only = dice.half()
        stocks = {
            name: replace(old, used=dice.number(0, 5)) if claims_only else stock(dice)
            for name, old in providers[place].stocks.items()
        }
        providers[place] = replace(providers[place], stocks=stocks)
    return replace(fleet, providers=tuple(providers))


# --- Requests


def tolerant(dice: Dice, world: World, asked: Request) -> Request:
    """A request that seldom tolerates drains, if there are any."""
    if not world.drains or not dice.sometimes():
        return asked
    return {**asked, "tolerate": "*" if dice.seldom() else dice.some((*DRAINS, "none"), 1, 2)}


def request(dice: Dice, world: World, *, splits: bool = True) -> Request:
    """A request of one to four groups and at most eight atoms."""
    kinds = ("wide", "wide", "hosts", "related", "apart", "placed", "split", "related split")
    kind = dice.one(kinds)
    if kind == "related":
        return related_request(dice, world)
    if kind == "apart":
        return apart_request(dice, world)
    if kind == "placed":
        return placed_request(dice, world)
    if kind == "split" and splits:
        return split_request(dice, world)
    if kind == "related split" and splits:
        return related_split_request(dice, world)
    return wide_request(dice, world, splits=splits, groups_max=1 if kind == "hosts" else 4)


def wide_request(dice: Dice, world: World, *, splits: bool, groups_max: int) -> Request:
    """A request with any members; with one group, also conditions on the host."""
    count = min(dice.one((1, 1, 2, 2, 3, 4)), groups_max)
    groups: dict[str, Body] = {}
    for name in dice.shuffled(GROUPS)[:count]:
        like = [each for other, each in groups.items() if other]
        same = like and name and dice.seldom()
        groups[name] = dict(like[-1]) if same else _group(dice, world, name)
    asked: Body = {"groups": groups}
    if groups_max == 1 or dice.sometimes():
        asked["host"] = host_conditions(dice, world)
    _add_relations(dice, world, asked)
    if splits and dice.half():
        _add_splits(dice, groups)
    _keep_few_atoms(dice, asked)
    if dice.number(1, 4) > 1:
        _loosen(dice, world, asked)
    return asked


def related_request(dice: Dice, world: World) -> Request:
    """Two or three small groups with one or two relations, and little else."""
    names = dice.some(GROUPS, 2, 3)
    common = dice.one(_classes(world))
    groups: dict[str, Body] = {}
    for name in names:
        each = dice.one((common, common, dice.one(_classes(world))))
        groups[name] = {"resources": {each: dice.one((1, 1, 2))}}
        if name and dice.seldom():
            if len(groups) > 1 and dice.half():
                groups[name].clear()
            groups[name]["required"] = [dice.one(_traits(world))]
    asked: Body = {"groups": groups}
    for _ in range(dice.number(1, 2)):
        _relate(dice, world, asked, dice.some(names, 2, len(names)))
    _unrelated_go(asked)
    if dice.half():
        _loosen(dice, world, asked)
    return asked


def with_flavors(
    dice: Dice, world: World, requests: Sequence[Request]
) -> tuple[World, list[Request]]:
    """The same requests, of which some, or some of their alternatives, name a flavor."""
    flavors: dict[str, Request] = {}

    def other(asked: Request) -> Request:
        if "alternatives" in asked:
            return {"alternatives": [*map(other, asked["alternatives"])]}
        if dice.number(1, 4) > 1:
            return asked
        name = f"flavor-{len(flavors)}"
        flavors[name], own = _divided(dice, world, asked)
        return {"flavor": name, **own}

    several = [other(asked) for asked in requests]
    return replace(world, flavors=flavors), several


def _divided(dice: Dice, world: World, asked: Request) -> tuple[Request, Body]:
    """A request as a flavor, and what is asked beside it: the conditions on the host are in one of
    the two, or in both."""
    hosts: tuple[Body, Body] = ({}, {})
    for member, value in asked.get("host", {}).items():
        is_nested = member == "in" and isinstance(value[0], list)
        for item in [value] if member == "in" and not is_nested else value:
            kept = dice.one(((0,), (1,), (0, 1)))
            for place in kept:
                hosts[place].setdefault(member, []).append(item)
    for host in hosts:
        if len(host.get("in", ())) == 1:
            (host["in"],) = host["in"]
    if "in" not in hosts[1] and dice.seldom():
        hosts[1]["in"] = some_providers(dice, world)
    stored = {**asked, "host": hosts[0]}
    return stored, {"host": hosts[1]} if hosts[1] or dice.half() else {}


def apart_request(dice: Dice, world: World) -> Request:
    """Three small groups, two or all of which are apart; the unsuffixed one may want two
    classes."""
    several = [name for name, free in _trees_with_several(world) if len(free) > 2]
    common = dice.one(several or _classes(world))
    groups: dict[str, Body] = {}
    for name in dice.one((GROUPS[1:], dice.some(GROUPS, 3, 3))):
        others = [dice.one(_classes(world))] if dice.half() else []
        classes = [common, *others] if not name else [dice.one((common, common, common, *others))]
        groups[name] = {"resources": dict.fromkeys(classes, 1)}
    at = dice.one(("provider", "subtree", dice.one(_traits(world))))
    apart = dice.some(sorted(groups), dice.one((2, 3, 3)), 3)
    asked: Body = {"groups": groups, "apart": [{"groups": apart, "at": at}]}
    if dice.seldom():
        _relate(dice, world, asked, dice.some(sorted(groups), 2, 2))
    return asked


def placed_request(dice: Dice, world: World) -> Request:
    """A small group in certain places, often where there are pools, and sometimes another group."""
    having = [each for each in world.providers if each.stocks]
    pools = [each for each in having if SHARING_TRAIT in each.traits]
    name, other = dice.some(GROUPS, 2, 2)
    if not having:
        return {"groups": {name: {"resources": {CLASSES[0]: 1}}}}
    near = dice.one(pools if pools and dice.half() else having)
    members: Body = {"resources": {dice.one(sorted(near.stocks)): 1}}
    for member in dice.some(("in_tree", "in_tree", "under", "not_under"), 1, 2):
        named = [near.name, root_of(world, near.name)]
        members[member] = [dice.one(named)] if dice.half() else some_providers(dice, world)
    groups = {name: members}
    if dice.sometimes():
        groups[other] = {"resources": {dice.one(_classes(world)): 1}}
    return {"groups": groups}


def split_request(dice: Dice, world: World) -> Request:
    """An amount that no provider of a tree can give alone, or hardly so, next to a small group."""
    name, free = dice.one(_trees_with_several(world) or [(dice.one(_classes(world)), [1, 1])])
    parts = dice.some(free, 2, 3)
    amount = max(1, sum(parts) - dice.one((0, 0, 1, 2, 3)))
    group = dice.one(("", "", "_A"))
    groups: dict[str, Body] = {group: {"resources": {name: min(amount, SPLIT_MAX)}}}
    allowed = max(2, len(parts) + dice.one((-1, 0, 0, 0, 1)))
    groups[group]["split"] = {name: {**_split_rule(dice), "parts": allowed}}
    if dice.sometimes():
        groups[group]["required"] = _items(dice, _traits(world))
    elif not group and dice.sometimes():
        # A larger set than the amount needs may be needed for a trait.
        groups[group]["required"] = [dice.one(_traits(world))]
        groups[group]["resources"][name] = min(max(1, *parts), SPLIT_MAX)
    if not group and dice.sometimes():
        groups[group]["resources"].setdefault(dice.one(_classes(world)), 1)
    if dice.half():
        groups["1"] = {"resources": {dice.one((name, dice.one(_classes(world)))): 1}}
    asked: Body = {"groups": groups}
    if len(groups) > 1 and dice.half():
        _relate(dice, world, asked, sorted(groups))
    if dice.half():
        _loosen(dice, world, asked)
    return asked


def related_split_request(dice: Dice, world: World) -> Request:
    """An amount that one provider may give, and that several may give, next to another group of
    its tree; the relation between the two decides which."""
    name, free = dice.one(_trees_with_several(world) or [(dice.one(_classes(world)), [1, 1])])
    amount = min(max(1, dice.one((max(free), max(free), min(free), sum(free)))), SPLIT_MAX)
    split, other = dice.one((("_A", "1"), ("", "1"), ("_A", "")))
    rule = {**_split_rule(dice), "parts": dice.number(2, 4)}
    groups: dict[str, Body] = {
        split: {"resources": {name: amount}, "split": {name: rule}},
        other: {"resources": {dice.one(_classes(world)): 1}},
    }
    if dice.sometimes():
        groups["-x"] = {"resources": {dice.one((name, dice.one(_classes(world)))): 1}}
    asked: Body = {"groups": groups}
    kind, at = dice.one(("together", "together", "apart")), dice.one(("subtree", *LEVELS))
    asked[kind] = [{"groups": sorted(groups), "at": at}]
    if dice.half():
        _loosen(dice, world, asked)
    return asked


def conditional_request(dice: Dice, world: World) -> Request:
    """What some provider has free, under a condition that it does not meet."""
    having = [(p, name, _free(s)) for p in world.providers for name, s in p.stocks.items()]
    having = [(each, name, free) for each, name, free in having if free]
    if not having:
        return request(dice, world)
    each, name, free = dice.one(having)
    unmet: list[Body] = [
        {"required": [f"!{trait}" if trait in each.traits else trait]} for trait in TRAITS
    ]
    unmet.append({"not_under": [each.name]})
    unmet += [
        {"member_of": [f"!{aggregate_uuid(a)}" if a in each.aggregates else aggregate_uuid(a)]}
        for a in AGGREGATES
    ]
    group = dice.one(("", "_A"))
    groups: dict[str, Body] = {
        group: {"resources": {name: dice.number(1, free)}, **dice.one(unmet)}
    }
    if dice.sometimes():
        groups["1"] = {"resources": {dice.one(_classes(world)): 1}}
    return {"groups": groups}


def hopeless_request(dice: Dice, world: World) -> Request:
    """A request that hardly fails: something is added to one that fits, until nothing fits."""
    asked: Body = dict(request(dice, world))
    for _ in range(5):
        if _atoms(asked) >= ATOMS_MAX or not find(world, asked):
            break
        _tighten(dice, world, asked)
    return asked


def _trees_with_several(world: World) -> list[tuple[str, list[int]]]:
    """The classes that several providers of one tree could give, and how much each has free."""
    free: dict[tuple[str, str], list[int]] = {}
    for each in world.providers:
        for name, had in each.stocks.items():
            if n := _free(had):
                free.setdefault((root_of(world, each.name), name), []).append(n)
    return [(name, several) for (_, name), several in free.items() if len(several) > 1]


def _classes(world: World) -> list[str]:
    """The classes that providers have, the frequent ones often; all, if none has any."""
    return [name for each in world.providers for name in each.stocks] or [*CLASSES]


def _traits(world: World) -> list[str]:
    """The traits that providers have, the frequent ones often; all, if none has any."""
    return [name for each in world.providers for name in sorted(each.traits)] or [*TRAITS]


def _free(each: Stock) -> int:
    return max(0, int((each.total - each.reserved) * each.allocation_ratio) - each.used)


def _group(dice: Dice, world: World, name: str) -> Body:
    classes = dice.some(CLASSES, 1, dice.one((1, 1, 1, 2)) if name else 3)
    members: Body = {"resources": {each: amount(dice, world, each) for each in classes}}
    if dice.sometimes():
        members["required"] = _items(dice, TRAITS)
    if dice.seldom():
        members["member_of"] = _items(dice, references_to_aggregates())
    for member in ("in_tree", "under", "not_under"):
        if dice.seldom():
            members[member] = some_providers(dice, world)
    return members


def host_conditions(dice: Dice, world: World) -> Body:
    """Conditions on hosts; perhaps none."""
    members: Body = {}
    for member in ("required", "anywhere"):
        if dice.sometimes():
            members[member] = _items(dice, (*TRAITS, SHARING_TRAIT))
    if dice.sometimes():
        members["member_of"] = _items(dice, references_to_aggregates())
    for member in ("in", "not_in"):
        if dice.sometimes():
            members[member] = some_providers(dice, world)
    if "in" in members and dice.seldom():
        members["in"] = [members["in"], some_providers(dice, world)]
    return members


def _add_relations(dice: Dice, world: World, asked: Body) -> None:
    """Relations, and sometimes a group without resources, which some relation must name."""
    groups = asked["groups"]
    if len(groups) < 2:
        return
    for name in groups:
        if name and len(groups[name]) > 1 and dice.sometimes():
            del groups[name]["resources"]
    for _ in range(dice.one((0, 1, 1, 2))):
        _relate(dice, world, asked, dice.some(sorted(groups), 2, 3))
    for name, group in groups.items():
        related = [each for kind in ("together", "apart") for each in asked.get(kind, [])]
        if "resources" not in group and not any(name in each["groups"] for each in related):
            other = next(other for other in groups if other != name)
            _relate(dice, world, asked, [name, other])


def _relate(dice: Dice, world: World, asked: Body, named: Sequence[str]) -> None:
    kind = dice.one(("together", "apart"))
    at = dice.one((dice.one(LEVELS), dice.one(_traits(world))))
    asked[kind] = [*asked.get(kind, []), {"groups": list(named), "at": at}]


def _add_splits(dice: Dice, groups: Mapping[str, Body]) -> None:
    """Some classes are split, each by one group at most."""
    split: set[str] = set()
    for name, group in groups.items():
        for each, n in group.get("resources", {}).items():
            allowed = each not in split and (not name or len(group["resources"]) == 1)
            if allowed and n <= SPLIT_MAX and dice.half():
                split.add(each)
                group["split"] = {**group.get("split", {}), each: _split_rule(dice)}


def _split_rule(dice: Dice) -> Body:
    rule: Body = {}
    if dice.sometimes():
        rule["min"] = dice.number(1, 3)
    if dice.sometimes():
        rule["step"] = dice.number(1, 3)
    if dice.half():
        rule["parts"] = dice.number(2, 4)
    return rule


def _keep_few_atoms(dice: Dice, asked: Body) -> None:
    """Leave some conditions out if there are more than eight atoms."""
    while (conditions := _conditions(asked)) and _atoms(asked) > ATOMS_MAX:
        holder, member = dice.one(conditions)
        del holder[member]


def _loosen(dice: Dice, world: World, asked: Body) -> None:
    """Leave conditions out, one by one, until something fits: so the last one was decisive."""
    while not find(world, asked):
        kinds = [each for each in _looser(asked) if each]
        if not kinds:
            return
        dice.one(dice.one((kinds[0], kinds[0], kinds[-1])))()
        _unrelated_go(asked)


def _tighten(dice: Dice, world: World, asked: Body) -> None:
    """Ask for more of a class, or for another condition on the host or on a group."""
    having = [group for group in asked["groups"].values() if "resources" in group]
    kind = dice.one(("amount", "amount", "host", "group"))
    if kind == "host":
        asked["host"] = {**host_conditions(dice, world), **asked.get("host", {})}
    elif having:
        group = dice.one(having)
        if kind == "amount":
            name = dice.one(sorted(group["resources"]))
            more = group["resources"][name] + amount(dice, world, name)
            group["resources"][name] = min(more, SPLIT_MAX) if "split" in group else more
        else:
            named = {"required": TRAITS, "member_of": references_to_aggregates()}
            member = dice.one(("required", "member_of"))
            group.setdefault(member, _items(dice, named[member]))


def _looser(asked: Body) -> Iterator[list[Callable[[], object]]]:
    """The ways to ask for less: fewer conditions, less of a class, fewer groups and relations."""
    yield [partial(holder.pop, member) for holder, member in _conditions(asked)]
    yield [
        partial(_lessen, group["resources"], name)
        for group in asked["groups"].values()
        for name, amount in group.get("resources", {}).items()
        if amount > 1
    ]
    several = asked["groups"] if len(asked["groups"]) > 1 else ()
    yield [
        *(partial(_without_group, asked, name) for name in several),
        *(
            partial(asked[kind].remove, each)
            for kind in ("together", "apart")
            for each in asked.get(kind, [])
        ),
    ]


def _lessen(resources: dict[str, int], name: str) -> None:
    resources[name] -= max(1, resources[name] // 3)


def _without_group(asked: Body, name: str) -> None:
    del asked["groups"][name]
    for kind in ("together", "apart"):
        asked[kind] = [each for each in asked.get(kind, []) if name not in each["groups"]]


def _unrelated_go(asked: Body) -> None:
    """Remove groups without resources that no relation names any more; one group stays."""
    related = [each for kind in ("together", "apart") for each in asked.get(kind, [])]
    for name, group in [*asked["groups"].items()]:
        if "resources" not in group and not any(name in each["groups"] for each in related):
            del asked["groups"][name]
    if not asked["groups"]:
        asked["groups"][""] = {"resources": {CLASSES[0]: 1}}


def _conditions(asked: Body) -> list[tuple[Body, str]]:
    """What may be left out: everything but resources, relations, and groups without resources."""
    holders = [asked.get("host", {})]
    holders += [group for group in asked["groups"].values() if "resources" in group]
    return [
        (holder, member)
        for holder in holders
        for member in holder
        if member not in {"resources", "split"}
    ]


def _atoms(asked: Body) -> int:
    listed = ("required", "anywhere", "member_of", "resources")
    holders = [asked.get("host", {}), *asked["groups"].values()]
    of_holders = sum(
        len(value) if member in listed else member != "split"
        for holder in holders
        for member, value in holder.items()
    )
    return of_holders + len(asked.get("together", ())) + len(asked.get("apart", ()))


def amount(dice: Dice, world: World, name: str) -> int:
    """An amount that often fits, just fits or just does not fit, or that two providers can give."""
    free = [_free(each.stocks[name]) for each in world.providers if name in each.stocks] or [1]
    one = dice.one(free)
    two = one + dice.one(free)
    return max(1, dice.one((1, 1, 1, 2, 2, 3, one, one, one + 1, two, two)))


def _items(dice: Dice, names: Sequence[str]) -> list[str | list[str]]:
    """One or two conditions: a name, a negated name, or alternatives."""
    items: list[str | list[str]] = []
    for _ in range(dice.one((1, 1, 2))):
        name = dice.one(names)
        kind = dice.one(("name", "name", "not", "not", "any"))
        if kind == "any":
            items.append([dice.one(names) for _ in range(dice.number(1, 3))])
        else:
            items.append(f"!{name}" if kind == "not" else name)
    forbidden = {item[1:] for item in items if isinstance(item, str) and item[0] == "!"}
    return [item for item in items if not forbidden.issuperset(_positive(item))] or items[:1]


def _positive(item: str | list[str]) -> set[str]:
    """The names that an item asks for; a negated one asks for itself."""
    return {item} if isinstance(item, str) else set(item)


def references_to_aggregates() -> tuple[str, ...]:
    """Aggregates by uuid in several spellings, and by label."""
    uuids = [aggregate_uuid(name) for name in AGGREGATES]
    return (*uuids, uuids[0].upper(), uuids[1].replace("-", ""), *LABELS)


def some_providers(dice: Dice, world: World) -> list[str]:
    """Providers by uuid or by name, and seldom one that does not exist."""
    names = [each.name for each in world.providers]
    chosen = [dice.one(names) for _ in range(dice.number(1, 3))]
    spelled = [dice.one((name, provider_uuid(name))) for name in chosen]
    return dice.one(([*spelled, "nobody"], ["nobody"])) if dice.seldom() else spelled


# --- Orders and scenarios


def order(dice: Dice, world: World, groups: Sequence[str]) -> Body:
    """An order; `groups` are those that a preference may name."""
    made: Body = {"by": dice.one(("any", "any", "random", "pack", "pack", "spread"))}
    if dice.sometimes():
        made["weight"] = dice.one((0, 1, 3, 1000))
    if dice.sometimes():
        made["classes"] = {name: dice.one((0, 1, 2, 1000)) for name in dice.some(CLASSES, 1, 3)}
    if dice.sometimes():
        made["seed"] = dice.one((0, 1, 2**32))
    if dice.half():
        made["prefer"] = [_preference(dice, world, groups) for _ in range(dice.number(1, 3))]
    return made


def _preference(dice: Dice, world: World, groups: Sequence[str]) -> Body:
    item: Body = {"weight": dice.one((-1000, -1, 0, 1, 5))}
    if dice.number(1, 4) > 1:
        item["of"] = dice.one(("host", *groups))
    if dice.number(1, 3) > 1:
        item["required"] = _items(dice, _traits(world))
    if dice.half() or "required" not in item:
        item["member_of"] = _items(dice, references_to_aggregates())
    return item


def scenario(dice: Dice, world: World) -> Body:
    """What might be; nothing is added."""
    made: Body = {}
    holding = [consumer_uuid(each.name) for each in world.providers]
    if dice.seldom():
        made["nothing_used"] = True
    if dice.sometimes():
        made["without_consumers"] = dice.some(holding, 0, 3)
    if dice.sometimes():
        made["allocation_ratio"] = [_ratio(dice) for _ in range(dice.number(1, 2))]
    if dice.sometimes():
        made["drain"] = some_providers(dice, world)
    if dice.sometimes():
        made["undrain"] = dice.some((*DRAINS, "none"), 0, 2)
    if dice.sometimes():
        made["without_hosts"] = some_providers(dice, world)
    return made


def extreme_scenario(dice: Dice, world: World) -> Body:
    """What might be at the edges: nobody's hosts are left, or only a few of them, or there is more
    of a class than a number of 64 bits can say."""
    roots = [each.name for each in world.providers if each.parent is None]
    gone = dice.one((roots, dice.some(roots, 1, len(roots)), []))
    ratios = [
        {"resource_class": name, "ratio": dice.one((1e12, 4e18, 1e19, 3.4e38))}
        for name in dice.some(CLASSES, 0, 2)
    ]
    return {"without_hosts": gone, "allocation_ratio": ratios if gone != roots else []}


def _ratio(dice: Dice) -> Body:
    ratio: Body = {
        "resource_class": dice.one(CLASSES),
        "ratio": dice.one((0.5, 1.0, 1.5, 4.0)),
    }
    if dice.half():
        ratio["member_of"] = _items(dice, references_to_aggregates())
    return ratio


def growing_scenario(dice: Dice, world: World) -> Body:
    """What might be, often with copies of trees, of which some are removed themselves."""
    made = scenario(dice, world)
    if dice.sometimes():
        return made
    pools = [each for each in world.providers if SHARING_TRAIT in each.traits]
    likes = [
        dice.one(pools if pools and dice.sometimes() else world.providers)
        for _ in range(dice.number(1, 3))
    ]
    added = [{"like": each.name, "count": dice.number(1, 2)} for each in likes]
    return {**made, "add_hosts": added}


# --- Placements

LEVEL: Final = "HW_NUMA_ROOT"


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
    traits = frozenset((*TRAITS, SHARING_TRAIT, LEVEL))
    return World(tuple(providers), extra_classes=classes, extra_traits=traits, labels=labels)


def _host(dice: Dice, name: str) -> list[WorldProvider]:
    root = WorldProvider(
        name,
        stocks={each: _small(dice) for each in dice.some(("DISK_GB", "VCPU"), 0, 1)},
        aggregates=frozenset(dice.some("AB", 0, 2)),
    )
    level = frozenset({LEVEL})
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
        at = dice.one(("provider", "tree", "subtree", "subtree", LEVEL))
        asked[kind] = [*asked.get(kind, []), {"groups": named, "at": at}]
    return asked


def fitting_request(dice: Dice, world: World) -> Request:
    """A crowded request of which mostly one fits."""
    several = (crowded_request(dice) for _ in range(6))
    return next((each for each in several if find(world, each)), crowded_request(dice))


def place_body(dice: Dice, asked: Request, world: World) -> Body:
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
