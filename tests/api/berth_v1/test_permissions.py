# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/permissions`: what the caller may do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.api.namespaces import NAMESPACES
from tests.api import configured
from tests.api.worlds import done
from tests.client import Client

pytestmark = pytest.mark.in_process

PATH = "/berth/v1/permissions"

#: Each policy rule of an operation whose target is the caller's own project.
OPERATIONS = [
    (operation.method, namespace.path_of(operation), operation.rule.name)
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.rule is not None and operation.contract.target is None
]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the default policy."""
    return configured.serve(tmp_path_factory.mktemp("permissions"))


def permissions(client: Client) -> dict[str, Any]:
    """What the caller may do."""
    shown: dict[str, Any] = done(client.get(PATH), 200).json["permissions"]
    return shown


def test_an_administrator_may_do_everything(admin: Client) -> None:
    """Every rule of both APIs is there."""
    shown = permissions(admin)
    assert set(shown) >= {rule for _, _, rule in OPERATIONS}
    assert all(permission == {"allowed": True} for permission in shown.values())


def test_what_is_not_allowed_has_a_reason(admin: Client) -> None:
    """The same sentence as in the refusal."""
    auditor = admin.acting_as({"X-Auth-Token": "eve:web", "X-Roles": "auditor"})
    shown = permissions(auditor)
    assert shown["berth:drains:list"] == {"allowed": True}
    refused = auditor.delete("/berth/v1/drains/fans")
    assert refused.status == 403
    permission = shown["berth:drains:update"]
    assert permission["allowed"] is False
    assert permission["reason"] in refused.error["detail"]
    assert "auditor" in permission["reason"]


def test_a_rule_that_allows_one_project_names_it(admin: Client) -> None:
    """So that a program knows which project to ask for: an auditor may list the consumers of all,
    a reader those of its own."""
    for role, expected in (
        ("auditor", {"allowed": True}),
        ("reader", {"allowed": True, "project_id": "web"}),
    ):
        caller = admin.acting_as({"X-Auth-Token": "eve:web", "X-Roles": role})
        assert permissions(caller)["berth:consumers:list"] == expected
        for query, status in (
            ("", 403 if "project_id" in expected else 200),
            ("?project_id=web", 200),
        ):
            assert caller.get(f"/berth/v1/consumers{query}").status == status


@pytest.mark.parametrize("role", ["auditor", "reader", "service", "nothing"])
def test_a_permission_is_what_the_operation_decides(admin: Client, role: str) -> None:
    """Of every operation of both APIs: 403 if, and only if, it is not allowed."""
    caller = admin.acting_as(
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
    assert admin.get(PATH).status == 403


def test_they_are_for_callers_who_are_authenticated(tmp_path: Path) -> None:
    """Without a token there is nothing to say."""
    client = configured.serve(tmp_path)
    assert client.get(PATH, headers={"X-Auth-Token": None}).status == 401
