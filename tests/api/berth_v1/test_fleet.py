# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/fleet`: every provider as of one state; its lines, made many at a time, are those
made one by one. Source: spec/beyond.md 6.1."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.api.berth_v1.fleet_text import FleetText
from berth.api.berth_v1.provider_lines import PARTS, Line, ProviderLines
from berth.index import Index, Snapshot
from berth.model.ids import ProviderUUID
from berth.model.sentinels import UNSET
from berth.store.providers import update_provider
from tests.api.claims import consumer
from tests.api.configured import serve
from tests.api.worlds import done, new_name, provider
from tests.candidates.engine import copy_of
from tests.client import Client, Response
from tests.world_in_store import build_in_store
from tests.worlds import provider_uuid, world

PATH = "/berth/v1/fleet"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module."""
    return serve(tmp_path_factory.mktemp("fleet"))


def lines_of(answer: Response) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header, and the lines of providers."""
    done(answer, 200)
    assert answer.headers["content-type"] == "application/jsonl"
    header, *lines, end = map(json.loads, answer.text.splitlines())
    assert end == {"end": True, "lines": len(lines)}
    assert (header["berth"], header["providers"]) == ("fleet", len(lines))
    return header, lines


def test_a_line_has_everything_that_belongs_to_a_provider(api: Client) -> None:
    """Parents come before their children, with nothing of another tree in between."""
    name = new_name("cn")
    host = provider(api, {"VCPU": 8}, name=name)
    card = provider(api, {"VGPU": 4}, parent=host, name=f"{name}_0")
    consumer(api, {host: {"VCPU": 3}})
    _, lines = lines_of(api.get(PATH))
    roots = [line["root"] for line in lines]
    first = roots.index(host)
    root, child = lines[first : first + roots.count(host)]
    assert root == {
        "uuid": host,
        "name": name,
        "parent": None,
        "root": host,
        "generation": api.get(f"/resource_providers/{host}").json["generation"],
        "inventories": {
            "VCPU": {
                "total": 8,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 2**31 - 1,
                "step_size": 1,
                "allocation_ratio": 1.0,
            }
        },
        "usages": {"VCPU": 3},
        "traits": [],
        "aggregates": [],
        "drains": [],
    }
    assert (child["uuid"], child["parent"], child["usages"]) == (card, host, {"VGPU": 0})


def test_the_client_says_what_to_show(api: Client) -> None:
    """`allocations` adds what each consumer holds; without parts, the tree alone is shown."""
    host = provider(api, {"VCPU": 8, "MEMORY_MB": 64})
    holder = consumer(api, {host: {"VCPU": 3, "MEMORY_MB": 16}})
    _, lines = lines_of(api.get(f"{PATH}?include=usages,allocations"))
    (line,) = (each for each in lines if each["uuid"] == host)
    assert line["consumers"] == {holder: {"VCPU": 3, "MEMORY_MB": 16}}
    assert line["usages"] == {"VCPU": 3, "MEMORY_MB": 16}
    assert "traits" not in line
    _, lines = lines_of(api.get(f"{PATH}?include="))
    (line,) = (each for each in lines if each["uuid"] == host)
    assert line.keys() == {"uuid", "name", "parent", "root", "generation"}


def test_whoever_has_it_is_told_so(api: Client) -> None:
    """The entity tag is the revision, of the plain form and of that with allocations."""
    host = provider(api, {"VCPU": 8})
    for path in (PATH, f"{PATH}?include=allocations"):
        header, _ = lines_of(answer := api.get(path))
        assert answer.headers["etag"] == f'"{header["revision"]}"'
        tag = {"If-None-Match": answer.headers["etag"]}
        assert api.get(path, headers=tag).status == 304
        consumer(api, {host: {"VCPU": 1}})
        assert api.get(path, headers=tag).status == 200


#: Many trees of one shape, of which some differ in what is no part of it, and many with one more
#: level; three of another shape, which are too few for a template; and one that is alone.
FLEET = """
    cn1       MEMORY_MB=1024(used:16)  @A @B  HW_CPU_X86_VMX CUSTOM_T
      numa1   VCPU=4(used:3,ratio:16) PCPU=2
    cn2       MEMORY_MB=2048(reserved:512,min:16,max:1024,step:16)  HW_CPU_X86_VMX CUSTOM_T
      numa2   VCPU=4(ratio:1.3) PCPU=2(used:2)  !rack7 ?later
    cn3       MEMORY_MB=1024  @B  HW_CPU_X86_VMX CUSTOM_T  !rack7 !power
      numa3   VCPU=2147483647(used:2147483647) PCPU=2
    cn4       MEMORY_MB=1024  HW_CPU_X86_VMX CUSTOM_T
      numa4   VCPU=0 PCPU=2
    cn5       MEMORY_MB=1024  HW_CPU_X86_VMX CUSTOM_T
      numa5   VCPU=4(ratio:0.0001) PCPU=2
    gpu1
      socket1
        card1 PGPU=1
    gpu2
      socket2
        card2 PGPU=1
    gpu3
      socket3
        card3 PGPU=1
    gpu4
      socket4
        card4 PGPU=1
    pool1     DISK_GB=1000(used:7)  MISC_SHARES_VIA_AGGREGATE  @A  !power
    pool2     DISK_GB=2000  MISC_SHARES_VIA_AGGREGATE
    pool3     DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE
    bare
"""


@pytest.fixture(scope="module")
def snapshot(prepared: Path) -> Iterator[Snapshot]:
    """The fleet; a name has what JSON and templates must escape."""
    with copy_of(prepared) as db:
        build_in_store(world(FLEET), db)
        uuid, name = ProviderUUID(provider_uuid("cn2")), '100%d "of" \\ Straße \u2028'
        update_provider(db, uuid, name=name, parent_uuid=UNSET, may_reparent=False)
        yield Index(db).snapshot()


def many_at_a_time(snapshot: Snapshot, parts: Collection[str]) -> list[Line]:
    text = FleetText(snapshot, parts)
    return [
        msgspec.json.decode(line)
        for _, block in snapshot.occupied()
        for line in text.lines(block, range(block.rows))
    ]


def one_by_one(snapshot: Snapshot, parts: Collection[str]) -> list[Line]:
    lines = ProviderLines(snapshot, parts)
    return [
        lines.line(block, node, row)
        for _, block in snapshot.occupied()
        for row in range(block.rows)
        for node in range(block.shape.size)
    ]


@pytest.mark.parametrize("parts", [PARTS, (), *([part] for part in PARTS)], ids=str)
def test_the_lines_are_those_made_one_by_one(snapshot: Snapshot, parts: Collection[str]) -> None:
    """The same members in the same order, whatever is shown."""
    expected = one_by_one(snapshot, parts)
    assert len(expected) == 26
    assert [list(line.items()) for line in many_at_a_time(snapshot, parts)] == [
        list(line.items()) for line in expected
    ]
