# SPDX-License-Identifier: Apache-2.0
"""The lines of the whole fleet, made many at a time, are those made one by one; and the tag of a
tree, made without lines, is that of the lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from berth.api.berth_v1.fleet import CONSUMERS, PARTS, FleetText, Line, ProviderLines
from berth.api.berth_v1.trees import TreeView
from berth.index import Index, Snapshot
from berth.index.snapshot import Location
from berth.model.ids import ProviderId, ProviderUUID
from berth.model.shown import UNSET
from berth.store.providers import update_provider
from tests.candidates.engine import copy_of
from tests.world_in_store import build_in_store
from tests.worlds import provider_uuid, world

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


def test_some_rows_of_a_block_are_rendered(snapshot: Snapshot) -> None:
    """A part of the trees, from the middle of a block on."""
    (block,) = (block for _, block in snapshot.occupied() if block.rows == 5)
    lines, text = ProviderLines(snapshot, PARTS), FleetText(snapshot, PARTS)
    assert [msgspec.json.decode(line) for line in text.lines(block, range(1, 5))] == [
        lines.line(block, node, row) for row in range(1, 5) for node in range(2)
    ]


def test_consumers_come_last(snapshot: Snapshot) -> None:
    """Each line has those of its provider, and none where there are none."""
    text = FleetText(snapshot, ())
    for _, block in snapshot.occupied():
        holder = ProviderId(block.provider_ids.item(0, block.rows - 1))
        held = {"6f0f0d3e-0000-4000-8000-000000000001": {"VCPU": 2, "PCPU": 1}}
        lines = map(msgspec.json.decode, text.lines(block, range(block.rows), {holder: held}))
        for place, line in enumerate(lines):
            row, node = divmod(place, block.shape.size)
            is_holder = (node, row) == (0, block.rows - 1)
            assert list(line)[-1] == CONSUMERS
            assert line[CONSUMERS] == (held if is_holder else {})


@pytest.mark.parametrize("parts", [PARTS, (), *([part] for part in PARTS)], ids=str)
def test_a_tag_is_of_what_is_shown(snapshot: Snapshot, parts: Collection[str]) -> None:
    """All workers, and all releases, give a tree the same one: that of its JSON in order."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    for block_id, block in snapshot.occupied():
        for row in range(block.rows):
            view = TreeView(snapshot, Location(block_id, row, 0), parts)
            shown = {name: each for name, each in view.members().items() if name != "etag"}
            lines = [
                {
                    name: sorted(each) if isinstance(each, list) else each
                    for name, each in of.items()
                }
                for of in sorted(shown["providers"], key=lambda line: str(line["uuid"]))
            ]
            digest = sha256(encode({**shown, "providers": lines})).hexdigest()
            assert view.tag == f'"{digest[:32]}"'
