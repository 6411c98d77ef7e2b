# SPDX-License-Identifier: Apache-2.0
"""Random worlds and random requests of `/berth/v1`, as they are sent.

Worlds have up to twelve providers: trees with up to four levels and traits at all of them, pools
with children, labels on aggregates, odd names. Requests have few names, so that they often name
something that exists, and amounts at the edges of what is free.

A case follows from one seed: drawing each choice by Hypothesis takes twenty times as long, and
half of the cases are then the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from tests.brute_question import Request, find, root_of
from tests.candidates.strategies import AGGREGATES, CLASSES, TRAITS, Node
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

PROVIDERS_MAX: Final = 12
ATOMS_MAX: Final = 8
GROUPS: Final = ("", "_A", "1", "-x")
LEVELS: Final = ("provider", "tree", "subtree", *TRAITS)

#: What references to aggregates stand for: nothing, one, or several.
LABELS: Final = ("rack-A", "name=rack-B", "zone=z1", "zone=z2", "zone=z3", "no-rack")

DRAINS: Final = ("firmware", "heat")

#: A name that JSON escapes.
ODD_NAME: Final = 'p "é" = \\'

Members = dict[str, Any]


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


def fleets_with_requests(*, splits: bool = True) -> st.SearchStrategy[tuple[World, list[Request]]]:
    """A world and several requests."""

    def make(dice: Dice) -> tuple[World, list[Request]]:
        world = fleet(dice)
        requests = [tolerant(dice, world, request(dice, world, splits=splits)) for _ in range(6)]
        return with_flavors(dice, world, requests)

    return seeded(make)


# --- Worlds


def fleet(dice: Dice) -> World:
    """A world of up to twelve providers, often with labels."""
    of_hosts = (numa_shape, numa_shape, any_shape, forked_shape)
    shapes = [dice.one(of_hosts)(dice) for _ in range(2)]
    shapes += [pool_shape(dice) for _ in range(dice.number(0, 2))]
    providers: list[WorldProvider] = []
    for shape in dice.shuffled(shapes):
        for _ in range(dice.number(1, 2)):
            if len(providers) + len(shape) <= PROVIDERS_MAX:
                providers += tree(dice, shape, first=len(providers))
    labels = {
        "A": {"name": "rack-A", "zone": dice.one(("z1", "z2"))},
        "B": {"name": "rack-B", "zone": "z2"},
    }
    world = World(tuple(providers), frozenset(CLASSES[2:]), frozenset(TRAITS[:2]))
    return renamed(dice, drained(dice, replace(world, labels={} if dice.seldom() else labels)))


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
    return dice.few(TRAITS) | (frozenset({SHARING_TRAIT}) if dice.seldom() else frozenset())


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
    shared = frozenset({SHARING_TRAIT})
    traits, classes = dice.few(TRAITS, 1), frozenset(dice.some(CLASSES, 1, 2))
    if dice.half():
        return [Node(None, classes, traits | shared)]
    pool = Node(None, classes, traits if dice.sometimes() else traits | shared)
    if dice.half():
        return [pool, Node(0, dice.few(CLASSES), dice.few(TRAITS) | dice.few(tuple(shared)))]
    return [pool, Node(0, classes, dice.few(TRAITS, 1) | shared)]


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


# --- Queries of 1.39


def fleets_with_queries() -> st.SearchStrategy[tuple[World, list[Query]]]:
    """A world and several queries."""

    def make(dice: Dice) -> tuple[World, list[Query]]:
        world = fleet(dice)
        return world, [query(dice, world) for _ in range(12)]

    return seeded(make)


def query(dice: Dice, world: World) -> Query:
    """A query of one to three small groups with any members."""
    names = dice.some(GROUPS, 1, 3)
    groups = [_queried_group(dice, world, name) for name in names]
    if not any(group.resources for group in groups):
        groups[0] = replace(groups[0], resources={dice.one(_classes(world)): 1})
    suffixes = [name for name in names if name]
    named: list[frozenset[str]] = []
    unnamed = frozenset(group.suffix for group in groups if not group.resources)
    if suffixes and (unnamed or dice.half()):
        named = [unnamed | frozenset(dice.some(suffixes, 1, 3))]
    root = dice.shuffled((*TRAITS, SHARING_TRAIT))
    return Query(
        groups=tuple(groups),
        group_policy=dice.one(("none", "isolate")) if len(suffixes) > 1 else None,
        root_required=frozenset(root[:1] if dice.seldom() else ()),
        root_forbidden=frozenset(root[1:2] if dice.seldom() else ()),
        same_subtree=tuple(named),
    )


def _queried_group(dice: Dice, world: World, name: str) -> Group:
    """A group with one or two classes and few conditions; seldom only with conditions."""
    classes = [dice.one(_classes(world)) for _ in range(dice.one((1, 1, 2)))]
    forbidden = dice.few(TRAITS, 1) if dice.sometimes() else frozenset[str]()
    required = [frozenset(dice.some(TRAITS, 1, 2)) for _ in range(dice.one((0, 0, 0, 1, 2)))]
    asked = Group(
        suffix=name,
        resources={each: dice.one((1, 1, 2)) for each in classes},
        required=tuple(names for names in required if names - forbidden),
        forbidden=forbidden,
        member_of=(frozenset(dice.some(AGGREGATES, 1, 2)),) if dice.seldom() else (),
        not_member_of=dice.few(AGGREGATES) if dice.seldom() else frozenset(),
        in_tree=dice.one(world.providers).name if dice.seldom() else None,
    )
    bare = replace(asked, resources={})
    return bare if name and bare != Group(name) and dice.sometimes() else asked


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
    groups: dict[str, Members] = {}
    for name in dice.shuffled(GROUPS)[:count]:
        like = [each for other, each in groups.items() if other]
        same = like and name and dice.seldom()
        groups[name] = dict(like[-1]) if same else _group(dice, world, name)
    asked: Members = {"groups": groups}
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
    groups: dict[str, Members] = {}
    for name in names:
        each = dice.one((common, common, dice.one(_classes(world))))
        groups[name] = {"resources": {each: dice.one((1, 1, 2))}}
        if name and dice.seldom():
            if len(groups) > 1 and dice.half():
                groups[name].clear()
            groups[name]["required"] = [dice.one(_traits(world))]
    asked: Members = {"groups": groups}
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


def _divided(dice: Dice, world: World, asked: Request) -> tuple[Request, Members]:
    """A request as a flavor, and what is asked beside it: the conditions on the host are in one of
    the two, or in both."""
    hosts: tuple[Members, Members] = ({}, {})
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
    groups: dict[str, Members] = {}
    for name in dice.one((GROUPS[1:], dice.some(GROUPS, 3, 3))):
        others = [dice.one(_classes(world))] if dice.half() else []
        classes = [common, *others] if not name else [dice.one((common, common, common, *others))]
        groups[name] = {"resources": dict.fromkeys(classes, 1)}
    at = dice.one(("provider", "subtree", dice.one(_traits(world))))
    apart = dice.some(sorted(groups), dice.one((2, 3, 3)), 3)
    asked: Members = {"groups": groups, "apart": [{"groups": apart, "at": at}]}
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
    members: Members = {"resources": {dice.one(sorted(near.stocks)): 1}}
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
    groups: dict[str, Members] = {group: {"resources": {name: min(amount, SPLIT_MAX)}}}
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
    asked: Members = {"groups": groups}
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
    groups: dict[str, Members] = {
        split: {"resources": {name: amount}, "split": {name: rule}},
        other: {"resources": {dice.one(_classes(world)): 1}},
    }
    if dice.sometimes():
        groups["-x"] = {"resources": {dice.one((name, dice.one(_classes(world)))): 1}}
    asked: Members = {"groups": groups}
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
    unmet: list[Members] = [
        {"required": [f"!{trait}" if trait in each.traits else trait]} for trait in TRAITS
    ]
    unmet.append({"not_under": [each.name]})
    unmet += [
        {"member_of": [f"!{aggregate_uuid(a)}" if a in each.aggregates else aggregate_uuid(a)]}
        for a in AGGREGATES
    ]
    group = dice.one(("", "_A"))
    groups: dict[str, Members] = {
        group: {"resources": {name: dice.number(1, free)}, **dice.one(unmet)}
    }
    if dice.sometimes():
        groups["1"] = {"resources": {dice.one(_classes(world)): 1}}
    return {"groups": groups}


def hopeless_request(dice: Dice, world: World) -> Request:
    """A request that hardly fails: something is added to one that fits, until nothing fits."""
    asked: Members = dict(request(dice, world))
    for _ in range(_ADDITIONS_MAX):
        if _atoms(asked) >= ATOMS_MAX or not find(world, asked):
            break
        _tighten(dice, world, asked)
    return asked


_ADDITIONS_MAX: Final = 5

#: Greater amounts that are split would take the twin too long.
SPLIT_MAX: Final = 32


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


def _group(dice: Dice, world: World, name: str) -> Members:
    classes = dice.some(CLASSES, 1, dice.one((1, 1, 1, 2)) if name else 3)
    members: Members = {"resources": {each: amount(dice, world, each) for each in classes}}
    if dice.sometimes():
        members["required"] = _items(dice, TRAITS)
    if dice.seldom():
        members["member_of"] = _items(dice, references_to_aggregates())
    for member in ("in_tree", "under", "not_under"):
        if dice.seldom():
            members[member] = some_providers(dice, world)
    return members


def host_conditions(dice: Dice, world: World) -> Members:
    """Conditions on hosts; perhaps none."""
    members: Members = {}
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


def _add_relations(dice: Dice, world: World, asked: Members) -> None:
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


def _relate(dice: Dice, world: World, asked: Members, named: Sequence[str]) -> None:
    kind = dice.one(("together", "apart"))
    at = dice.one((dice.one(LEVELS), dice.one(_traits(world))))
    asked[kind] = [*asked.get(kind, []), {"groups": list(named), "at": at}]


def _add_splits(dice: Dice, groups: Mapping[str, Members]) -> None:
    """Some classes are split, each by one group at most."""
    split: set[str] = set()
    for name, group in groups.items():
        for each, n in group.get("resources", {}).items():
            allowed = each not in split and (not name or len(group["resources"]) == 1)
            if allowed and n <= SPLIT_MAX and dice.half():
                split.add(each)
                group["split"] = {**group.get("split", {}), each: _split_rule(dice)}


def _split_rule(dice: Dice) -> Members:
    rule: Members = {}
    if dice.sometimes():
        rule["min"] = dice.number(1, 3)
    if dice.sometimes():
        rule["step"] = dice.number(1, 3)
    if dice.half():
        rule["parts"] = dice.number(2, 4)
    return rule


def _keep_few_atoms(dice: Dice, asked: Members) -> None:
    """Leave some conditions out if there are more than eight atoms."""
    while (conditions := _conditions(asked)) and _atoms(asked) > ATOMS_MAX:
        holder, member = dice.one(conditions)
        del holder[member]


def _loosen(dice: Dice, world: World, asked: Members) -> None:
    """Leave conditions out, one by one, until something fits: so the last one was decisive."""
    while not find(world, asked):
        kinds = [each for each in _looser(asked) if each]
        if not kinds:
            return
        dice.one(dice.one((kinds[0], kinds[0], kinds[-1])))()
        _unrelated_go(asked)


def _tighten(dice: Dice, world: World, asked: Members) -> None:
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


def _looser(asked: Members) -> Iterator[list[Callable[[], object]]]:
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


def _without_group(asked: Members, name: str) -> None:
    del asked["groups"][name]
    for kind in ("together", "apart"):
        asked[kind] = [each for each in asked.get(kind, []) if name not in each["groups"]]


def _unrelated_go(asked: Members) -> None:
    """Remove groups without resources that no relation names any more; one group stays."""
    related = [each for kind in ("together", "apart") for each in asked.get(kind, [])]
    for name, group in [*asked["groups"].items()]:
        if "resources" not in group and not any(name in each["groups"] for each in related):
            del asked["groups"][name]
    if not asked["groups"]:
        asked["groups"][""] = {"resources": {CLASSES[0]: 1}}


def _conditions(asked: Members) -> list[tuple[Members, str]]:
    """What may be left out: everything but resources, relations, and groups without resources."""
    holders = [asked.get("host", {})]
    holders += [group for group in asked["groups"].values() if "resources" in group]
    return [
        (holder, member)
        for holder in holders
        for member in holder
        if member not in {"resources", "split"}
    ]


def _atoms(asked: Members) -> int:
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


def order(dice: Dice, world: World, groups: Sequence[str]) -> Members:
    """An order; `groups` are those that a preference may name."""
    made: Members = {"by": dice.one(("any", "any", "random", "pack", "pack", "spread"))}
    if dice.sometimes():
        made["weight"] = dice.one((0, 1, 3, 1000))
    if dice.sometimes():
        made["classes"] = {name: dice.one((0, 1, 2, 1000)) for name in dice.some(CLASSES, 1, 3)}
    if dice.sometimes():
        made["seed"] = dice.one((0, 1, 2**32))
    if dice.half():
        made["prefer"] = [_preference(dice, world, groups) for _ in range(dice.number(1, 3))]
    return made


def _preference(dice: Dice, world: World, groups: Sequence[str]) -> Members:
    item: Members = {"weight": dice.one((-1000, -1, 0, 1, 5))}
    if dice.number(1, 4) > 1:
        item["of"] = dice.one(("host", *groups))
    if dice.number(1, 3) > 1:
        item["required"] = _items(dice, _traits(world))
    if dice.half() or "required" not in item:
        item["member_of"] = _items(dice, references_to_aggregates())
    return item


def scenario(dice: Dice, world: World) -> Members:
    """What might be; nothing is added."""
    made: Members = {}
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


def extreme_scenario(dice: Dice, world: World) -> Members:
    """What might be at the edges: nobody's hosts are left, or only a few of them, or there is more
    of a class than a number of 64 bits can say."""
    roots = [each.name for each in world.providers if each.parent is None]
    gone = dice.one((roots, dice.some(roots, 1, len(roots)), []))
    ratios = [
        {"resource_class": name, "ratio": dice.one((1e12, 4e18, 1e19, 3.4e38))}
        for name in dice.some(CLASSES, 0, 2)
    ]
    return {"without_hosts": gone, "allocation_ratio": ratios if gone != roots else []}


def _ratio(dice: Dice) -> Members:
    ratio: Members = {
        "resource_class": dice.one(CLASSES),
        "ratio": dice.one((0.5, 1.0, 1.5, 4.0)),
    }
    if dice.half():
        ratio["member_of"] = _items(dice, references_to_aggregates())
    return ratio


def growing_scenario(dice: Dice, world: World) -> Members:
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
