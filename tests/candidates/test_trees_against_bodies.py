# SPDX-License-Identifier: Apache-2.0
"""`PUT /berth/v1/trees/{reference}` makes a tree like its body. Source: spec/beyond.md 6.3."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import given, note, seed, settings

from tests.candidates.engine import Stand
from tests.candidates.strategies import Dice, seeded
from tests.client import Client
from tests.effort import SEED, scaled
from tests.worlds import World, aggregate_uuid

PATH: Final = "/berth/v1/trees"
NAMES: Final = tuple(f"below{number}" for number in range(6))

#: The lines of a tree as they are sent.
Body = list[dict[str, Any]]


def bodies(dice: Dice) -> list[Body]:
    """Trees with the same root and other providers below it, which move, come and go."""
    return [body(dice) for _ in range(5)]


def body(dice: Dice) -> Body:
    """All parts of each provider; parents come before their children."""
    lines: Body = [_line(dice, "root")]
    for name in dice.some(NAMES, 0, len(NAMES)):
        parent = dice.one([line["name"] for line in lines])
        lines.append({**_line(dice, name), "parent": parent})
    return lines


def _line(dice: Dice, name: str) -> dict[str, Any]:
    classes = dice.some(("VCPU", "MEMORY_MB", "DISK_GB"), 0, 3)
    return {
        "name": name,
        "inventories": {each: {"total": dice.number(1, 9)} for each in classes},
        "traits": sorted(dice.some(("HW_NUMA_ROOT", "HW_CPU_X86_AVX2"), 0, 2)),
        "aggregates": sorted(map(aggregate_uuid, dice.some(("A", "B", "C"), 0, 3))),
    }


@seed(SEED)
@settings(max_examples=scaled(15))
@given(seeded(bodies))
def test_a_tree_is_as_the_last_body_says(stand: Stand, several: list[Body]) -> None:
    """Whatever it was before: the tree that the answer shows and that a read shows; the changes
    name what came and went; a dry run writes nothing, and the same body again changes nothing."""
    client = stand(World(())).client
    before: set[str] = set()
    for lines in several:
        note(json.dumps(lines))
        sent = {"providers": lines, "remove_missing": True}
        dry = client.put(f"{PATH}/root?dry_run=true", json=sent)
        assert _names(client) == before
        answered = client.put(f"{PATH}/root", json=sent)
        assert answered.status in (200, 201), answered.text
        assert _kinds(dry.json) == _kinds(answered.json)
        names = {line["name"] for line in lines}
        kinds = _kinds(answered.json)
        assert {name for name, kind in kinds if kind == "create"} == names - before
        assert {name for name, kind in kinds if kind == "remove"} == before - names
        shown = client.get(f"{PATH}/root")
        assert _as_sent(shown.json["providers"]) == _sorted(lines)
        assert _as_sent(answered.json["providers"]) == _sorted(lines)
        again = client.put(f"{PATH}/root", json=sent)
        assert (again.status, again.json["changes"]) == (200, [])
        assert again.headers["ETag"] == shown.headers["ETag"]
        before = names


def _names(client: Client) -> set[str]:
    shown = client.get(f"{PATH}/root")
    return {line["name"] for line in shown.json["providers"]} if shown.status == 200 else set()


def _kinds(answer: Any) -> set[tuple[str, str]]:
    return {(each["name"], each["change"]) for each in answer["changes"]}


def _sorted(lines: Body) -> Body:
    return sorted(lines, key=lambda line: str(line["name"]))


def _as_sent(shown: Any) -> Body:
    """The lines of an answer: of inventories the totals, and parents by name."""
    names = {line["uuid"]: line["name"] for line in shown}
    lines = []
    for line in shown:
        parent = {"parent": names[line["parent"]]} if line["parent"] else {}
        lines.append(
            {
                "name": line["name"],
                "inventories": {
                    name: {"total": each["total"]} for name, each in line["inventories"].items()
                },
                "traits": sorted(line["traits"]),
                "aggregates": sorted(line["aggregates"]),
                **parent,
            }
        )
    return _sorted(lines)
