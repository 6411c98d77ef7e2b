# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of each operation that writes: which consumers, which providers, and the
amounts before and after."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from berth.api.namespaces import NAMESPACES
from tests.api import configured
from tests.api.test_audit_log import Service, claim
from tests.api.worlds import provider
from tests.worlds import consumer_uuid

pytestmark = pytest.mark.in_process

VM, JOB, NEW = map(consumer_uuid, ("vm", "job", "new"))
AGGREGATE = consumer_uuid("r7")
GROUPS = {"": {"resources": {"VCPU": 1}}}
OWNER = {"project_id": "web", "user_id": "alice"}


class Case(NamedTuple):
    """A request, and what its line says.

    Attributes:
        path: `{name}` stands for the uuid of the provider with a name.
        providers: each with its host.
        consumers: each with its name and project.
        amounts: provider, resource class, before, after.
        inventories: provider, resource class, total before and after.
        more: further members of the line.
    """

    method: str
    path: str
    body: Any = None
    version: str = "1.39"
    providers: frozenset[str] = frozenset()
    consumers: frozenset[tuple[str, str | None, str]] = frozenset()
    amounts: frozenset[tuple[str, str, int, int]] = frozenset()
    inventories: frozenset[tuple[str, str, int | None, int | None]] = frozenset()
    more: Mapping[str, Any] = {}


def path_of(name: str, more: str = "") -> str:
    """The path of a provider of the Placement API."""
    return f"/resource_providers/{{{name}}}{more}"


def claiming(consumer: str, provider: str, amounts: dict[str, int]) -> dict[str, Any]:
    """A body that replaces what a consumer has."""
    return {
        "allocations": {f"{{{provider}}}": {"resources": amounts}} if amounts else {},
        "consumer_generation": None if consumer == NEW else 1,
        "consumer_type": "INSTANCE",
        **OWNER,
    }


SPARE = frozenset({"spare on spare"})
GPU = frozenset({"gpu1 on cn1"})
CN2 = frozenset({"cn2 on cn2"})
A_VM = frozenset({(VM, None, "web")})
A_JOB = frozenset({(JOB, "job-7", "web")})
A_NEW = frozenset({(NEW, None, "web")})
STOCK = {"resource_provider_generation": 1, "total": 4}
NAMED = {"parameters": {"name": "CUSTOM_A"}}

CASES = {
    "create_provider": Case(
        "POST", "/resource_providers", {"name": "gpu2", "parent_provider_uuid": "{cn1}"},
        providers=frozenset({"gpu2 on cn1"}),
    ),
    "delete_provider": Case("DELETE", path_of("spare"), providers=SPARE),
    "update_provider": Case(
        "PUT", path_of("spare"), {"name": "gpu2", "parent_provider_uuid": "{cn1}"},
        providers=SPARE | {"cn1 on cn1"},
        more={"after": {"name": "gpu2", "parent_provider_uuid": "{cn1}"}},
    ),
    "create_inventory": Case(
        "POST", path_of("spare", "/inventories"), {"resource_class": "VCPU", "total": 4},
        providers=SPARE, inventories=frozenset({("spare", "VCPU", None, 4)}),
    ),
    "replace_inventories": Case(
        "PUT", path_of("spare", "/inventories"),
        {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 4}}},
        providers=SPARE,
        inventories=frozenset({("spare", "VCPU", None, 4), ("spare", "DISK_GB", 9, None)}),
    ),
    "delete_inventories": Case(
        "DELETE", path_of("spare", "/inventories"),
        providers=SPARE, inventories=frozenset({("spare", "DISK_GB", 9, None)}),
    ),
    "update_inventory": Case(
        "PUT", path_of("spare", "/inventories/DISK_GB"), STOCK,
        providers=SPARE, inventories=frozenset({("spare", "DISK_GB", 9, 4)}),
    ),
    "delete_inventory": Case(
        "DELETE", path_of("spare", "/inventories/DISK_GB"),
        providers=SPARE, inventories=frozenset({("spare", "DISK_GB", 9, None)}),
    ),
    "replace_aggregates": Case(
        "PUT", path_of("spare", "/aggregates"),
        {"resource_provider_generation": 1, "aggregates": [AGGREGATE]},
        providers=SPARE,
    ),
    "replace_provider_traits": Case(
        "PUT", path_of("spare", "/traits"), {"resource_provider_generation": 1, "traits": []},
        providers=SPARE,
    ),
    "delete_provider_traits": Case("DELETE", path_of("spare", "/traits"), providers=SPARE),
    "create_resource_class": Case(
        "POST", "/resource_classes", {"name": "CUSTOM_B"}, more={"after": {"name": "CUSTOM_B"}}
    ),
    "rename_resource_class": Case(
        "PUT", "/resource_classes/CUSTOM_A", {"name": "CUSTOM_B"}, "1.6",
        more={**NAMED, "after": {"name": "CUSTOM_B"}},
    ),
    "ensure_resource_class": Case("PUT", "/resource_classes/CUSTOM_A", more=NAMED),
    "delete_resource_class": Case("DELETE", "/resource_classes/CUSTOM_A", more=NAMED),
    "ensure_trait": Case("PUT", "/traits/CUSTOM_A", more=NAMED),
    "delete_trait": Case("DELETE", "/traits/CUSTOM_A", more=NAMED),
    "manage_allocations": Case(
        "POST", "/allocations",
        {VM: claiming(VM, "gpu1", {}), NEW: claiming(NEW, "cn2", {"VCPU": 1})},
        providers=GPU | CN2, consumers=A_VM | A_NEW,
        amounts=frozenset({("gpu1", "VGPU", 2, 0), ("cn2", "VCPU", 0, 1)}),
    ),
    "replace_allocations": Case(
        "PUT", f"/allocations/{VM}", claiming(VM, "gpu1", {"VGPU": 1}),
        providers=GPU, consumers=A_VM, amounts=frozenset({("gpu1", "VGPU", 2, 1)}),
    ),
    "delete_allocations": Case(
        "DELETE", f"/allocations/{VM}",
        providers=GPU, consumers=A_VM, amounts=frozenset({("gpu1", "VGPU", 2, 0)}),
    ),
    "reshape": Case(
        "POST", "/reshaper",
        {
            "inventories": {
                "{gpu1}": {"resource_provider_generation": 2, "inventories": {}},
                "{spare}": {
                    "resource_provider_generation": 1, "inventories": {"VGPU": {"total": 4}},
                },
            },
            "allocations": {VM: claiming(VM, "spare", {"VGPU": 2})},
        },
        providers=GPU | SPARE, consumers=A_VM,
        amounts=frozenset({("gpu1", "VGPU", 2, 0), ("spare", "VGPU", 0, 2)}),
        inventories=frozenset(
            {("gpu1", "VGPU", 4, None), ("spare", "VGPU", None, 4), ("spare", "DISK_GB", 9, None)}
        ),
    ),
    "replace_labels": Case(
        "PUT", f"/berth/v1/aggregates/{AGGREGATE}", {"labels": {"rack": "r7"}},
        more={"parameters": {"uuid": AGGREGATE}},
    ),
    "release_consumer": Case(
        "DELETE", f"/berth/v1/consumers/{JOB}",
        providers=CN2, consumers=A_JOB, amounts=frozenset({("cn2", "VCPU", 2, 0)}),
    ),
    "claim_for_name": Case(
        "PUT", "/berth/v1/consumers/web/job-7",
        {
            "allocations": {"cn2": {"resources": {"VCPU": 1}}}, "generation": 1,
            "user_id": "alice", "consumer_type": "JOB",
        },
        providers=CN2, consumers=A_JOB, amounts=frozenset({("cn2", "VCPU", 2, 1)}),
    ),
    "release_named_consumer": Case(
        "DELETE", "/berth/v1/consumers/web/job-7",
        providers=CN2, consumers=A_JOB, amounts=frozenset({("cn2", "VCPU", 2, 0)}),
    ),
    # Nothing has expired; tests/api/test_audit_log_leases.py has more.
    "sweep_leases": Case("POST", "/berth/v1/leases"),
    "put_lease": Case(
        "PUT", f"/berth/v1/leases/{JOB}", {"seconds": 60},
        consumers=A_JOB, more={"after": {"seconds": 60}},
    ),
    "end_lease": Case("DELETE", f"/berth/v1/leases/{JOB}", consumers=A_JOB),
    "put_flavor": Case(
        "PUT", "/berth/v1/flavors/small", {"request": {"groups": GROUPS}},
        more={"parameters": {"name": "small"}},
    ),
    "delete_flavor": Case(
        "DELETE", "/berth/v1/flavors/small", more={"parameters": {"name": "small"}}
    ),
    "put_drain": Case(
        "PUT", "/berth/v1/drains/firmware",
        {"providers": ["spare"], "effect": "none", "reason": "4.2"},
        # That of cn2 ends.
        providers=SPARE | CN2,
        more={
            "parameters": {"name": "firmware"},
            "before": {"effect": "exclude", "reason": "", "named": ["{cn2}"]},
            "after": {"effect": "none", "reason": "4.2", "named": ["{spare}"]},
        },
    ),
    "delete_drain": Case(
        "DELETE", "/berth/v1/drains/firmware",
        providers=CN2,
        more={
            "parameters": {"name": "firmware"},
            "before": {"effect": "exclude", "reason": "", "named": ["{cn2}"]},
            "after": None,
        },
    ),
    "put_tree": Case(
        "PUT", "/berth/v1/trees/gpu1",
        {"providers": [{"name": "cn1"}, {"name": "gpu2", "parent": "cn1"}]},
        providers=GPU | {"cn1 on cn1", "gpu2 on cn1"},
    ),
    "place": Case(
        "POST", "/berth/v1/place",
        {
            "request": {"groups": GROUPS, "host": {"in": ["cn1"]}},
            "consumers": [{"uuid": NEW, "consumer_type": "INSTANCE", **OWNER}],
        },
        providers=frozenset({"cn1 on cn1"}), consumers=A_NEW,
        amounts=frozenset({("cn1", "VCPU", 0, 1)}),
    ),
}  # fmt: skip


class Fleet(Service):
    """A service with some of everything, whose line is to be read; and its providers by name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, configured.serve(folder, "[berth]\naudit_log = audit.jsonl\n"))
        providers = self.client.get("/resource_providers").json["resource_providers"]
        self.uuids = {each["name"]: each["uuid"] for each in providers}

    def build(self) -> None:
        """Make everything."""
        api = self.client
        cn1 = provider(api, {"VCPU": 8}, name="cn1")
        gpu1 = provider(api, {"VGPU": 4}, name="gpu1", parent=cn1)
        provider(api, {"VCPU": 8}, name="cn2")
        provider(api, {"DISK_GB": 9}, name="spare")
        assert claim(api, VM, {gpu1: {"VGPU": 2}}).status == 204
        job = {"uuid": JOB, "user_id": "alice", "consumer_type": "JOB", "lease_seconds": 600}
        allocations = {"cn2": {"resources": {"VCPU": 2}}}
        for path, body in {
            "/resource_classes/CUSTOM_A": None,
            "/traits/CUSTOM_A": None,
            "/berth/v1/consumers/web/job-7": {**job, "allocations": allocations},
            "/berth/v1/flavors/small": {"request": {"groups": GROUPS}},
            "/berth/v1/drains/firmware": {"providers": ["cn2"]},
        }.items():
            assert api.put(path, json=body).status < 300, path

    def filled(self, value: Any) -> Any:
        """A path or a body with the uuids of the providers that it names in braces."""
        text = json.dumps(value)
        for name, uuid in self.uuids.items():
            text = text.replace(f"{{{name}}}", uuid)
        return json.loads(text)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that has everything."""
    folder = tmp_path_factory.mktemp("built")
    Fleet(folder).build()
    return folder


@pytest.fixture
def fleet(built: Path, tmp_path: Path) -> Fleet:
    """A service of its own with everything."""
    with closing(sqlite3.connect(built / "placement.db")) as database:
        database.execute(f"VACUUM INTO '{tmp_path}/placement.db'")
    return Fleet(tmp_path)


def test_every_operation_that_writes_has_a_case() -> None:
    """A new operation needs one: what does its line name?"""
    assert CASES.keys() == {
        operation.name
        for namespace in NAMESPACES
        for operation in namespace.operations
        if not operation.is_read
    }


@pytest.mark.parametrize("operation", CASES)
def test_a_line_names_what_is_written(fleet: Fleet, operation: str) -> None:
    """So that `berth audit-log show` finds it by host, consumer and project."""
    case = CASES[operation]
    body = {} if case.body is None else {"json": fleet.filled(case.body)}
    response = fleet.client.request(
        case.method, fleet.filled(case.path), version=case.version, **body
    )
    assert response.status < 300, response.body
    line = fleet.line()
    assert (line["operation"], line["outcome"]) == (operation, "done")
    providers = {each["uuid"]: each for each in line.get("providers", ())}
    names = {uuid: each["name"] for uuid, each in providers.items()}
    assert {f"{each['name']} on {each['host']}" for each in providers.values()} == case.providers
    assert case.consumers == {
        (each["uuid"], each.get("name"), each["project_id"]) for each in line.get("consumers", ())
    }
    assert case.amounts == {
        (names[each["provider"]], each["resource_class"], each["before"], each["after"])
        for each in line.get("allocations", ())
    }
    assert case.inventories == {
        (names[each["provider"]], each["resource_class"], total(each["before"]),
         total(each["after"]))
        for each in line.get("inventories", ())
    }  # fmt: skip
    for name, value in case.more.items():
        assert line[name] == fleet.filled(value)


def total(inventory: Mapping[str, int] | None) -> int | None:
    """That of an inventory; None for none."""
    return None if inventory is None else inventory["total"]
