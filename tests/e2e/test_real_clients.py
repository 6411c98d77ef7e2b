# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients against `berth serve`: this machine is registered, used, reshaped, removed."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack
import pytest

from tests.client import Client
from tests.e2e.machine import Machine, read_machine
from tests.e2e.serving import PATIENCE, Service, environment, serving

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
    """One service for the module, with two workers."""
    with serving(tmp_path_factory.mktemp("home"), "--workers", "2") as service:
        yield service


@pytest.fixture(scope="module")
def machine() -> Machine:
    """This machine."""
    return read_machine()


@dataclass
class OpenStack:
    """The `openstack` command of this interpreter, speaking to one service."""

    service: Service

    def __call__(self, *arguments: str) -> Any:
        """Run a command that lists or shows something; its JSON."""
        return json.loads(self.do(*arguments, "-f", "json"))

    def do(self, *arguments: str) -> str:
        """Run a command; what it prints."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"openstack {' '.join(arguments)}\n{done.stderr}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, however it ends."""
        return subprocess.run(
            [
                str(Path(sys.executable).with_name("openstack")),
                "--os-auth-type",
                "admin_token",
                "--os-token",
                "admin",
                "--os-endpoint",
                self.service.url,
                "--os-placement-api-version",
                "1.39",
                *arguments,
            ],
            env=environment(self.service.home),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture(scope="module")
def openstack_command(service: Service) -> OpenStack:
    """The `openstack` command, for the module's service."""
    return OpenStack(service)


def test_the_openstack_command_registers_uses_and_removes_this_machine(
    openstack_command: OpenStack, service: Service, machine: Machine
) -> None:
    """The whole life of a provider tree with osc-placement, which knows nothing of berth."""
    command = openstack_command
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
    held = command("resource", "usage", "show", project, "--user-id", user)
    assert {row["resource_class"]: row["usage"] for row in held} == {
        "INSTANCE": {"VCPU": 1, "MEMORY_MB": 16, "DISK_GB": 1, "consumer_count": 1}
    }

    refused = command.run("resource", "provider", "delete", root["uuid"])
    assert refused.returncode != 0
    assert "HTTP 409" in refused.stderr

    disk = command(
        *("resource", "provider", "create", f"{machine.name}-disk"),
        *("--parent-provider", root["uuid"]),
    )
    reshape_disk_away(Client.at(service.url), root["uuid"], disk["uuid"], consumer)
    moved = command("resource", "provider", "usage", "show", disk["uuid"])
    assert moved == [{"resource_class": "DISK_GB", "usage": 1}]
    assert command("resource", "provider", "inventory", "list", root["uuid"]) == []

    command.do("resource", "provider", "allocation", "delete", consumer)
    for provider in (disk["uuid"], *numa, root["uuid"]):
        command.do("resource", "provider", "delete", provider)
    assert command("resource", "provider", "list") == []


def reshape_disk_away(client: Client, root: str, disk: str, consumer: str) -> None:
    """Move the DISK_GB of the root, inventory and allocations, to another provider at once."""
    before = client.get(f"/resource_providers/{root}/inventories").json
    held = client.get(f"/allocations/{consumer}").json
    allocations = {
        provider: {"resources": dict(held["allocations"][provider]["resources"])}
        for provider in held["allocations"]
        if provider != root
    }
    allocations[disk] = {"resources": held["allocations"][root]["resources"]}
    answer = client.post(
        "/reshaper",
        json={
            "inventories": {
                root: {
                    "resource_provider_generation": before["resource_provider_generation"],
                    "inventories": {},
                },
                disk: {
                    "resource_provider_generation": 0,
                    "inventories": before["inventories"],
                },
            },
            "allocations": {
                consumer: {
                    "allocations": allocations,
                    "project_id": held["project_id"],
                    "user_id": held["user_id"],
                    "consumer_generation": held["consumer_generation"],
                    "consumer_type": held["consumer_type"],
                }
            },
        },
    )
    assert answer.status == 204, answer.text


def test_the_sdk_registers_and_removes_this_machine(service: Service, machine: Machine) -> None:
    """openstacksdk's placement proxy finds its microversions by discovery, and works."""
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
