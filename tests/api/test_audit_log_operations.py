# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of each operation that writes: which consumers, which providers, and the
amounts before and after."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

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


OWNED = f"project_id: {OWNER['project_id']}, user_id: {OWNER['user_id']}, consumer_type: INSTANCE"

#: For each operation a request, at a microversion if not the newest, and what its line says:
#: providers, each with its host; consumers, each with its name and project; the amounts before and
#: after; the totals before and after; and further members. `{name}` stands for a provider's uuid.
CASES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    """
create_provider:
    send: 'POST /resource_providers {name: gpu2, parent_provider_uuid: "{cn1}"}'
    providers: [gpu2 on cn1]
delete_provider: {send: "DELETE /resource_providers/{spare}", providers: [spare on spare]}
update_provider:
    send: 'PUT /resource_providers/{spare} {name: gpu2, parent_provider_uuid: "{cn1}"}'
    providers: [spare on spare, cn1 on cn1]
    more: {after: {name: gpu2, parent_provider_uuid: "{cn1}"}}
create_inventory:
    send: 'POST /resource_providers/{spare}/inventories {resource_class: VCPU, total: 4}'
    providers: [spare on spare]
    inventories: [spare VCPU None 4]
replace_inventories:
    send: 'PUT /resource_providers/{spare}/inventories {SEEN, inventories: {VCPU: {total: 4}}}'
    providers: [spare on spare]
    inventories: [spare VCPU None 4, spare DISK_GB 9 None]
delete_inventories:
    send: DELETE /resource_providers/{spare}/inventories
    providers: [spare on spare]
    inventories: [spare DISK_GB 9 None]
update_inventory:
    send: 'PUT /resource_providers/{spare}/inventories/DISK_GB {SEEN, total: 4}'
    providers: [spare on spare]
    inventories: [spare DISK_GB 9 4]
delete_inventory:
    send: DELETE /resource_providers/{spare}/inventories/DISK_GB
    providers: [spare on spare]
    inventories: [spare DISK_GB 9 None]
replace_aggregates:
    send: 'PUT /resource_providers/{spare}/aggregates {SEEN, aggregates: [AGGREGATE]}'
    providers: [spare on spare]
replace_provider_traits:
    send: 'PUT /resource_providers/{spare}/traits {SEEN, traits: []}'
    providers: [spare on spare]
delete_provider_traits:
    send: DELETE /resource_providers/{spare}/traits
    providers: [spare on spare]
create_resource_class:
    send: 'POST /resource_classes {name: CUSTOM_B}'
    more: {after: {name: CUSTOM_B}}
rename_resource_class:
    send: 'PUT /resource_classes/CUSTOM_A {name: CUSTOM_B}'
    version: "1.6"
    more: {parameters: {name: CUSTOM_A}, after: {name: CUSTOM_B}}
ensure_resource_class:
    {send: PUT /resource_classes/CUSTOM_A, more: {parameters: {name: CUSTOM_A}}}
delete_resource_class:
    {send: DELETE /resource_classes/CUSTOM_A, more: {parameters: {name: CUSTOM_A}}}
ensure_trait: {send: PUT /traits/CUSTOM_A, more: {parameters: {name: CUSTOM_A}}}
delete_trait: {send: DELETE /traits/CUSTOM_A, more: {parameters: {name: CUSTOM_A}}}
manage_allocations:
    send: >-
        POST /allocations {VM: {OWNED, consumer_generation: 1, allocations: {}},
        NEW: {OWNED, consumer_generation: null, allocations: {"{cn2}": {resources: {VCPU: 1}}}}}
    providers: [gpu1 on cn1, cn2 on cn2]
    consumers: [VM None web, NEW None web]
    allocations: [gpu1 VGPU 2 0, cn2 VCPU 0 1]
replace_allocations:
    send: >-
        PUT /allocations/VM
        {OWNED, consumer_generation: 1, allocations: {"{gpu1}": {resources: {VGPU: 1}}}}
    providers: [gpu1 on cn1]
    consumers: [VM None web]
    allocations: [gpu1 VGPU 2 1]
delete_allocations:
    send: DELETE /allocations/VM
    providers: [gpu1 on cn1]
    consumers: [VM None web]
    allocations: [gpu1 VGPU 2 0]
reshape:
    send: >-
        POST /reshaper {inventories: {"{gpu1}": {resource_provider_generation: 2, inventories: {}},
        "{spare}": {SEEN, inventories: {VGPU: {total: 4}}}}, allocations: {VM:
        {OWNED, consumer_generation: 1, allocations: {"{spare}": {resources: {VGPU: 2}}}}}}
    providers: [gpu1 on cn1, spare on spare]
    consumers: [VM None web]
    allocations: [gpu1 VGPU 2 0, spare VGPU 0 2]
    inventories: [gpu1 VGPU 4 None, spare VGPU None 4, spare DISK_GB 9 None]
replace_labels:
    send: "PUT /berth/v1/aggregates/AGGREGATE {labels: {rack: r7}}"
    more: {parameters: {uuid: AGGREGATE}}
release_consumer:
    send: DELETE /berth/v1/consumers/JOB
    providers: [cn2 on cn2]
    consumers: [JOB job-7 web]
    allocations: [cn2 VCPU 2 0]
claim_for_name:
    send: >-
        PUT /berth/v1/consumers/web/job-7 {allocations: {cn2: {resources: {VCPU: 1}}},
        generation: 1, user_id: alice, consumer_type: TASK}
    providers: [cn2 on cn2]
    consumers: [JOB job-7 web]
    allocations: [cn2 VCPU 2 1]
release_named_consumer:
    send: DELETE /berth/v1/consumers/web/job-7
    providers: [cn2 on cn2]
    consumers: [JOB job-7 web]
    allocations: [cn2 VCPU 2 0]
# Nothing has expired; tests/api/test_audit_log_leases.py has more.
sweep_leases: {send: POST /berth/v1/leases}
put_lease:
    send: "PUT /berth/v1/leases/JOB {seconds: 60}"
    consumers: [JOB job-7 web]
    more: {after: {seconds: 60}}
end_lease: {send: DELETE /berth/v1/leases/JOB, consumers: [JOB job-7 web]}
put_flavor:
    send: "PUT /berth/v1/flavors/small {request: {groups: {'': {resources: {VCPU: 1}}}}}"
    more: {parameters: {name: small}}
delete_flavor: {send: DELETE /berth/v1/flavors/small, more: {parameters: {name: small}}}
put_drain:
    send: "PUT /berth/v1/drains/firmware {providers: [spare], effect: none, reason: '4.2'}"
    # That of cn2 ends.
    providers: [spare on spare, cn2 on cn2]
    more:
        parameters: {name: firmware}
        before: {effect: exclude, reason: "", named: ["{cn2}"]}
        after: {effect: none, reason: "4.2", named: ["{spare}"]}
delete_drain:
    send: DELETE /berth/v1/drains/firmware
    providers: [cn2 on cn2]
    more:
        parameters: {name: firmware}
        before: {effect: exclude, reason: "", named: ["{cn2}"]}
        after: null
put_tree:
    send: "PUT /berth/v1/trees/gpu1 {providers: [{name: cn1}, {name: gpu2, parent: cn1}]}"
    providers: [gpu1 on cn1, cn1 on cn1, gpu2 on cn1]
place:
    send: >-
        POST /berth/v1/place {request: {groups: {"": {resources: {VCPU: 1}}}, host: {in: [cn1]}},
        consumers: [{uuid: NEW, OWNED}]}
    providers: [cn1 on cn1]
    consumers: [NEW None web]
    allocations: [cn1 VCPU 0 1]
""".replace("OWNED", OWNED)
    .replace("SEEN", "resource_provider_generation: 1")
    .replace("AGGREGATE", AGGREGATE)
    .replace("VM", VM)
    .replace("NEW", NEW)
    .replace("JOB", JOB)
)


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
    case = fleet.filled(CASES[operation])
    method, path, *body = case["send"].split(" ", 2)
    sent = {"json": yaml.safe_load(body[0])} if body else {}
    answer = fleet.client.request(method, path, version=case.get("version", "1.39"), **sent)
    assert answer.status < 300, answer.body
    line = fleet.line()
    assert (line["operation"], line["outcome"]) == (operation, "done")
    providers = {each["uuid"]: each for each in line.get("providers", ())}
    said = {
        "providers": [f"{each['name']} on {each['host']}" for each in providers.values()],
        "consumers": [
            f"{each['uuid']} {each.get('name')} {each['project_id']}"
            for each in line.get("consumers", ())
        ],
    }
    for name in ("allocations", "inventories"):
        said[name] = [
            f"{providers[each['provider']]['name']} {each['resource_class']} "
            f"{number(each['before'])} {number(each['after'])}"
            for each in line.get(name, ())
        ]
    assert {name: sorted(each) for name, each in said.items()} == {
        name: sorted(case.get(name, ())) for name in said
    }
    for name, value in case.get("more", {}).items():
        assert line[name] == value


def number(value: int | Mapping[str, int] | None) -> int | None:
    """An amount, or the total of an inventory."""
    return value["total"] if isinstance(value, Mapping) else value
