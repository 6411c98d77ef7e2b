# SPDX-License-Identifier: Apache-2.0
"""Authorization: the defaults, scopes, and policy files.

Source: operations.md section 2.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.api import configured
from tests.api.answers import assert_refused
from tests.client import Client, Response
from tests.routes import OPERATIONS, PUBLIC, Route

pytestmark = pytest.mark.in_process

PROVIDER = "/resource_providers/{uuid}"
INVENTORY = PROVIDER + "/inventories/{resource_class}"

#: The rule of every route and method (2.2).
RULES = {
    ("GET", "/resource_providers"): "resource_providers:list",
    ("POST", "/resource_providers"): "resource_providers:create",
    ("GET", PROVIDER): "resource_providers:show",
    ("PUT", PROVIDER): "resource_providers:update",
    ("DELETE", PROVIDER): "resource_providers:delete",
    ("GET", PROVIDER + "/inventories"): "resource_providers:inventories:list",
    ("POST", PROVIDER + "/inventories"): "resource_providers:inventories:create",
    ("PUT", PROVIDER + "/inventories"): "resource_providers:inventories:update",
    ("DELETE", PROVIDER + "/inventories"): "resource_providers:inventories:delete",
    ("GET", INVENTORY): "resource_providers:inventories:show",
    ("PUT", INVENTORY): "resource_providers:inventories:update",
    ("DELETE", INVENTORY): "resource_providers:inventories:delete",
    ("GET", PROVIDER + "/aggregates"): "resource_providers:aggregates:list",
    ("PUT", PROVIDER + "/aggregates"): "resource_providers:aggregates:update",
    ("GET", PROVIDER + "/traits"): "resource_providers:traits:list",
    ("PUT", PROVIDER + "/traits"): "resource_providers:traits:update",
    ("DELETE", PROVIDER + "/traits"): "resource_providers:traits:delete",
    ("GET", PROVIDER + "/usages"): "resource_providers:usages",
    ("GET", PROVIDER + "/allocations"): "resource_providers:allocations:list",
    ("GET", "/resource_classes"): "resource_classes:list",
    ("POST", "/resource_classes"): "resource_classes:create",
    ("GET", "/resource_classes/{name}"): "resource_classes:show",
    ("PUT", "/resource_classes/{name}"): "resource_classes:update",
    ("DELETE", "/resource_classes/{name}"): "resource_classes:delete",
    ("GET", "/traits"): "traits:list",
    ("GET", "/traits/{name}"): "traits:show",
    ("PUT", "/traits/{name}"): "traits:update",
    ("DELETE", "/traits/{name}"): "traits:delete",
    ("POST", "/allocations"): "allocations:manage",
    ("GET", "/allocations/{consumer_uuid}"): "allocations:list",
    ("PUT", "/allocations/{consumer_uuid}"): "allocations:update",
    ("DELETE", "/allocations/{consumer_uuid}"): "allocations:delete",
    ("GET", "/allocation_candidates"): "allocation_candidates:list",
    ("GET", "/usages"): "usages",
    ("POST", "/reshaper"): "reshaper:reshape",
}

GUARDED = [(method, route) for route, method in OPERATIONS if (method, route.template) in RULES]

#: Who calls: the headers, and which of the kinds of rule admit them, with the new defaults.
EVERYTHING_ELSE, USAGES, RESHAPER = "everything else", "usages", "reshaper"
CALLERS: dict[str, tuple[Mapping[str, str], set[str]]] = {
    "admin": ({"X-Auth-Token": "u:p", "X-Roles": "admin"}, {EVERYTHING_ELSE, USAGES}),
    # The user `admin` of noauth2 is admin and service: see test_noauth2.py.
    "admin by token": ({"X-Auth-Token": "admin"}, {EVERYTHING_ELSE, USAGES, RESHAPER}),
    "ADMIN in capitals": ({"X-Auth-Token": "u:p", "X-Roles": "ADMIN"}, {EVERYTHING_ELSE, USAGES}),
    "admin and more": (
        {"X-Auth-Token": "u:p", "X-Roles": "member, reader, admin"},
        {EVERYTHING_ELSE, USAGES},
    ),
    "service": (
        {"X-Auth-Token": "u:p", "X-Roles": "service"},
        {EVERYTHING_ELSE, USAGES, RESHAPER},
    ),
    "reader of the project": ({"X-Auth-Token": "u:p", "X-Roles": "reader"}, {USAGES}),
    "reader of another project": ({"X-Auth-Token": "u:other", "X-Roles": "reader"}, set()),
    "member": ({"X-Auth-Token": "u:p", "X-Roles": "member"}, set()),
    "nobody": ({"X-Auth-Token": "u:p"}, set()),
    "admin of the system": (
        {"X-Auth-Token": "u:p", "X-Roles": "admin,service", "OpenStack-System-Scope": "all"},
        set(),
    ),
    "admin of a domain": (
        {"X-Auth-Token": "u:p", "X-Roles": "admin,service", "X-Domain-Id": "d"},
        set(),
    ),
}

#: What makes a token one of another scope than a project's.
OUTSIDE: dict[str, Mapping[str, str]] = {
    "system": {"OpenStack-System-Scope": "all"},
    "domain": {"X-Domain-Id": "d"},
}


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the policy files with each request, not twice a second."""
    monkeypatch.setattr("berth.api.policy.enforcement.LOOK_INTERVAL_S", -1.0)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the new defaults only."""
    settings = "[oslo_policy]\nenforce_new_defaults = True\n"
    return configured.serve(tmp_path_factory.mktemp("strict"), settings)


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service that also applies the old defaults."""
    settings = "[oslo_policy]\nenforce_new_defaults = False\n"
    return configured.serve(tmp_path_factory.mktemp("lenient"), settings)


@pytest.fixture(scope="module")
def lax(tmp_path_factory: pytest.TempPathFactory) -> Mapping[bool, Client]:
    """Services without scope enforcement, with and without the old defaults."""
    settings = "[oslo_policy]\nenforce_scope = False\nenforce_new_defaults = {}\n"
    return {
        new: configured.serve(tmp_path_factory.mktemp("lax"), settings.format(new))
        for new in (True, False)
    }


def ask(client: Client, method: str, template: str, headers: Mapping[str, str]) -> Response:
    """Send a request on which policy decides first, and that changes nothing if it is allowed."""
    path = Route(template, (method,)).path(uuid="not-there", name="NOT_THERE")
    path += "?project_id=p" if path == "/usages" else ""
    return client.acting_as(headers).request(method, path, json={})


def kind(rule: str) -> str:
    """The kind of a rule's default."""
    return {"usages": USAGES, "reshaper:reshape": RESHAPER}.get(rule, EVERYTHING_ELSE)


def test_every_route_on_the_fleet_has_a_rule() -> None:
    """No route is left out."""
    unguarded = {
        (method, route.template)
        for route, method in OPERATIONS
        if (method, route.template) not in RULES
    }
    assert unguarded == {("GET", path) for path in PUBLIC}
    assert len(GUARDED) == len(RULES)


@pytest.mark.parametrize("caller", CALLERS)
def test_the_new_defaults(strict: Client, caller: str) -> None:
    """Admin and service may do everything, but only service may reshape; a reader sees its own
    usages."""
    headers, admitted = CALLERS[caller]
    for (method, template), rule in RULES.items():
        answer = ask(strict, method, template, headers)
        if kind(rule) in admitted:
            assert answer.status != 403, (method, template)
        else:
            assert_refused(answer, 403, f"placement:{rule}")


@pytest.mark.parametrize("caller", CALLERS)
def test_the_old_defaults_let_admin_reshape_too(lenient: Client, caller: str) -> None:
    """Every rule has `or role:admin` added; nothing else differs."""
    headers, admitted = CALLERS[caller]
    is_admin = caller.lower().startswith("admin") and " of " not in caller
    admitted = {EVERYTHING_ELSE, USAGES, RESHAPER} if is_admin else admitted
    for (method, template), rule in RULES.items():
        answer = ask(lenient, method, template, headers)
        assert (answer.status != 403) is (kind(rule) in admitted), (method, template)


def test_nobody_is_asked_at_the_root(strict: Client) -> None:
    """Neither a token nor a role is needed."""
    assert strict.acting_as({}).get("/").status == 200


def test_the_usages_of_no_project_are_refused_to_a_reader(strict: Client) -> None:
    """The target is the parameter, so 403 comes before the 400 for its absence."""
    reader = strict.acting_as({"X-Auth-Token": "u:p", "X-Roles": "reader"})
    assert_refused(reader.get("/usages"), 403)
    assert_refused(reader.get("/usages?project_id=q"), 403)
    assert_refused(reader.get("/usages?project_id=p&foo=1"), 400)


def test_a_reader_of_the_system_is_refused_by_the_name_of_the_rule(strict: Client) -> None:
    """The scope is checked before the check string (2.3)."""
    headers = {"X-Auth-Token": "admin", "OpenStack-System-Scope": "all"}
    answer = strict.acting_as(headers).get("/traits")
    assert_refused(answer, 403)
    assert re.sub(r"\s+", " ", answer.detail.split("\n")[-1].strip()) == (
        "placement:traits:list It needs a token of a project; yours is of the system or of a "
        "domain."
    )


def as_role(client: Client, roles: str, token: str = "u:p") -> Client:
    """A caller with only these roles."""
    return client.acting_as({"X-Auth-Token": token, "X-Roles": roles})


def write(path: Path, text: str) -> None:
    """Write a file with a new modification time."""
    before = path.stat().st_mtime if path.exists() else 0.0
    path.write_text(text)
    later = max(before, path.stat().st_mtime) + 10
    os.utime(path, (later, later))


def test_each_rule_governs_just_its_routes(tmp_path: Path) -> None:
    """Each rule gets a role of its own; the role opens exactly the routes of its rule."""
    rules = sorted(set(RULES.values()))
    overrides = {f"placement:{rule}": f"role:may {rule}" for rule in rules}
    write(tmp_path / "policy.yaml", json.dumps(overrides).replace("may ", "may_"))
    client = configured.serve(tmp_path)
    for role in rules:
        headers = {"X-Auth-Token": "u:p", "X-Roles": f"may_{role}"}
        opened = {
            (method, template)
            for method, template in RULES
            if ask(client, method, template, headers).status != 403
        }
        assert opened == {key for key, rule in RULES.items() if rule == role}
    assert as_role(client, "admin,service").get("/traits").status == 403


#: What a check string says of user u of project p with the role auditor (2.3).
ADMITTING = [
    *("@", "", "role:auditor", "role:Auditor", "role:auditor or role:other", "not role:other"),
    *("role:auditor and (role:other or not role:third)", "rule:mine", "user_id:u", "project_id:p"),
    *("project_id:%(project_id)s", "user_id:%(user_id)s", "'u':%(user_id)s"),
]
REFUSING = [
    *("!", "role:other", "role:auditor and role:other", "not role:auditor", "rule:admin_api"),
    *("rule:not_there", "user_id:v", "user_id:%(project_id)s", "'v':%(user_id)s"),
]


def test_a_check_string_says_who_is_admitted(tmp_path: Path) -> None:
    """The grammar of 2.3."""
    auditor = as_role(configured.serve(tmp_path), "auditor")
    for check in (*ADMITTING, *REFUSING):
        overrides = {"placement:traits:list": check, "mine": "role:auditor"}
        write(tmp_path / "policy.yaml", json.dumps(overrides))
        assert auditor.get("/traits").status == (200 if check in ADMITTING else 403), check


def test_only_what_is_listed_changes(tmp_path: Path) -> None:
    """Unknown rules are ignored."""
    write(
        tmp_path / "policy.yaml",
        "placement:traits:list: role:auditor\nplacement:nonsense: '!'\nsomething: '!'\n",
    )
    client = configured.serve(tmp_path)
    assert as_role(client, "auditor").get("/traits").status == 200
    assert as_role(client, "admin").get("/traits").status == 403
    assert as_role(client, "auditor").get("/resource_classes").status == 403
    assert as_role(client, "admin").get("/resource_classes").status == 200


def test_a_base_rule_may_be_overridden(tmp_path: Path) -> None:
    """Rules that refer to it follow; none refers to `admin_api`."""
    auditor = as_role(configured.serve(tmp_path), "auditor")
    asked = [("GET", "/traits"), ("GET", "/usages?project_id=p"), ("POST", "/reshaper")]
    for base, opened in (
        ("admin_api", set()),
        ("service_api", {"/reshaper"}),
        ("admin_or_service_api", {"/traits"}),
        ("admin_or_project_reader_or_service_api", {"/usages?project_id=p"}),
        ("project_reader_api", {"/usages?project_id=p"}),
    ):
        write(tmp_path / "policy.yaml", f"{base}: role:auditor\n")
        answers = {path: auditor.request(method, path, json={}) for method, path in asked}
        assert {path for path in answers if answers[path].status != 403} == opened, base


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Without a restart, and also if another one of the same time takes its place."""
    policy_file = tmp_path / "policy.yaml"
    write(policy_file, "placement:traits:list: role:auditor\n")
    client = configured.serve(tmp_path)
    assert as_role(client, "auditor").get("/traits").status == 200
    write(policy_file, "placement:traits:list: role:inspector\n")
    assert as_role(client, "auditor").get("/traits").status == 403
    assert as_role(client, "inspector").get("/traits").status == 200
    status = policy_file.stat()
    other = tmp_path / "other.yaml"
    other.write_text("placement:traits:list: role:auditor\n")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, policy_file)
    assert as_role(client, "auditor").get("/traits").status == 200


@pytest.mark.parametrize("broken", ["'placement:traits:list': 'role:", "- a list\n", "7\n"])
def test_a_file_that_breaks_meanwhile_opens_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    """The previous rules stay, and the log has one line; once it is repaired, it applies again."""
    policy_file = tmp_path / "policy.yaml"
    write(policy_file, "placement:traits:list: role:auditor\n")
    client = configured.serve(tmp_path)
    write(policy_file, broken)
    for _ in range(2):
        assert as_role(client, "auditor").get("/traits").status == 200
        assert as_role(client, "inspector").get("/traits").status == 403
    (record,) = [
        record for record in caplog.records if "Cannot read the policy" in record.getMessage()
    ]
    assert record.exc_info is None and "\n" not in record.getMessage()
    write(policy_file, "placement:traits:list: role:inspector\n")
    assert as_role(client, "inspector").get("/traits").status == 200


def test_a_rule_that_does_not_exist_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When the rules are read, because the operator expects it to have an effect."""
    (tmp_path / "policy.yaml").write_text('"placement:trait:list": "role:nobody"\n')
    configured.serve(tmp_path)
    assert (
        "The policy files set placement:trait:list, which is not a rule; the entry is ignored"
        in caplog.messages
    )


def test_a_file_that_comes_later_is_found(tmp_path: Path) -> None:
    """It need not exist at the start."""
    client = configured.serve(tmp_path)
    assert as_role(client, "auditor").get("/traits").status == 403
    write(tmp_path / "policy.yaml", "placement:traits:list: role:auditor\n")
    assert as_role(client, "auditor").get("/traits").status == 200


@pytest.mark.parametrize("with_file", [True, False])
def test_every_file_of_policy_d_overrides(tmp_path: Path, with_file: bool) -> None:
    """Also if there is no policy file."""
    if with_file:
        write(
            tmp_path / "policy.yaml",
            "placement:traits:list: role:auditor\nplacement:traits:show: role:auditor\n",
        )
    (tmp_path / "policy.d").mkdir()
    write(tmp_path / "policy.d" / "one.yaml", "placement:traits:list: role:inspector\n")
    write(tmp_path / "policy.d" / "two.yaml", "placement:resource_classes:list: role:inspector\n")
    client = configured.serve(tmp_path)
    inspector = as_role(client, "inspector")
    assert inspector.get("/traits").status == 200
    assert inspector.get("/resource_classes").status == 200
    shown = as_role(client, "auditor" if with_file else "admin").get("/traits/HW_CPU_X86_VMX")
    assert shown.status == 204


@pytest.mark.parametrize(
    ("settings", "content", "admitted"),
    [
        ("policy_file = mine.yaml", "placement:traits:list: role:auditor\n", True),
        ("policy_file = mine.json", '{"placement:traits:list": "role:auditor"}', True),
        ("", '{"placement:traits:list": "role:auditor"}', False),
    ],
)
def test_the_policy_file_is_the_one_that_is_named(
    tmp_path: Path, settings: str, content: str, admitted: bool
) -> None:
    """Relative to the configuration's directory; a policy.json that is not configured is
    ignored."""
    name = settings.partition(" = ")[2] or "policy.json"
    write(tmp_path / name, content)
    client = configured.serve(tmp_path, f"[oslo_policy]\n{settings}\n")
    assert (as_role(client, "auditor").get("/traits").status == 200) is admitted


@pytest.mark.parametrize("new_defaults", [True, False])
@pytest.mark.parametrize("scope", ["system", "domain"])
@pytest.mark.parametrize("role", ["admin", "service", "reader", "member"])
def test_without_its_enforcement_scope_is_nothing(
    lax: Mapping[bool, Client], new_defaults: bool, scope: str, role: str
) -> None:
    """Callers with system or domain scope are checked by their roles, on every route."""
    headers = {"X-Auth-Token": "u:p", "X-Roles": role, **OUTSIDE[scope]}
    admitted = CALLERS[role][1] if role in ("admin", "service") else set()
    if role == "reader" and scope == "domain":
        admitted = {USAGES}  # noauth2 gives a project to those of a domain
    if role == "admin" and not new_defaults:
        admitted = {EVERYTHING_ELSE, USAGES, RESHAPER}
    for (method, template), rule in RULES.items():
        answer = ask(lax[new_defaults], method, template, headers)
        assert (answer.status != 403) is (kind(rule) in admitted), (method, template)


@pytest.mark.parametrize("scope", ["system", "domain"])
def test_the_scope_counts_whatever_the_file_says(tmp_path: Path, scope: str) -> None:
    """Only `enforce_scope` opens a rule to other scopes than a project's."""
    write(tmp_path / "policy.yaml", "placement:traits:list: '@'\n")
    client = configured.serve(tmp_path)
    assert as_role(client, "").get("/traits").status == 200
    outsider = client.acting_as({"X-Auth-Token": "admin", **OUTSIDE[scope]})
    assert outsider.get("/traits").status == 403
