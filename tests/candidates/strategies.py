# SPDX-License-Identifier: Apache-2.0
"""Random worlds, and random queries that are well-formed for a microversion.

Worlds are small, so that brute force stays fast, and odd, so that rules interact: trees with up to
three levels in several copies of one shape (same structure, classes and traits, different numbers
and aggregates), sharing providers at any place and with any traits, racks of similar hosts with
similar pools, overcommitted inventories, units, a max_unit below the free amount, ratios that do
not divide. There are few names, so that queries often name something that exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hypothesis import strategies as st

from tests.queries import Group, Query
from tests.worlds import MAX_INT, SHARING_TRAIT, Stock, World, WorldProvider

CLASSES: Final = ("VCPU", "DISK_GB", "CUSTOM_VF")
TRAITS: Final = ("CUSTOM_X", "CUSTOM_Y", "HW_NUMA_ROOT")
AGGREGATES: Final = ("A", "B", "C")

#: Of which the second is only announced.
DRAINS: Final = ("heat", "later")

#: Microversions at which something about the query or the answer changes, the newest most often.
MINORS: Final = (
    (39,) * 12
    + (10, 12, 16, 17, 21, 22, 24, 25, 26, 27, 28, 28, 29, 31, 32, 33)
    + ((34, 35, 36, 36, 38))
)

NUMBERED_SUFFIXES: Final = ("1", "2", "30")
NAMED_SUFFIXES: Final = ("1", "_A", "-x0", "NET")

PROVIDERS_MAX: Final = 9
NODES_MAX: Final = 4
DEPTH_MAX: Final = 3


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


def few(names: Sequence[str], *, max_size: int = 2) -> st.SearchStrategy[frozenset[str]]:
    """Small sets of names, empty half of the time."""
    return st.just(frozenset[str]()) | st.frozensets(
        st.sampled_from(names), min_size=1, max_size=max_size
    )


def seldom() -> st.SearchStrategy[bool]:
    """True one time in six."""
    return st.sampled_from((False,) * 5 + (True,))


def sometimes() -> st.SearchStrategy[bool]:
    """True one time in three."""
    return st.sampled_from((False, False, True))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Worlds of one to nine providers."""
    providers = draw(racks()) if draw(sometimes()) else []
    for shape in draw(st.lists(shapes(), min_size=1, max_size=4)):
        for _ in range(draw(st.integers(1, 3))):
            if len(providers) + len(shape) <= PROVIDERS_MAX:
                providers += draw(trees(shape, first=len(providers)))
    if draw(sometimes()):
        providers = [replace(each, drains=draw(few_drains())) for each in providers]
    announced = frozenset({DRAINS[1]})
    return World(
        tuple(providers), frozenset(CLASSES[2:]), frozenset(TRAITS[:2]), announced=announced
    )


def few_drains() -> st.SearchStrategy[frozenset[str]]:
    """No drain most of the time."""
    return st.sampled_from((frozenset[str](),) * 3 + tuple(frozenset({each}) for each in DRAINS))


@st.composite
def racks(draw: st.DrawFn) -> list[WorldProvider]:
    """Two or three racks, each a host and a pool in an aggregate of its own; the racks differ only
    in the traits of some pools."""
    of_hosts = draw(st.frozensets(st.sampled_from(CLASSES), min_size=1, max_size=2))
    of_pools = draw(st.frozensets(st.sampled_from(CLASSES), min_size=1, max_size=2))
    of_all = draw(few(TRAITS, max_size=1))
    providers = []
    for number, aggregate in enumerate(AGGREGATES[: draw(st.integers(2, 3))]):
        traits = draw(few(TRAITS)) if draw(seldom()) else of_all
        for kind, classes, having in (
            ("host", of_hosts, frozenset[str]()),
            ("pool", of_pools, traits | {SHARING_TRAIT}),
        ):
            providers.append(
                WorldProvider(
                    name=f"{kind}{number}",
                    stocks={name: draw(stocks()) for name in sorted(classes)},
                    traits=having,
                    aggregates=frozenset({aggregate}),
                )
            )
    return providers


@st.composite
def shapes(draw: st.DrawFn) -> list[Node]:
    """Shapes of trees: one to four nodes on at most three levels, the root first."""
    nodes: list[Node] = []
    depths: list[int] = []
    for _ in range(draw(st.integers(1, NODES_MAX))):
        shallow = [place for place, depth in enumerate(depths) if depth < DEPTH_MAX]
        parent = draw(st.sampled_from(shallow)) if nodes else None
        depths.append(1 if parent is None else depths[parent] + 1)
        classes = draw(st.frozensets(st.sampled_from(CLASSES), min_size=1) | few(CLASSES))
        traits = draw(few(TRAITS))
        if draw(sometimes()):
            traits |= {SHARING_TRAIT}
        nodes.append(Node(parent, classes, traits))
    return nodes


@st.composite
def trees(draw: st.DrawFn, shape: Sequence[Node], first: int) -> list[WorldProvider]:
    """Trees of one shape; the providers are numbered from `first`."""
    return [
        WorldProvider(
            name=f"p{first + place}",
            parent=None if node.parent is None else f"p{first + node.parent}",
            stocks={name: draw(stocks()) for name in sorted(node.classes)},
            traits=node.traits,
            aggregates=draw(few(AGGREGATES)),
        )
        for place, node in enumerate(shape)
    ]


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """Inventories that mostly have free capacity; sometimes with units, a ratio, or
    overcommitted."""
    total = draw(st.sampled_from((1, 2, 3, 4, 6, 8, 8, 100)))
    plain = Stock(total, used=draw(st.sampled_from((0, 0, 0, 1, 2, 5))))
    if draw(seldom()):
        return replace(plain, max_unit=draw(st.integers(1, 4)))
    if not draw(seldom()):
        return plain
    return replace(
        plain,
        reserved=draw(st.just(0) | st.integers(0, total)),
        min_unit=draw(st.integers(1, 3)),
        max_unit=draw(st.just(MAX_INT) | st.integers(1, 6)),
        step_size=draw(st.integers(1, 3)),
        allocation_ratio=draw(st.sampled_from((1.0, 0.29, 0.7, 1.5, 16.0))),
    )


@st.composite
def questions(draw: st.DrawFn, fleet: World) -> Question:
    """Queries for a world, at a microversion that has every parameter they use."""
    minor = draw(st.sampled_from(MINORS))
    suffixes = NAMED_SUFFIXES if minor >= 33 else NUMBERED_SUFFIXES
    suffixed_max = 3 if minor >= 25 else 0
    suffixed = draw(st.lists(st.sampled_from(suffixes), unique=True, max_size=suffixed_max))
    picky = seldom() if suffixed else sometimes()
    chosen = [draw(groups(fleet, minor, suffix, picky)) for suffix in suffixed]
    if minor >= 36:
        chosen = [without_resources(group) if draw(seldom()) else group for group in chosen]
    if draw(st.booleans()) or not any(group.resources for group in chosen):
        place = draw(st.integers(0, len(chosen)))
        chosen.insert(place, draw(groups(fleet, minor, "", picky)))
    query = Query(
        groups=tuple(chosen),
        group_policy=draw(policies(minor, len(suffixed))),
        same_subtree=draw(subtrees(chosen)) if minor >= 36 and suffixed else (),
    )
    if minor >= 35 and draw(seldom()):
        required = draw(few((*TRAITS, SHARING_TRAIT)))
        forbidden = draw(few((*TRAITS, SHARING_TRAIT)))
        query = replace(query, root_required=required, root_forbidden=forbidden - required)
    return Question(query, minor)


@st.composite
def groups(
    draw: st.DrawFn, fleet: World, minor: int, suffix: str, picky: st.SearchStrategy[bool]
) -> Group:
    """Request groups with resources; `picky` is the probability of each kind of condition."""
    of_pools = sorted(
        frozenset[str]().union(*(p.traits for p in fleet.providers if SHARING_TRAIT in p.traits))
    )
    forbiddable = few(TRAITS) | few(of_pools) if of_pools else few(TRAITS)
    forbidden = draw(forbiddable) if minor >= 22 and draw(picky) else frozenset()
    alternatives_max = 2 if minor >= 39 else 1
    required = draw(st.lists(sets_of(TRAITS, alternatives_max), max_size=2))
    member_of_max = 2 if minor >= 24 else 1
    member_of = draw(st.lists(sets_of(AGGREGATES, 2), max_size=member_of_max))
    homes = [provider.name for provider in fleet.providers]
    classes_max = draw(st.sampled_from((1, 1, 2)) if suffix else st.integers(1, len(CLASSES)))
    return Group(
        suffix=suffix,
        resources=draw(
            st.dictionaries(st.sampled_from(CLASSES), amounts(), min_size=1, max_size=classes_max)
        ),
        required=tuple(alternatives for alternatives in required if alternatives - forbidden)
        if minor >= 17 and draw(picky)
        else (),
        forbidden=forbidden,
        member_of=tuple(member_of) if minor >= 21 and draw(picky) else (),
        not_member_of=draw(few(AGGREGATES)) if minor >= 32 and draw(picky) else frozenset(),
        in_tree=draw(st.sampled_from([*homes, "unknown"])) if minor >= 31 and draw(picky) else None,
    )


def amounts() -> st.SearchStrategy[int]:
    """Amounts that often fit."""
    return st.sampled_from((1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 29))


def sets_of(names: Sequence[str], max_size: int) -> st.SearchStrategy[frozenset[str]]:
    """Sets of one name, or of a few."""
    return st.frozensets(st.sampled_from(names), min_size=1, max_size=max_size)


def without_resources(group: Group) -> Group:
    """The group without its resources; it must keep at least one condition."""
    bare = replace(group, resources={})
    says_nothing = bare == Group(group.suffix)
    return replace(bare, required=(frozenset({TRAITS[0]}),)) if says_nothing else bare


def policies(minor: int, suffixed: int) -> st.SearchStrategy[str | None]:
    """Group policies: required with several suffixed groups, not available below 1.25."""
    if minor < 25:
        return st.none()
    given = ("none", "isolate")
    return st.sampled_from(given) if suffixed > 1 else st.sampled_from((None, *given))


@st.composite
def subtrees(draw: st.DrawFn, chosen: Sequence[Group]) -> tuple[frozenset[str], ...]:
    """Values for same_subtree; they name at least all groups without resources."""
    suffixes = [group.suffix for group in chosen if group.suffix]
    some = st.frozensets(st.sampled_from(suffixes), min_size=1)
    values = draw(st.lists(some, max_size=2)) if draw(st.booleans()) else []
    unnamed = {group.suffix for group in chosen if group.suffix and not group.resources}
    unnamed -= frozenset().union(*values)
    return (*values, frozenset(unnamed) | draw(some)) if unnamed else tuple(values)


@st.composite
def changes(draw: st.DrawFn, fleet: World) -> World:
    """The same providers, but other inventories of the same classes, or another usage."""
    changed = list(fleet.providers)
    for place in draw(st.sets(st.integers(0, len(changed) - 1), min_size=1, max_size=3)):
        provider = changed[place]
        claims_only = draw(st.booleans())
        changed[place] = replace(
            provider,
            stocks={
                name: replace(stock, used=draw(st.integers(0, 5)))
                if claims_only
                else draw(stocks())
                for name, stock in provider.stocks.items()
            },
        )
    return replace(fleet, providers=tuple(changed))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[World], list[Question]]:
    """A world at several points in time, and questions to ask at each of them."""
    fleet = draw(worlds())
    asked = [draw(questions(fleet)) for _ in range(6)]
    moments = [fleet]
    for _ in range(draw(st.integers(1, 3))):
        moments.append(draw(changes(moments[-1])))
    return moments, asked


@st.composite
def worlds_with_questions(draw: st.DrawFn) -> tuple[World, list[Question]]:
    """A world and several questions about it."""
    fleet = draw(worlds())
    return fleet, [draw(questions(fleet)) for _ in range(draw(st.sampled_from((1, 12, 12, 12))))]
