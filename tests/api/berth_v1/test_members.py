# SPDX-License-Identifier: Apache-2.0
"""What the caller may do: `GET /berth/v1/permissions`, and people of a project, for whom the
members' policy file admits what it says and nothing else. Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from berth.api.namespaces import NAMESPACES
from berth.cli.policy_rules import members_file
from tests.api import configured
from tests.api.claims import consumer, held
from tests.api.worlds import done, new_uuid, provider
from tests.client import Client
from tests.routes import BERTH_ROUTES, PUBLIC, ROUTES

pytestmark = pytest.mark.in_process

V1 = "/berth/v1"
REQUEST = {"groups": {"": {"resources": {"VCPU": 1}}}}


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the members' file in policy.d."""
    folder: Path = tmp_path_factory.mktemp("members")
    (folder / "policy.d").mkdir()
    (folder / "policy.d" / "members.yaml").write_text(members_file())
    policies = f"[oslo_policy]\npolicy_dirs = {folder / 'policy.d'}\n"
    return configured.serve(folder, policies)


@pytest.fixture
def member(admin: Client) -> Client:
    """Alice of the project web."""
    return admin.acting_as({"X-Auth-Token": "alice:web", "X-Roles": "member"})


@pytest.fixture
def host(admin: Client) -> str:
    """A host of its own for each test."""
    return provider(admin, {"VCPU": 8})


def wanted(project: str, uuid: str | None = None, **consumer_members: Any) -> dict[str, Any]:
    """A consumer of a call of `place`."""
    owner = {"project_id": project, "user_id": "alice", "consumer_type": "JOB"}
    return {"uuid": uuid or new_uuid(), **owner, **consumer_members}


def body(host: str, *consumers: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The body of a call of `place` for one host."""
    request = {**REQUEST, "host": {"in": [host]}}
    return {"request": request, "consumers": list(consumers), **members}


def test_members_do_not_see_who_else_holds_a_host(member: Client, admin: Client, host: str) -> None:
    """Nor in an explanation, which tells an administrator who holds the host that it names."""
    theirs = consumer(admin, {host: {"VCPU": 8}}, project="attic", user="mallory")
    asked = {"request": {**REQUEST, "host": {"in": [host]}}}
    assert theirs in done(admin.post(f"{V1}/explain", json=asked), 200).text
    explained = done(member.post(f"{V1}/explain", json=asked), 200).text
    assert host in explained
    assert not {theirs, "attic", "mallory"} & {*re.findall(r"[\w-]+", explained)}


def test_members_place_for_no_one_else(member: Client, admin: Client, host: str) -> None:
    """Neither a new consumer of another project, nor one that they would take over."""
    foreign = consumer(admin, {host: {"VCPU": 2}}, project="db")
    taken = wanted("web", foreign, consumer_generation=1)
    refused: tuple[Any, ...] = (
        body(host, wanted("db")),
        body(host, wanted("web"), wanted("db")),
        body(host, taken, replace=True),
        body(host, wanted("web", consumer_generation=1), taken, replace=True),
        {"consumers": []},
        {"consumers": "all"},
        [],
    )
    for each in refused:
        assert member.post(f"{V1}/place", json=each).status == 403, each
        assert member.post(f"{V1}/place?dry_run=true", json=each).status == 403, each
    assert held(admin, foreign) == {host: {"VCPU": 2}}
    for path in (
        f"placements/{foreign}",
        f"consumers/{foreign}",
        "consumers/db/job",
        "placements/db/job",
    ):
        assert member.get(f"{V1}/{path}").status == 403
    for path in (f"consumers/{foreign}", "consumers/db/job"):
        assert member.delete(f"{V1}/{path}").status == 403
    for query in ("", "?project_id=db", f"?host={host}"):
        assert member.get(f"{V1}/consumers{query}").status == 403
    assert held(admin, foreign) == {host: {"VCPU": 2}}


#: All that a member of a project may send, about the project.
MAY = {
    f"POST {V1}/candidates",
    f"POST {V1}/explain",
    f"POST {V1}/capacity",
    f"POST {V1}/place",
    f"GET {V1}/placements/{{consumer}}",
    f"GET {V1}/placements/{{project_id}}/{{name}}",
    f"GET {V1}/consumers",
    f"GET {V1}/consumers/{{uuid}}",
    f"DELETE {V1}/consumers/{{uuid}}",
    f"GET {V1}/consumers/{{project_id}}/{{name}}",
    f"DELETE {V1}/consumers/{{project_id}}/{{name}}",
    f"GET {V1}/permissions",
    f"GET {V1}/leases",
    f"GET {V1}/leases/{{consumer}}",
    f"PUT {V1}/leases/{{consumer}}",
    f"DELETE {V1}/leases/{{consumer}}",
}


def test_members_may_do_nothing_else(member: Client, admin: Client, host: str) -> None:
    """Every operation of either API, with the parameters of their own project."""
    own = consumer(admin, {host: {"VCPU": 1}}, project="web")
    own_call = {f"POST {V1}/place": body(host, wanted("web")) | {"limit": 0}}
    may = set()
    public = {V1, f"{V1}/openapi.json", *PUBLIC}
    for route in (*ROUTES, *BERTH_ROUTES):
        for method in route.methods:
            name = f"{method} {route.template}"
            path = route.path(uuid=own, consumer=own, consumer_uuid=own, project_id="web")
            query = "?project_id=web" if method == "GET" else ""
            sent = own_call.get(name, {})
            options: dict[str, Any] = {"json": sent} if method in ("PUT", "POST") else {}
            if method == "DELETE" and name in MAY:
                query = "?generation=99"
            status = member.request(method, f"{path}{query}", **options).status
            if status != 403 and route.template not in public:
                may.add(name)
    assert may == MAY


PERMISSIONS = f"{V1}/permissions"

#: Each policy rule of an operation whose target is the caller's own project.
OPERATIONS = [
    (operation.method, namespace.path_of(operation), operation.rule.name)
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.rule is not None and operation.target is None
]


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the default policy."""
    return configured.serve(tmp_path_factory.mktemp("permissions"))


def permissions(client: Client) -> dict[str, Any]:
    """What the caller may do."""
    shown: dict[str, Any] = done(client.get(PERMISSIONS), 200).json["permissions"]
    return shown


def test_a_rule_that_allows_one_project_names_it(default: Client) -> None:
    """So that a program knows which project to ask for: an auditor may list the consumers of all,
    a reader those of its own."""
    for role, expected in (
        ("auditor", {"allowed": True}),
        ("reader", {"allowed": True, "project_id": "web"}),
    ):
        caller = default.acting_as({"X-Auth-Token": "eve:web", "X-Roles": role})
        assert permissions(caller)["berth:consumers:list"] == expected
        for query, status in (
            ("", 403 if "project_id" in expected else 200),
            ("?project_id=web", 200),
        ):
            assert caller.get(f"/berth/v1/consumers{query}").status == status


@pytest.mark.parametrize("role", ["auditor", "reader", "service", "nothing"])
def test_a_permission_is_what_the_operation_decides(default: Client, role: str) -> None:
    """Of every operation of both APIs: 403 if, and only if, it is not allowed."""
    caller = default.acting_as(
        {"X-Auth-Token": "eve:web", "X-Roles": role, "OpenStack-API-Version": "placement 1.39"}
    )
    shown = permissions(caller)
    for method, path, rule in OPERATIONS:
        sent: dict[str, Any] = {"json": {}} if method in ("PUT", "POST") else {}
        is_refused = caller.request(method, path, **sent).status == 403
        assert is_refused is not shown[rule]["allowed"], (method, path, rule)


def test_a_policy_file_changes_them(tmp_path: Path) -> None:
    """They are those of the rules in force."""
    (tmp_path / "policy.d").mkdir()
    rules = '"berth:fleet": "role:member"\n"berth:permissions:show": "role:member"\n'
    (tmp_path / "policy.d" / "own.yaml").write_text(rules)
    policies = f"[oslo_policy]\npolicy_dirs = {tmp_path / 'policy.d'}\n"
    admin = configured.serve(tmp_path, policies)
    member = admin.acting_as({"X-Auth-Token": "alice:web", "X-Roles": "member"})
    assert permissions(member)["berth:fleet"]["allowed"] is True
    assert admin.get(PERMISSIONS).status == 403
