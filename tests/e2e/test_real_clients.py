# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients with `berth serve`: this machine is registered, used and removed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import openstack
import pytest

from tests.e2e.machine import Machine, read_machine
from tests.e2e.openstack_command import OpenStack, openstack_command
from tests.e2e.serving import Service, serving

#: What the clients warn their own developers of.
pytestmark = pytest.mark.filterwarnings("ignore:::openstack")

#: Flags of x86 and Arm CPUs that have a standard trait.
TRAIT_OF_FLAG = {
    "avx": "HW_CPU_X86_AVX",
    "avx2": "HW_CPU_X86_AVX2",
    "sse2": "HW_CPU_X86_SSE2",
    "vmx": "HW_CPU_X86_VMX",
    "svm": "HW_CPU_X86_SVM",
    "asimd": "HW_CPU_AARCH64_ASIMD",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service with two workers for the module."""
    with serving(tmp_path_factory.mktemp("home"), "--workers", "2") as service:
        yield service


@pytest.fixture(scope="module")
def machine() -> Machine:
    """This machine."""
    return read_machine()


@pytest.fixture(scope="module")
def command(service: Service) -> Iterator[OpenStack]:
    """The `openstack` command, for the module's service."""
    with openstack_command(service.url, service.home) as command:
        yield command


@pytest.mark.thorough
def test_the_openstack_command_registers_uses_and_removes_this_machine(
    command: OpenStack, machine: Machine
) -> None:
    """The whole life of a provider tree with an unmodified osc-placement."""
    root = command("resource", "provider", "create", machine.name)
    assert root["generation"] == 0

    numa: dict[str, int] = {}
    for node in machine.nodes:
        name = f"{machine.name}-numa{node.number}"
        child = command("resource", "provider", "create", name, "--parent-provider", root["uuid"])
        assert child["root_provider_uuid"] == root["uuid"]
        command(
            *("resource", "provider", "inventory", "set", child["uuid"]),
            *("--resource", f"VCPU={node.cpus}", "--resource", "VCPU:allocation_ratio=4.0"),
            *("--resource", f"MEMORY_MB={node.memory_mib}", "--resource", "MEMORY_MB:reserved=1"),
        )
        numa[child["uuid"]] = node.cpus
    disks = sum(machine.disks_gib.values())
    command(
        "resource", "provider", "inventory", "set", root["uuid"], "--resource", f"DISK_GB={disks}"
    )

    wanted = [trait for flag, trait in TRAIT_OF_FLAG.items() if flag in machine.cpu_flags]
    command.do("trait", "create", "CUSTOM_THIS_MACHINE")
    traits = [part for name in [*wanted, "CUSTOM_THIS_MACHINE"] for part in ("--trait", name)]
    kept = command("resource", "provider", "trait", "set", *traits, root["uuid"])
    assert {row["name"] for row in kept} == {*wanted, "CUSTOM_THIS_MACHINE"}

    listed = command("resource", "provider", "list", "--in-tree", root["uuid"])
    assert {row["uuid"] for row in listed} == {root["uuid"], *numa}

    candidates = command(
        *("allocation", "candidate", "list", "--resource", "VCPU=1"),
        *("--resource", "MEMORY_MB=16", "--resource", "DISK_GB=1"),
        *("--required", "CUSTOM_THIS_MACHINE"),
    )
    assert {row["resource provider"] for row in candidates} == {root["uuid"], *numa}

    consumer, project, user = (str(uuid.uuid4()) for _ in range(3))
    chosen = next(iter(numa))
    command(
        *("resource", "provider", "allocation", "set", consumer),
        *("--allocation", f"rp={chosen},VCPU=1,MEMORY_MB=16"),
        *("--allocation", f"rp={root['uuid']},DISK_GB=1"),
        *("--project-id", project, "--user-id", user, "--consumer-type", "INSTANCE"),
    )
    usages = command("resource", "provider", "usage", "show", chosen)
    assert {row["resource_class"]: row["usage"] for row in usages} == {"VCPU": 1, "MEMORY_MB": 16}
    usage = command("resource", "usage", "show", project, "--user-id", user)
    assert {row["resource_class"]: row["usage"] for row in usage} == {
        "INSTANCE": {"VCPU": 1, "MEMORY_MB": 16, "DISK_GB": 1, "consumer_count": 1}
    }

    refused = command.run("resource", "provider", "delete", root["uuid"])
    assert refused.returncode != 0
    assert "HTTP 409" in refused.stderr

    command.do("resource", "provider", "allocation", "delete", consumer)
    for provider in (*numa, root["uuid"]):
        command.do("resource", "provider", "delete", provider)
    assert command("resource", "provider", "list") == []


def test_the_sdk_registers_and_removes_this_machine(service: Service, machine: Machine) -> None:
    """openstacksdk's placement proxy discovers the microversions, and works."""
    connection = openstack.connection.Connection(
        auth_type="admin_token", auth={"endpoint": service.url, "token": "admin"}
    )
    placement = connection.placement
    root = placement.create_resource_provider(name=f"sdk-{machine.name}")
    node = machine.nodes[0]
    inventory = placement.create_resource_provider_inventory(
        root, "VCPU", total=node.cpus, allocation_ratio=2.0
    )
    assert inventory.total == node.cpus
    placement.update_resource_provider_inventory(
        inventory, root, total=node.cpus + 1, resource_provider_generation=1
    )
    listed = {
        row.resource_class: row.total for row in placement.resource_provider_inventories(root)
    }
    assert listed == {"VCPU": node.cpus + 1}
    assert root.id in {row.id for row in placement.resource_providers()}
    trait = placement.create_trait("CUSTOM_SDK")
    assert trait.id == "CUSTOM_SDK"
    kind = placement.create_resource_class(name="CUSTOM_SDK_CLASS")
    assert kind.name in {row.name for row in placement.resource_classes()}
    placement.delete_resource_class(kind)
    placement.delete_trait(trait)
    placement.delete_resource_provider_inventory("VCPU", root)
    placement.delete_resource_provider(root)
    assert placement.find_resource_provider(root.id) is None
