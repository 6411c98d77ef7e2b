# SPDX-License-Identifier: Apache-2.0
"""A host whose providers are in a YAML file: what the driver adds, removes and refuses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from berth.hosts import BadProviderTree, ReshapeNeeded
from berth.hosts.drivers import load_driver
from berth.hosts.drivers.static import StaticDriver, read_declaration
from berth.hosts.drivers.watched import Watched
from berth.hosts.errors import BadConfiguration
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, drawn
from tests.worlds import aggregate_uuid, provider_uuid

HOST = """
    inventories:
      MEMORY_MB: {total: 65536, reserved: 512}
    traits: [HW_CPU_X86_AVX2, CUSTOM_RACK_7]
    children:
      - name: $NODE_disk
        inventories:
          DISK_GB: {total: 500, allocation_ratio: 1.5}
        children:
          - name: $NODE_disk_cache
            inventories: {CUSTOM_CACHE_GB: {total: 64, step_size: 2, max_unit: 8}}
"""

HOST_DRAWN = """
    cn1  MEMORY_MB=65536(reserved:512)  CUSTOM_RACK_7  HW_CPU_X86_AVX2
      cn1_disk  DISK_GB=500(ratio:1.5)  CUSTOM_OWNER_BERTH_STATIC
        cn1_disk_cache  CUSTOM_CACHE_GB=64(max:8,step:2)  CUSTOM_OWNER_BERTH_STATIC
"""


class YamlHost:
    """A host with a file in a directory of its own, and a driver that reads it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "providers.yaml"
        self.owned = folder / "state" / "owned.json"
        self.driver = StaticDriver(self.path, self.owned)

    def write(self, text: str) -> None:
        """Replace the file as editors do, with a new inode."""
        beside = self.path.with_suffix(".new")
        beside.write_text(dedent(text))
        beside.replace(self.path)

    def restart(self) -> None:
        """A new driver, which has only the file of recorded additions."""
        self.driver = StaticDriver(self.path, self.owned)


@pytest.fixture
def stage(service_in_process: Stage) -> Iterator[Stage]:
    """An empty service in this process: the transport does not matter here."""
    yield service_in_process
    service_in_process.clear()


@pytest.fixture
def host(tmp_path: Path) -> YamlHost:
    """A host without a file."""
    return YamlHost(tmp_path)


def test_a_file_becomes_a_tree(stage: Stage, host: YamlHost) -> None:
    """`$NODE` is the node's name; a second pass and a second start change nothing."""
    host.write(HOST)
    start(stage, host.driver)
    assert stage.picture() == drawn(HOST_DRAWN)
    assert not periodic(stage, host.driver)
    host.restart()
    assert not start(stage, host.driver)


def test_what_leaves_the_file_leaves_the_service(stage: Stage, host: YamlHost) -> None:
    """Its own children, and its additions to the root; not what others have."""
    stage.show(
        """
        cn1  VCPU=8  COMPUTE_NODE  @A
          agent  CUSTOM_VNIC_TYPE_NORMAL
        """
    )
    own = f"aggregates: [{aggregate_uuid('A')}, {aggregate_uuid('B')}]\n"
    agent = "\n  - {name: agent, traits: [CUSTOM_SEEN], inventories: {CUSTOM_X: {total: 1}}}\n"
    host.write(own + dedent(HOST).strip() + agent)
    start(stage, host.driver)
    stage.trait("cn1", "CUSTOM_OPERATORS")
    host.restart()
    host.write("traits: [COMPUTE_NODE]")
    periodic(stage, host.driver)
    after = """
        cn1  VCPU=8  COMPUTE_NODE  CUSTOM_OPERATORS  @A
          agent  CUSTOM_VNIC_TYPE_NORMAL
    """
    assert stage.picture() == drawn(after)
    host.write("{}")
    assert not periodic(stage, host.driver), "COMPUTE_NODE was there before the file named it"


def test_a_field_that_leaves_the_file_is_what_the_service_takes(
    stage: Stage, host: YamlHost
) -> None:
    """The service's default applies again."""
    host.write("inventories: {VCPU: {total: 8, reserved: 2, allocation_ratio: 4}}")
    start(stage, host.driver)
    host.write("inventories: {VCPU: {total: 8}}")
    periodic(stage, host.driver)
    assert stage.picture() == drawn("    cn1  VCPU=8")


def test_a_child_is_moved_and_named_anew_by_its_uuid(stage: Stage, host: YamlHost) -> None:
    """With its allocations."""
    uuid = provider_uuid("gpu")
    gpu = f"{{name: %s, uuid: {uuid}, inventories: {{PGPU: {{total: 1}}}}}}"
    host.write(f"children: [{{name: board}}, {gpu % 'gpu'}]")
    start(stage, host.driver)
    stage.hold("i1", "gpu PGPU=1")
    host.write(f"children: [{{name: board, children: [{gpu % 'gpu-0'}]}}]")
    periodic(stage, host.driver)
    assert stage.picture() == drawn(
        """
        cn1
          board  CUSTOM_OWNER_BERTH_STATIC
            gpu-0  PGPU=1  CUSTOM_OWNER_BERTH_STATIC
        i1: gpu-0 PGPU=1
        """
    )


def test_another_agents_child_is_not_moved(stage: Stage, host: YamlHost) -> None:
    """The file can add to it where it is."""
    stage.show(
        """
        cn1
          agent
            bridge
        """
    )
    host.write("children: [{name: bridge, traits: [CUSTOM_X]}]")
    with pytest.raises(BadConfiguration, match="another client created it, as bridge under agent"):
        start(stage, host.driver)


def test_a_child_with_anothers_below_it_stays(
    stage: Stage, host: YamlHost, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider of others is never deleted with it; that is logged once."""
    host.write("children: [{name: board, inventories: {PGPU: {total: 1}}}]")
    start(stage, host.driver)
    parent = provider_uuid("board-agent")
    body = {"name": "agent", "uuid": parent, "parent_provider_uuid": stage.uuid_of("board")}
    stage.transport.request("/resource_providers", "POST", microversion="1.36", json=body)
    host.write("{}")
    for _ in range(2):
        periodic(stage, host.driver)
    assert [record.getMessage() for record in caplog.records if "stays" in record.message] == [
        "board left the file; it stays, but offers nothing more, because agent is below it"
    ]
    assert stage.picture() == drawn(
        """
        cn1
          board  CUSTOM_OWNER_BERTH_STATIC
            agent
        """
    )


def test_a_broken_file_is_told_once_and_the_good_one_stays(
    stage: Stage, host: YamlHost, caplog: pytest.LogCaptureFixture
) -> None:
    """The last valid version applies until it is repaired; without one there is no report."""
    host.write("childen: []")
    with pytest.raises(BadConfiguration, match="did you mean children"):
        start(stage, host.driver)
    host.write(HOST)
    start(stage, host.driver)
    host.write("inventories: {VCPU: {total: -1}}")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert not periodic(stage, host.driver)
    assert len(caplog.records) == 1
    assert "inventories.VCPU.total: expected a whole number >= 1, got -1" in caplog.text
    assert "the previous version stays in force" in caplog.text
    host.write("{}")
    assert periodic(stage, host.driver)
    assert stage.picture() == drawn("    cn1")


def test_a_change_while_the_file_is_read_is_seen_later(tmp_path: Path) -> None:
    """At the next check: the content is compared with the state before the read."""
    path = tmp_path / "file"
    path.write_text("1")

    def read(_: object) -> str:
        text = path.read_text()
        if text == "1":
            path.write_text("two")
        return text

    watched = Watched(lambda: [path], read)
    assert [watched.value(), watched.value(), watched.value()] == ["1", "two", "two"]


def test_what_somebody_holds_does_not_go(stage: Stage, host: YamlHost) -> None:
    """For a child or a class: the pass is refused, and the tree stays until they are released."""
    host.write("children: [{name: gpu0, inventories: {PGPU: {total: 1}}}]")
    start(stage, host.driver)
    stage.hold("i1", "gpu0 PGPU=1")
    before = stage.picture()
    for text in ("{}", "children: [{name: gpu0}]"):
        host.write(text)
        with pytest.raises(BadProviderTree, match="gpu0 would lose its PGPU"):
            periodic(stage, host.driver)
        assert stage.picture() == before
    stage.hold("i1", "")
    host.write("{}")
    periodic(stage, host.driver)
    assert stage.picture() == drawn("    cn1")


def test_where_the_use_is_known_a_held_child_waits(
    stage: Stage, host: YamlHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Its free capacity is reserved, the rest is reported, and it is deleted when it is free."""
    host.driver.used = stage.used
    host.write("children: [{name: gpu0, inventories: {PGPU: {total: 2}, CUSTOM_X: {total: 1}}}]")
    start(stage, host.driver)
    stage.hold("i1", "gpu0 PGPU=1")
    host.write("traits: [CUSTOM_RACK_7]")
    for _ in range(2):
        periodic(stage, host.driver)
    assert stage.picture() == drawn(
        """
        cn1  CUSTOM_RACK_7
          gpu0  PGPU=2(reserved:2)  CUSTOM_OWNER_BERTH_STATIC
        i1: gpu0 PGPU=1
        """
    )
    assert caplog.text.count("gpu0 left the file; it stays, but offers nothing more") == 1
    stage.hold("i1", "")
    periodic(stage, host.driver)
    assert stage.picture() == drawn("    cn1  CUSTOM_RACK_7")


def test_one_file_does_for_many_nodes(stage: Stage, host: YamlHost) -> None:
    """Additions that are recorded for one node are not removed from another."""
    stage.show("    cn2  CUSTOM_RACK_7")
    host.write(HOST)
    for node in ("cn1", "cn2"):
        start(stage, host.driver, node)
    host.write("{}")
    for node in ("cn1", "cn2"):
        periodic(stage, host.driver, node)
    assert stage.picture() == drawn("    cn1\n    cn2  CUSTOM_RACK_7")


def test_names_that_are_alike_on_one_node_are_told_there(stage: Stage, host: YamlHost) -> None:
    """The file is right for every other node."""
    host.write("children: [{name: $NODE_gpu0}, {name: cn1_gpu0}]")
    with pytest.raises(BadConfiguration, match="on cn1 several providers have the name cn1_gpu0"):
        start(stage, host.driver)
    start(stage, host.driver, "cn2")


def test_a_class_moves_to_other_providers_with_its_allocations(
    stage: Stage, host: YamlHost
) -> None:
    """The largest first, each to the first provider with capacity for all of it; another agent's
    disk stays."""
    stage.show(
        """
        nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        cn1  VCPU=16  VGPU=8  @A
        i1: cn1 VCPU=2 VGPU=3, nfs DISK_GB=20
        i2: cn1 VCPU=2 VGPU=2
        i3: cn1 VGPU=1
        """
    )
    host.write(
        """
        children:
          - {name: gpu0, inventories: {VGPU: {total: 4}}}
          - {name: gpu1, inventories: {VGPU: {total: 4}}}
        moves:
          - {class: VGPU, from: $NODE, to: [gpu0, gpu1]}
        """
    )
    with pytest.raises(ReshapeNeeded):
        periodic(stage, host.driver)
    assert start(stage, host.driver).is_reshape
    assert stage.picture() == drawn(
        """
        nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        cn1  VCPU=16  @A
          gpu0  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
          gpu1  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
        i1: cn1 VCPU=2, gpu0 VGPU=3, nfs DISK_GB=20
        i2: cn1 VCPU=2, gpu1 VGPU=2
        i3: gpu0 VGPU=1
        """
    )
    assert not start(stage, host.driver)
    host.write(
        """
        inventories: {VGPU: {total: 8}}
        moves:
          - {class: VGPU, from: gpu0, to: [$NODE]}
          - {class: VGPU, from: gpu1, to: [$NODE]}
        """
    )
    assert start(stage, host.driver).is_reshape
    assert stage.picture() == drawn(
        """
        nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        cn1  VCPU=16  VGPU=8  @A
        i1: cn1 VCPU=2 VGPU=3, nfs DISK_GB=20
        i2: cn1 VCPU=2 VGPU=2
        i3: cn1 VGPU=1
        """
    )


def test_who_fits_nowhere_is_spread_and_who_cannot_be_is_told(stage: Stage, host: YamlHost) -> None:
    """The error has the amount needed and the capacity; nothing has moved then."""
    before = """
        cn1  VGPU=8
        i1: cn1 VGPU=5
        i2: cn1 VGPU=3
    """
    stage.show(before)
    moves = "moves: [{class: VGPU, from: $NODE, to: [gpu0, gpu1]}]\n"
    children = """children:
  - {name: gpu0, inventories: {VGPU: {total: %d}}}
  - {name: gpu1, inventories: {VGPU: {total: 4}}}
"""
    host.write(moves + children % 3)
    with pytest.raises(BadProviderTree, match="gpu0 has 3 VGPU, but 4 are needed"):
        start(stage, host.driver)
    assert stage.picture() == drawn(before)
    host.write(moves + children % 4)
    start(stage, host.driver)
    assert stage.picture() == drawn(
        """
        cn1
          gpu0  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
          gpu1  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
        i1: gpu0 VGPU=1, gpu1 VGPU=4
        i2: gpu0 VGPU=3
        """
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "providers.yaml is empty; to declare no provider, write {}"),
        ("[1]", "providers.yaml: expected a mapping, got [1]"),
        ("a: [", "providers.yaml, line 1: "),
        ("traits: []\ntraits: []", "line 2: duplicate key traits"),
        ("inventory: {}", "inventory: unknown key; did you mean inventories?"),
        (
            "inventories: {VCPUS: {total: 1}}",
            "VCPUS is not a standard resource class; did you mean VCPU?",
        ),
        (
            "inventories: {vcpu: {total: 1}}",
            "vcpu: expected the name of a resource class (capital letters, digits and _), got "
            "'vcpu'",
        ),
        ("inventories: {CUSTOM_: {total: 1}}", "something must follow the prefix"),
        ("inventories: {VCPU: 4}", "inventories.VCPU: expected a mapping, got 4"),
        ("inventories: {VCPU: {}}", "inventories.VCPU.total: is missing"),
        ("inventories: {VCPU: {total: 0}}", "VCPU.total: expected a whole number >= 1, got 0"),
        ("inventories: {VCPU: {total: 1.5}}", "VCPU.total: expected a whole number, got 1.5"),
        (
            "inventories: {VCPU: {total: 1, reserved: 2}}",
            "inventories.VCPU: reserved (2) is more than total (1)",
        ),
        (
            "inventories: {VCPU: {total: 1, min_unit: 3, max_unit: 2}}",
            "VCPU: min_unit (3) is more than max_unit (2)",
        ),
        (
            "inventories: {VCPU: {total: 1, allocation_ratio: 0}}",
            "allocation_ratio: expected a number > 0",
        ),
        ("inventories: {VCPU: {total: 1, ratio: 1}}", "VCPU.ratio: unknown key"),
        (
            "traits: [HW_NUMA_ROT]",
            "HW_NUMA_ROT is not a standard trait; did you mean HW_NUMA_ROOT?",
        ),
        ("traits: [CUSTOM_A, CUSTOM_A]", "traits lists CUSTOM_A twice"),
        ("aggregates: [rack]", "aggregates[0]: expected a uuid, got 'rack'"),
        ("children: {}", "children: expected a list, got {}"),
        ("children: [{}]", "children[0].name: is missing"),
        (
            f"children: [{{name: {'x' * 201}}}]",
            "children[0].name: expected text of length <= 200, got 'xxx",
        ),
        ("children: [{name: a}, {name: a}]", "2 providers have the name or uuid a"),
        ("children: [{name: $NODE}]", "2 providers have the name or uuid $NODE"),
        ("children: &a [{name: a, children: *a}]", "contains itself"),
        (
            "moves: [{class: VGPU, from: a, to: []}]",
            "moves[0].to: expected a list of length >= 1, got []",
        ),
        ("moves: [{class: VGPU, from: a, to: [b]}]", "to[0]: there is no provider b in this file"),
        ("moves: [{class: VGPU, from: a, to: [$NODE]}]", "$NODE has no inventory of VGPU"),
        (
            "inventories: {VGPU: {total: 1}}\nmoves: [{class: VGPU, from: $NODE, to: [$NODE]}]",
            "moves[0].from: $NODE still has inventory of VGPU in this file",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """One sentence: the file, the place in it, the value, and what would be valid."""
    path = tmp_path / "providers.yaml"
    path.write_text(text)
    with pytest.raises(BadConfiguration) as refused:
        read_declaration(path)
    (fault,) = refused.value.faults
    assert fault.startswith(str(path))
    assert said in fault


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """So that an operator repairs the file once."""
    path = tmp_path / "providers.yaml"
    path.write_text("traits: [x]\ninventories: {VCPU: {}}\nmore: 1")
    with pytest.raises(BadConfiguration) as refused:
        read_declaration(path)
    assert len(refused.value.faults) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "driver static, options.file: is missing"),
        (
            {"file": "a.yaml"},
            "driver static, options.file: expected an absolute path, got 'a.yaml'",
        ),
        ({"file": "/a", "stat": "/b"}, "options.stat: unknown key; did you mean state?"),
    ],
)
def test_an_option_that_cannot_be_meant_is_told(options: dict[str, object], said: str) -> None:
    """The driver is found by its name, and refuses unknown options."""
    assert load_driver("static", {"file": "/a.yaml"})
    with pytest.raises(BadConfiguration) as refused:
        load_driver("static", options)
    assert said in str(refused.value)


def test_a_lost_note_is_told(stage: Stage, host: YamlHost) -> None:
    """A file with other content is not overwritten."""
    host.write("{}")
    host.owned.parent.mkdir()
    host.owned.write_text("[]")
    with pytest.raises(BadConfiguration, match="move it away"):
        start(stage, host.driver)
    assert host.owned.read_text() == "[]"
