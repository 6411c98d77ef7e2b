# SPDX-License-Identifier: Apache-2.0
"""What commands print with `--json` is what the OpenAPI documents describe."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.openapi.conformance import check_body

CONSUMER = "11111111-2222-4333-8444-555555555555"
PROVIDER = "/resource_providers/{uuid}"

#: An operation, and a command that prints its answer.
ANSWERS = [
    ("GET /resource_providers", "provider list"),
    ("GET /resource_providers", "provider list --in-tree cn010 --required HW_NUMA_ROOT"),
    (f"GET {PROVIDER}", "provider show cn010"),
    ("GET /resource_providers", "provider tree cn010"),
    (f"GET {PROVIDER}/inventories", "inventory list cn010_numa0"),
    (f"GET {PROVIDER}/inventories/{{resource_class}}", "inventory show cn010_numa0 VCPU"),
    ("GET /traits", "trait list"),
    (f"GET {PROVIDER}/traits", "trait list --provider cn010_numa0"),
    ("GET /resource_classes", "class list"),
    ("GET /berth/v1/aggregates", "aggregate list"),
    (f"GET {PROVIDER}/aggregates", "aggregate list --provider cn010"),
    (f"GET {PROVIDER}/usages", "usage provider cn010_numa0"),
    ("GET /usages", "usage project shop"),
    (f"GET {PROVIDER}/allocations", "consumer list cn010_numa0"),
    ("GET /allocations/{consumer_uuid}", f"consumer show {CONSUMER}"),
    ("POST /berth/v1/candidates", "candidates VCPU=2 --order pack --limit 3"),
    ("POST /berth/v1/candidates", "candidates 'resources=VCPU:2&limit=3'"),
    ("POST /berth/v1/explain", "why VCPU=100000"),
    ("POST /berth/v1/explain", "why 'resources=VGPU:900&required=HW_CPU_X86_AVX2'"),
    ("PUT /berth/v1/flavors/{name}", "flavor set a VCPU=2 MEMORY_MB=2048"),
    ("GET /berth/v1/flavors/{name}", "flavor show a"),
    ("GET /berth/v1/flavors", "flavor list"),
]


@pytest.mark.parametrize("way", ["service", pytest.param("database", marks=pytest.mark.thorough)])
def test_answers_are_as_described(fleet: Fleet, in_process: InProcess, way: str) -> None:
    """Every member has the documented type, and none is missing."""
    fleet.begin(way, is_demo=True)
    owner = ("--project", "shop", "--user", "alice")
    assert in_process("claim", CONSUMER, "cn010_numa0:VCPU=1", *owner).returncode == 0
    for operation, command in ANSWERS:
        done = in_process(*shlex.split(command), "--json")
        assert done.returncode == 0, command
        method, template = operation.split()
        check_body(method, template, done.stdout.encode())
