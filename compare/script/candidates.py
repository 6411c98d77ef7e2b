# SPDX-License-Identifier: Apache-2.0
"""`GET /allocation_candidates`: every parameter good and bad, then random questions.

The worlds stay in the database beside what earlier sections left, so they use resource classes of
their own: a question about world W names classes `CUSTOM_<W>_<LETTER>` only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from bench.api import LATEST, Json
from compare.script.step import (
    Step,
    claim,
    make_provider,
    request,
    set_aggregates,
    set_inventories,
    set_traits,
    uid,
)

_PATH = "/allocation_candidates"
_TRAITS = ["CUSTOM_CAND_1", "CUSTOM_CAND_2", "CUSTOM_CAND_3"]
_SHARES = "MISC_SHARES_VIA_AGGREGATE"
_VERSIONS = [
    *("1.10", "1.12", "1.16", "1.17", "1.21", "1.22", "1.24", "1.25", "1.27", "1.28", "1.29"),
    *("1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.38", LATEST),
]
_WORLDS_COUNT = 4
_QUESTIONS_PER_WORLD = 120
_SEED = 20


@dataclass(frozen=True, slots=True)
class _Node:
    """One provider of a drawn world."""

    name: str
    parent: str | None = None
    inventories: Json = None
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()

    def steps(self) -> Iterator[Step]:
        """Make the provider and give it what it has."""
        yield make_provider(self.name, self.parent)
        generation = 0
        if self.inventories:
            yield set_inventories(self.name, generation, self.inventories)
            generation += 1
        if self.traits:
            yield set_traits(self.name, generation, self.traits)
            generation += 1
        if self.aggregates:
            yield set_aggregates(self.name, generation, self.aggregates)


def steps() -> Iterator[Step]:
    """A drawn world with a tree, a flat host and a pool; then the parameters one by one."""
    for name in ("CUSTOM_W_A", "CUSTOM_W_B", "CUSTOM_W_D"):
        yield request("PUT", f"/resource_classes/{name}")
    for trait in _TRAITS:
        yield request("PUT", f"/traits/{trait}")
    gpu = {"CUSTOM_W_B": {"total": 4}}
    for node in (
        _Node(
            "w-host", None, {"CUSTOM_W_A": {"total": 8, "reserved": 1}}, (_TRAITS[0],), ("w-agg",)
        ),
        _Node("w-numa0", "w-host", gpu, (_TRAITS[1],)),
        _Node("w-numa1", "w-host", gpu, (_TRAITS[2],), ("w-agg-2",)),
        _Node(
            "w-flat",
            None,
            {"CUSTOM_W_A": {"total": 4, "allocation_ratio": 2.0}, "CUSTOM_W_B": {"total": 2}},
            (_TRAITS[0], _TRAITS[1]),
            ("w-agg",),
        ),
        _Node(
            "w-pool", None, {"CUSTOM_W_D": {"total": 1000, "step_size": 5}}, (_SHARES,), ("w-agg",)
        ),
    ):
        yield from node.steps()
    yield claim("w-consumer", {"w-host": {"CUSTOM_W_A": 2}, "w-pool": {"CUSTOM_W_D": 100}})
    for query in _questions():
        for version in _VERSIONS:
            yield request("GET", f"{_PATH}?{query}", version)
    yield request("GET", _PATH, "1.9")
    yield request("GET", f"{_PATH}?resources=VCPU:1", None)


def _questions() -> list[str]:
    """Parameters good and bad, each to be asked at every interesting version."""
    a = "resources=CUSTOM_W_A:1"
    agg, agg2, host = uid("w-agg"), uid("w-agg-2"), uid("w-host")
    one, two, three = _TRAITS
    return [
        *("", a, "resources=CUSTOM_W_A:1,CUSTOM_W_B:1", "resources=CUSTOM_W_A:1,CUSTOM_W_D:5"),
        *("resources=CUSTOM_W_D:5", "resources=CUSTOM_W_D:4", "resources=CUSTOM_W_A:8"),
        *("resources=CUSTOM_W_A:5", "resources=CUSTOM_W_A:6", "resources=CUSTOM_W_A:9"),
        *("resources=", "resources=%20", "resources=CUSTOM_W_A", "resources=CUSTOM_W_A:"),
        *("resources=CUSTOM_W_A:0", "resources=CUSTOM_W_A:-1", "resources=CUSTOM_W_A:x"),
        *("resources=CUSTOM_W_A:1:1", "resources=CUSTOM_W_A:1,", "resources=CUSTOM_NO:1"),
        *("resources=CUSTOM_W_A:1.0", "resources=CUSTOM_W_A:99999999999", "resources=vcpu:1"),
        *("resources=CUSTOM_W_A:%2B1", "resources=CUSTOM_W_A:1,CUSTOM_W_A:2"),
        *(f"{a}&resources=CUSTOM_W_B:1", f"resources=bad&{a}", f"{a}&resources=bad"),
        *(f"{a}&limit=1", f"{a}&limit=0", f"{a}&limit=x", f"{a}&limit=-1", f"{a}&limit="),
        *(f"{a}&limit=1000000", f"{a}&limit=01", f"{a}&limit=2&limit=1000"),
        *(f"{a}&required={one}", f"{a}&required={one},{two}", f"{a}&required=!{one}"),
        *(f"{a}&required=", f"{a}&required={one},", f"{a}&required=CUSTOM_NO", f"{a}&required=!"),
        *(f"{a}&required=!CUSTOM_NO", f"{a}&required={one},!{one}", f"{a}&required=%20{one}%20"),
        *(f"{a}&required=in:{one},{two}", f"{a}&required=in:", f"{a}&required=in:{one},!{two}"),
        *(f"{a}&required=in:{one}&required={two}", f"{a}&required=CUSTOM_NO&required={one}"),
        *(f"{a}&required=in:{one},{two}&required=!{one},!{two}", f"{a}&required=!in:{one}"),
        *(f"{a}&required=in:CUSTOM_NO,{one}", f"{a}&required={one},in:{two}"),
        *(f"{a}&member_of={agg}", f"{a}&member_of=in:{agg},{agg2}", f"{a}&member_of={agg},{agg2}"),
        *(f"{a}&member_of=junk", f"{a}&member_of=", f"{a}&member_of=!{agg}", f"{a}&member_of=in:"),
        *(f"{a}&member_of=!in:{agg},{agg2}", f"{a}&member_of={agg}&member_of={agg2}"),
        *(f"{a}&member_of=in:{agg},!{agg2}", f"{a}&member_of=!{agg},{agg2}"),
        *(f"{a}&member_of={uid('agg-none')}", f"{a}&member_of=!{uid('agg-none')}"),
        *(
            f"{a}&in_tree={host}",
            f"{a}&in_tree={uid('nobody')}",
            f"{a}&in_tree=junk",
            f"{a}&in_tree=",
        ),
        *(f"{a}&in_tree={uid('w-numa0')}", f"resources=CUSTOM_W_B:1&in_tree={host}"),
        *(f"{a}&foo=1", f"{a}&foo=1&bar=2", f"{a}&Resources=x", f"{a}&%FF=1", f"{a}&required=%FF"),
        *("resources1=CUSTOM_W_A:1", "resources0=CUSTOM_W_A:1", "resources01=CUSTOM_W_A:1"),
        *("resources_X=CUSTOM_W_A:1", "resources-=CUSTOM_W_A:1", "resources.=CUSTOM_W_A:1"),
        "resources" + "x" * 64 + "=CUSTOM_W_A:1",
        "resources" + "x" * 65 + "=CUSTOM_W_A:1",
        *("limit1=5", f"{a}&limit1=5", f"{a}&group_policy1=none", f"{a}&root_required1={one}"),
        *(f"{a}&group_policy=none", f"{a}&group_policy=isolate", f"{a}&group_policy=bad"),
        *(f"{a}&group_policy=", f"{a}&group_policy=none&group_policy=isolate"),
        f"{a}&resources1=CUSTOM_W_B:1",
        f"{a}&resources1=CUSTOM_W_B:1&resources2=CUSTOM_W_B:1",
        f"{a}&resources1=CUSTOM_W_B:1&resources2=CUSTOM_W_B:1&group_policy=none",
        f"{a}&resources1=CUSTOM_W_B:1&resources2=CUSTOM_W_B:1&group_policy=isolate",
        "resources1=CUSTOM_W_B:3&resources2=CUSTOM_W_B:3&group_policy=none",
        f"resources1=CUSTOM_W_B:1&required1={two}&required2={three}&resources2=CUSTOM_W_B:1"
        "&group_policy=isolate",
        *(f"required={one}", f"required1={one}", f"{a}&required1={one}", f"{a}&member_of1={agg}"),
        *(f"{a}&in_tree1={host}", f"{a}&required1=!{one}", "group_policy=none", "limit=1"),
        f"{a}&required3={one}&required2={two}&member_of4={agg}",
        f"{a}&resources1=CUSTOM_NO:1&resources2=CUSTOM_W_B:99&group_policy=none",
        f"{a}&resources1=CUSTOM_W_B:1&required1={one},!{one}",
        f"{a}&root_required={one}",
        f"{a}&root_required=!{one}",
        f"{a}&root_required={one},!{one}",
        f"{a}&root_required=in:{one}",
        f"{a}&root_required=",
        f"{a}&root_required=CUSTOM_NO",
        f"{a}&root_required={one}&root_required={two}",
        "resources_A=CUSTOM_W_B:1&resources_B=CUSTOM_W_B:1&same_subtree=_A,_B&group_policy=none",
        "resources_A=CUSTOM_W_A:1&resources_B=CUSTOM_W_B:1&same_subtree=_A,_B&group_policy=none",
        f"resources_A=CUSTOM_W_A:1&required_B={two}&same_subtree=_A,_B&group_policy=none",
        f"resources_A=CUSTOM_W_A:1&required_B={two}&group_policy=none",
        f"required_B={two}&same_subtree=_B",
        f"{a}&same_subtree=_X",
        f"{a}&same_subtree=",
        "resources_A=CUSTOM_W_A:1&same_subtree=_A",
        "resources_A=CUSTOM_W_A:1&same_subtree=_A,",
        "resources_A=CUSTOM_W_A:1&same_subtree=_A,_C",
    ]


def random_steps() -> Iterator[Step]:
    """Random worlds and random questions, the same in every run."""
    chance = random.Random(_SEED)
    for trait in (*_TRAITS,):
        yield request("PUT", f"/traits/{trait}")
    for world in range(_WORLDS_COUNT):
        classes = [f"CUSTOM_W{world}_{letter}" for letter in "ABC"]
        for name in classes:
            yield request("PUT", f"/resource_classes/{name}")
        names: list[str] = []
        for _ in range(chance.randint(8, 12)):
            node = _random_node(chance, world, names, classes)
            names.append(node.name)
            yield from node.steps()
        for consumer in range(6):
            provider = chance.choice(names)
            amounts = {chance.choice(classes): chance.randint(1, 3)}
            yield claim(f"w{world}-consumer-{consumer}", {provider: amounts})
        for _ in range(_QUESTIONS_PER_WORLD):
            question = _random_question(chance, world, names, classes)
            for version in ("1.10", "1.25", "1.28", "1.33", "1.36", LATEST):
                yield request("GET", f"{_PATH}?{question}", version)


def _random_node(chance: random.Random, world: int, names: list[str], classes: list[str]) -> _Node:
    inventories = {
        name: {
            "total": chance.randint(2, 10),
            "reserved": chance.choice((0, 0, 1)),
            "min_unit": chance.choice((1, 1, 2)),
            "max_unit": chance.choice((2147483647, 4)),
            "step_size": chance.choice((1, 1, 2)),
            "allocation_ratio": chance.choice((1.0, 1.5)),
        }
        for name in chance.sample(classes, chance.randint(0, 3))
    }
    traits = [trait for trait in _TRAITS if chance.random() < 0.4]
    # Sharing roots only: a sharing child makes Placement fail with 500 (its defect D1).
    parent = chance.choice(names) if names and chance.random() < 0.55 else None
    if parent is None and chance.random() < 0.3:
        traits.append(_SHARES)
    aggregates = [f"w{world}-agg-{number}" for number in range(2) if chance.random() < 0.4]
    return _Node(f"w{world}-{len(names)}", parent, inventories, tuple(traits), tuple(aggregates))


def _random_question(
    chance: random.Random, world: int, names: list[str], classes: list[str]
) -> str:
    suffixes = [
        *([""] if chance.random() < 0.7 else []),
        *("1", "2")[: chance.choice((0, 0, 1, 2))],
    ]
    suffixes = suffixes or [""]
    parts: list[str] = []
    # Each class in one group only: the same in two makes Placement err (its defect D2).
    free = chance.sample(classes, len(classes))
    for suffix in suffixes:
        count = chance.randint(1, 2) if suffix == "" else 1
        asked = [free.pop() for _ in range(min(count, len(free)))]
        if not asked:
            continue
        amounts = ",".join(f"{name}:{chance.randint(1, 3)}" for name in asked)
        parts.append(f"resources{suffix}={amounts}")
        if chance.random() < 0.35:
            parts.append(f"required{suffix}={_random_traits(chance)}")
        if chance.random() < 0.25:
            parts.append(f"member_of{suffix}={_random_aggregates(chance, world)}")
        if chance.random() < 0.1:
            parts.append(f"in_tree{suffix}={uid(chance.choice(names))}")
    if chance.random() < 0.8:
        parts.append(f"group_policy={chance.choice(('none', 'isolate'))}")
    if chance.random() < 0.15:
        parts.append(f"root_required={chance.choice(('', '!'))}{chance.choice(_TRAITS)}")
    if "1" in suffixes and "2" in suffixes and chance.random() < 0.3:
        parts.append("same_subtree=1,2")
    return "&".join(quote(part, safe="=:,!&") for part in parts)


def _random_traits(chance: random.Random) -> str:
    names = chance.sample(_TRAITS, chance.randint(1, 2))
    if chance.random() < 0.2:
        return "in:" + ",".join(names)
    return ",".join(chance.choice(("", "", "!")) + name for name in names)


def _random_aggregates(chance: random.Random, world: int) -> str:
    uuids = [uid(f"w{world}-agg-{number}") for number in range(2)]
    return chance.choice(
        [
            uuids[0],
            uuids[1],
            f"in:{uuids[0]},{uuids[1]}",
            f"!{uuids[0]}",
            f"!in:{uuids[0]},{uuids[1]}",
        ]
    )
