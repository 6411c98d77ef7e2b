# SPDX-License-Identifier: Apache-2.0
"""`berth provider`, `inventory`, `trait`, `class`, `aggregate`, `usage` and `consumer`."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.cli.fleet.ways import BothWays

AGGREGATE = "2f5c6a0e-4c5e-4d3c-9d0e-1b1a1f3a7f10"


def created(berth: BothWays, name: str, *options: str) -> str:
    """Create a provider with the same UUID both ways, and return it."""
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    printed = berth.ok("provider", "create", name, "--uuid", identity, *options)
    assert printed.stdout == f"created {name} ({identity})\n"
    return identity


@pytest.fixture
def host(berth: BothWays, request: pytest.FixtureRequest) -> str:
    """A host with two NUMA nodes, named after the test."""
    name = request.node.name
    created(berth, name)
    created(berth, f"{name}-1", "--parent", name)
    created(berth, f"{name}-0", "--parent", name)
    berth.ok("inventory", "set", name, "DISK_GB=2000", "DISK_GB:reserved=140")
    return str(name)


def test_a_list_is_in_order_of_names_with_sums_last(berth: BothWays, host: str) -> None:
    """With the names of parents in the list."""
    printed = berth.ok("provider", "list", "--in-tree", f"{host}-0")
    rows = [line.split() for line in printed.lines]
    assert rows[0] == ["NAME", "UUID", "PARENT"]
    assert [(row[0], row[2]) for row in rows[1:-1]] == [
        (host, "-"),
        (f"{host}-0", host),
        (f"{host}-1", host),
    ]
    assert printed.lines[-1] == "3 providers in 1 tree"


def test_a_list_has_every_filter_of_the_api(berth: BothWays, host: str) -> None:
    """Names, trees, amounts, traits and aggregates narrow the list."""
    berth.ok("trait", "set", host, "HW_CPU_X86_AVX2")
    berth.ok("aggregate", "set", host, AGGREGATE)
    for filters in (
        ["--name", host],
        ["--resource", "DISK_GB=1860", "--in-tree", host],
        ["--required", "HW_CPU_X86_AVX2,!HW_CPU_X86_AVX"],
        ["--required", "in:HW_CPU_X86_AVX2,HW_CPU_X86_AVX", "--in-tree", host],
        ["--member-of", AGGREGATE],
        ["--member-of", f"in:{AGGREGATE},{uuid.uuid4()}"],
    ):
        listed = berth.ok("provider", "list", "--json", *filters).answer["resource_providers"]
        assert [item["name"] for item in listed] == [host]
    for filters in (
        ["--resource", "DISK_GB=1861"],
        ["--member-of", f"!{AGGREGATE}"],
        ["--member-of", f"!in:{AGGREGATE},{uuid.uuid4()}"],
    ):
        listed = berth.ok("provider", "list", "--in-tree", host, *filters)
        assert host not in listed.stdout.split()
    berth.ok("aggregate", "set", host)


def test_a_tree_shows_used_and_capacity(berth: BothWays, host: str) -> None:
    """Indentation is parentage; the last line has the sums."""
    berth.ok("inventory", "set", f"{host}-0", "VCPU=32", "MEMORY_MB=131072")
    berth.ok("trait", "set", f"{host}-0", "HW_NUMA_ROOT")
    assert berth.ok("provider", "tree", f"{host}-1").lines == [
        f"{host}      DISK_GB 0/1,860",
        f"  {host}-0  MEMORY_MB 0/131,072  VCPU 0/32  HW_NUMA_ROOT",
        f"  {host}-1",
        "used/capacity; 0 consumers",
    ]


def test_show_has_everything_of_one_provider(berth: BothWays, host: str) -> None:
    """By name or by UUID."""
    shown = berth.ok("provider", "show", f"{host}-0").stdout
    fields = dict(line.split(None, 1) for line in shown.splitlines())
    assert (fields["name"], fields["parent"], fields["root"]) == (f"{host}-0", host, host)
    assert berth.ok("provider", "show", fields["uuid"]).stdout == shown


def test_set_renames_and_moves(berth: BothWays, host: str) -> None:
    """What is not named stays as it is."""
    berth.ok("provider", "set", f"{host}-1", "--parent", f"{host}-0")
    berth.ok("provider", "set", f"{host}-1", "--name", f"{host}-device")
    lines = berth.ok("provider", "tree", host).lines
    assert [line.split()[0] for line in lines[:3]] == [host, f"{host}-0", f"{host}-device"]
    assert lines[2].startswith("    ")
    berth.ok("provider", "set", f"{host}-device", "--no-parent")
    assert len(berth.ok("provider", "tree", host).lines) == 3


def test_delete_says_what_blocks_it(berth: BothWays, host: str) -> None:
    """Providers below it, or consumers."""
    refused = berth("provider", "delete", host)
    assert (refused.code, refused.stderr) == (
        11,
        f"berth: {host} was not deleted: 2 providers are below it ({host}-0, {host}-1): "
        "add --tree\n",
    )
    deleted = berth.ok("provider", "delete", host, "--tree")
    assert deleted.stdout == f"deleted {host}-1, {host}-0, {host}\n"
    assert berth.warned("provider", "list", "--name", host).lines == ["0 providers in 0 trees"]


def test_inventory_keeps_what_is_not_named(berth: BothWays, host: str) -> None:
    """Classes and fields; --replace removes the other classes."""
    berth.ok("inventory", "set", host, "VCPU=64", "VCPU:allocation_ratio=1.5")
    berth.ok("inventory", "set", host, "VCPU:max_unit=32", "VCPU:reserved=4")
    assert berth.ok("inventory", "list", host).lines == [
        "CLASS    USED  CAPACITY  TOTAL  RESERVED  RATIO  MIN  MAX  STEP",
        "DISK_GB     0     1,860  2,000       140    1.0    1    -     1",
        "VCPU        0        90     64         4    1.5    1   32     1",
    ]
    berth.ok("inventory", "set", host, "--replace", "VCPU=8")
    record = berth.ok("inventory", "show", host, "VCPU", "--json").answer
    assert (record["total"], record["allocation_ratio"]) == (8, 1.0)
    assert berth("inventory", "show", host, "DISK_GB").code == 11
    berth.ok("inventory", "delete", host, "--all")
    assert berth.ok("inventory", "list", host, "--json").answer["inventories"] == {}


def test_inventory_deletes_one_class(berth: BothWays, host: str) -> None:
    """One that is not there is named."""
    berth.ok("inventory", "delete", host, "DISK_GB")
    refused = berth("inventory", "delete", host, "DISK_GB")
    assert refused.stderr == f"berth: {host} has no inventory of DISK_GB\n"


@pytest.mark.parametrize("noun", ["inventory", "trait", "aggregate"])
def test_a_stale_generation_changes_nothing(berth: BothWays, host: str, noun: str) -> None:
    """The service says which generation the provider has."""
    things = {"inventory": "VCPU=1", "trait": "HW_CPU_X86_AVX", "aggregate": AGGREGATE}
    refused = berth(noun, "set", host, things[noun], "--generation", "0")
    assert refused.code == 11
    assert "generation" in refused.stderr and refused.stderr.count("\n") == 1
    berth.ok(noun, "set", host, things[noun], "--generation", "1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("VCPU", "VCPU is neither CLASS=TOTAL nor CLASS:FIELD=VALUE"),
        ("VCPU:size=4", "an inventory has the fields total, reserved"),
        ("VCPU:reserved=0.5", "reserved is an integer"),
        ("VGPU:reserved=1", "the provider has no inventory of VGPU: give VGPU=TOTAL"),
    ],
)
def test_a_change_that_makes_no_sense_is_a_usage_error(
    berth: BothWays, host: str, change: str, reason: str
) -> None:
    """It says what is missing."""
    refused = berth("inventory", "set", host, change)
    assert refused.code == 2
    assert reason in refused.stderr


def test_traits_are_set_added_and_removed(berth: BothWays, host: str) -> None:
    """And listed, by provider, by prefix and by use."""
    berth.ok("trait", "create", "CUSTOM_GREEN", "CUSTOM_RED")
    berth.ok("trait", "set", host, "CUSTOM_GREEN")
    assert berth.ok("trait", "add", host, "CUSTOM_RED").lines[:2] == ["CUSTOM_GREEN", "CUSTOM_RED"]
    assert berth.ok("trait", "remove", host, "CUSTOM_GREEN").lines == ["CUSTOM_RED", "1 trait"]
    assert berth.ok("trait", "list", "--provider", host).lines == ["CUSTOM_RED", "1 trait"]
    assert berth.ok("trait", "list", "--prefix", "CUSTOM_G").lines[0] == "CUSTOM_GREEN"
    used = ["--name", "CUSTOM_GREEN", "--name", "CUSTOM_RED"]
    assert berth.ok("trait", "list", *used, "--used").lines[0] == "CUSTOM_RED"
    assert berth.ok("trait", "list", *used, "--unused").lines[0] == "CUSTOM_GREEN"
    assert berth.ok("trait", "show", "CUSTOM_RED").lines[-1] == "1 provider has CUSTOM_RED"
    refused = berth("trait", "delete", "CUSTOM_RED")
    assert refused.stderr == "berth: The trait CUSTOM_RED is in use by a resource provider\n"
    berth.ok("trait", "set", host)
    berth.ok("trait", "delete", "CUSTOM_RED", "CUSTOM_GREEN")


def test_classes_are_created_and_deleted(berth: BothWays) -> None:
    """Their names start with CUSTOM_."""
    assert berth.ok("class", "create", "CUSTOM_LICENCE").stdout == "created CUSTOM_LICENCE\n"
    assert "CUSTOM_LICENCE" in berth.ok("class", "list").lines
    assert berth.ok("class", "show", "CUSTOM_LICENCE").lines == ["CUSTOM_LICENCE"]
    berth.ok("class", "delete", "CUSTOM_LICENCE")
    refused = berth("class", "show", "CUSTOM_LICENCE")
    assert refused.code == 11
    assert berth("class", "create", "licence").code == 11


def test_a_provider_joins_and_leaves_aggregates(berth: BothWays, host: str) -> None:
    """Without labels an aggregate is its UUID."""
    other = "0f5c6a0e-4c5e-4d3c-9d0e-1b1a1f3a7f10"
    berth.ok("aggregate", "set", host, AGGREGATE)
    assert berth.ok("aggregate", "add", host, other).stdout == (
        f"{host} is in {other}, {AGGREGATE}\n"
    )
    assert berth.ok("aggregate", "remove", host, AGGREGATE).stdout == f"{host} is in {other}\n"
    assert berth.ok("aggregate", "list", "--provider", host).lines[-1] == "1 aggregate"
    assert berth.ok("aggregate", "set", host).stdout == f"{host} is in no aggregate\n"


def test_aggregates_are_named_by_their_labels(berth: BothWays, host: str) -> None:
    """By `name`, or by any label that they have."""
    labelled = str(uuid.uuid4())
    berth.ok("aggregate", "set", host, labelled)
    answer = berth.ok("aggregate", "label", labelled, f"name={host}", "zone=z9")
    assert answer.stdout == f"labelled {labelled}: name={host} zone=z9\n"
    berth.ok("aggregate", "label", host, "rack=r9", "zone=z8")
    heads, row, sums = berth.ok("aggregate", "list", "--label", "rack=r9").lines
    assert (heads.split(), sums) == (["NAME", "UUID", "MEMBERS", "LABELS"], "1 aggregate")
    assert row.split() == [host, labelled, "1", "rack=r9", "zone=z8"]
    for reference in (host, "zone=z8", f"in:zone=z8,{uuid.UUID(int=9)}", f"zone=z8,{host}"):
        listed = berth.ok("provider", "list", "--member-of", reference, "--in-tree", host)
        assert listed.lines[-1] == "1 provider in 1 tree"
    assert berth.ok("provider", "tree", host).lines[-1] == (
        f"used/capacity; 0 consumers; aggregates {host} (rack=r9, zone=z8)"
    )
    missing = berth("provider", "list", "--member-of", "zone=z9")
    assert missing.stderr == (
        "berth: no aggregate has the label zone=z9; `berth aggregate list` prints all of them\n"
    )
    berth.ok("aggregate", "label", host, "rack=", "zone=")
    assert berth.ok("aggregate", "label", host, "--replace").stdout == (
        f"labelled {labelled}: no labels\n"
    )
    berth.ok("aggregate", "set", host)


def test_what_does_not_exist_is_named_in_one_sentence(berth: BothWays) -> None:
    """With the next step where there is one."""
    missing = berth("provider", "show", "nowhere")
    assert (missing.code, missing.stderr) == (
        11,
        "berth: no provider is named nowhere; `berth provider list` prints all of them\n",
    )
    unknown = str(uuid.UUID(int=5))
    assert berth("provider", "show", unknown).stderr == (
        f"berth: No resource provider with uuid {unknown} found\n"
    )
    assert berth("consumer", "show", unknown).stderr == (
        f"berth: no consumer {unknown} has allocations\n"
    )
    assert berth("provider", "tree", unknown).code == 11
    assert berth.warned("usage", "project", "nobody").lines == ["0 consumers"]


def test_json_is_the_answer_of_the_api(berth: BothWays, host: str) -> None:
    """Unchanged: its members are those of microversion 1.39."""
    shown = berth.ok("provider", "show", host, "--json").answer
    assert set(shown) == {
        *("uuid", "name", "generation", "links", "parent_provider_uuid", "root_provider_uuid")
    }
    usages = berth.ok("usage", "provider", host, "--json").answer
    assert usages == {"resource_provider_generation": 1, "usages": {"DISK_GB": 0}}
    assert berth.ok("provider", "tree", host, "--json").answer["resource_providers"]
    assert berth.ok("trait", "create", "CUSTOM_J", "--json").stdout == ""


TREE = """
providers:
- name: {host}
  inventories: {{DISK_GB: {{total: 2000, reserved: 140}}}}
- name: {host}-0
  parent: {host}
  inventories: {{VCPU: {{total: 32, allocation_ratio: 4.0}}}}
  traits: [HW_NUMA_ROOT]
- {{name: {host}-1, parent: {host}}}
"""


def test_a_file_makes_a_tree(
    berth: BothWays, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """All of it at once; a dry run only says what would change."""
    name, file = request.node.name, tmp_path / "tree.yaml"
    file.write_text(TREE.format(host=name))
    lines = [
        f"+ {name}  DISK_GB=2,000(reserved:140)",
        f"+ {name}-0  below {name}  VCPU=32(allocation_ratio:4.0)  +HW_NUMA_ROOT",
        f"+ {name}-1  below {name}",
        "3 providers changed",
    ]
    pending = berth("provider", "apply", str(file), "--dry-run")
    assert (pending.code, pending.lines) == (13, lines)
    assert pending.stderr == "berth: nothing was written\n"
    assert berth("provider", "show", name).code == 11
    assert berth.ok("provider", "apply", str(file)).lines == lines
    assert berth.ok("provider", "tree", name).lines[1] == f"  {name}-0  VCPU 0/128  HW_NUMA_ROOT"
    assert berth.ok("provider", "apply", str(file), "--dry-run").lines == ["0 providers changed"]


def test_a_file_of_a_part_changes_that_part(berth: BothWays, host: str, tmp_path: Path) -> None:
    """In JSON too; --remove-missing takes the rest away."""
    berth.ok("inventory", "set", f"{host}-0", "VCPU=32")
    berth.ok("trait", "set", f"{host}-0", "HW_NUMA_ROOT")
    file = tmp_path / "tree.json"
    stock = {"VCPU": {"total": 16}, "CUSTOM_GOLD": {"total": 1}}
    line = {"name": f"{host}-0", "inventories": stock, "traits": ["CUSTOM_FAST"]}
    file.write_text(json.dumps([line]))
    refused = berth("provider", "apply", str(file))
    assert refused.code == 11
    assert "There is no resource class CUSTOM_GOLD" in refused.stderr
    assert berth.ok("provider", "apply", str(file), "--create-names").lines == [
        "+ resource class CUSTOM_GOLD",
        "+ trait CUSTOM_FAST",
        f"~ {host}-0  CUSTOM_GOLD=1  VCPU=32 -> 16  +CUSTOM_FAST  -HW_NUMA_ROOT",
        "1 provider changed",
    ]
    file.write_text(json.dumps({"providers": [{"name": host}, {"name": f"{host}-0"}]}))
    removed = berth.ok("provider", "apply", str(file), "--remove-missing")
    assert removed.lines == [f"- {host}-1", "1 provider changed"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("providers: [", "is neither YAML nor JSON"),
        ("hosts: []", "has no list of providers"),
        ("[]", "has no list of providers"),
        ("[{traits: []}]", "has a provider without a uuid and a name"),
    ],
)
def test_a_file_without_a_tree_is_refused(
    berth: BothWays, tmp_path: Path, text: str, fault: str
) -> None:
    """With the name of the file."""
    file = tmp_path / "tree.yaml"
    file.write_text(text)
    refused = berth("provider", "apply", str(file))
    assert refused.code == 2
    assert refused.stderr.startswith(f"berth: {file} {fault}")


def test_what_is_kept_for_a_device_that_is_away_is_listed(berth: BothWays, host: str) -> None:
    """With the last day, which a trait of the provider names."""
    for name in ("CUSTOM_KEPT_UNTIL_20261228", "CUSTOM_KEPT_UNTIL_SPRING"):
        berth.ok("trait", "create", name)
        berth.ok("trait", "add", f"{host}-1", name)
    (kept,) = berth.ok("provider", "kept", "--json").answer["providers"]
    assert (kept["name"], kept["until"]) == (f"{host}-1", "2026-12-28")
    assert berth.ok("provider", "kept").lines[-1] == "1 provider"
