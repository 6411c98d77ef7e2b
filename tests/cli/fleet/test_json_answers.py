# SPDX-License-Identifier: Apache-2.0
"""What commands print with `--json` is what the OpenAPI documents describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fleet.ways import BothWays
from tests.openapi.conformance import check_body

CONSUMER = "11111111-2222-4333-8444-555555555555"
PROVIDER = "/resource_providers/{uuid}"


#: A command, and the operation whose answer it prints.
READS = [
    ("provider list", "GET /resource_providers"),
    ("provider list --in-tree cn010 --required HW_NUMA_ROOT", "GET /resource_providers"),
    ("provider show cn010", f"GET {PROVIDER}"),
    ("provider tree cn010", "GET /resource_providers"),
    ("inventory list cn010_numa0", f"GET {PROVIDER}/inventories"),
    ("inventory show cn010_numa0 VCPU", f"GET {PROVIDER}/inventories/{{resource_class}}"),
    ("trait list", "GET /traits"),
    ("trait list --provider cn010_numa0", f"GET {PROVIDER}/traits"),
    ("class list", "GET /resource_classes"),
    ("aggregate list", "GET /berth/v1/aggregates"),
    ("aggregate list --provider cn010", f"GET {PROVIDER}/aggregates"),
    ("usage provider cn010_numa0", f"GET {PROVIDER}/usages"),
    ("usage project shop", "GET /usages"),
    ("consumer list cn010_numa0", f"GET {PROVIDER}/allocations"),
    (f"consumer show {CONSUMER}", "GET /allocations/{consumer_uuid}"),
    ("candidates VCPU=2 --limit 3", "POST /berth/v1/candidates"),
    ("candidates VCPU=2 --order pack --limit 3", "POST /berth/v1/candidates"),
    ("candidates resources=VCPU:2&limit=3", "POST /berth/v1/candidates"),
    ("why VCPU=100000", "POST /berth/v1/explain"),
    ("why resources=VGPU:900&required=HW_CPU_X86_AVX2", "POST /berth/v1/explain"),
]


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


@pytest.mark.parametrize(("command", "operation"), READS, ids=[command for command, _ in READS])
def test_an_answer_is_as_described(berth: BothWays, command: str, operation: str) -> None:
    """Every member has the documented type, and none is missing."""
    claimed = ("claim", CONSUMER, "cn010_numa0:VCPU=1", "--project", "shop", "--user", "alice")
    assert berth(*claimed, "--replace").code == 0
    method, template = operation.split()
    for run in (berth.over_http, berth.on_database):
        check_body(method, template, run(*command.split(), "--json").stdout.encode())
