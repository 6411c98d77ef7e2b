# SPDX-License-Identifier: Apache-2.0
"""Authorization: the defaults, scopes, and policy files.

Source: operations.md section 2. Which rule guards which route is in tests/golden/policy.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api.errors import Refused
from berth.api.namespaces import PLACEMENT
from berth.api.policy import Policy, create_enforcer
from berth.config.options import register_opts
from tests.api import configured
from tests.api.answers import assert_refused
from tests.client import Client, Response
from tests.routes import Route

pytestmark = pytest.mark.in_process

#: The rule of every route and method (2.2).
RULES = {
    (each.method, each.path): each.rule.name.removeprefix("placement:")
    for each in PLACEMENT.operations
    if each.rule is not None
}

#: The callers: roles, other headers, and which of the kinds of rule admit them, with the new
#: defaults.
EVERYTHING_ELSE, USAGES, RESHAPER = "everything else", "usages", "reshaper"
CALLERS: dict[str, tuple[str | None, Mapping[str, str], set[str]]] = {
    "admin": ("admin", {}, {EVERYTHING_ELSE, USAGES}),
    # The user `admin` of noauth2 is admin and service: see test_noauth2.py.
    "admin by token": (None, {"X-Auth-Token": "admin"}, {EVERYTHING_ELSE, USAGES, RESHAPER}),
    "admin and more": ("member, reader, ADMIN", {}, {EVERYTHING_ELSE, USAGES}),
    "service": ("service", {}, {EVERYTHING_ELSE, USAGES, RESHAPER}),
    "reader": ("reader", {}, {USAGES}),
    "reader of another project": ("reader", {"X-Auth-Token": "u:other"}, set()),
    "member": ("member", {}, set()),
    "nobody": (None, {}, set()),
    "admin of the system": ("admin,service", {"OpenStack-System-Scope": "all"}, set()),
    "admin of a domain": ("admin,service", {"X-Domain-Id": "d"}, set()),
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


def ask(client: Client, method: str, template: str, headers: Mapping[str, str]) -> Response:
    """Send a request on which policy decides first, and that changes nothing if it is allowed."""
    path = Route(template, (method,)).path(uuid="not-there", name="NOT_THERE")
    path += "?project_id=p" if path == "/usages" else ""
    return client.acting_as(headers).request(method, path, json={})


def is_admitted(client: Client, caller: str, also: Mapping[str, str] | None = None) -> set[str]:
    """The kinds of rule that admit a caller: each on all its routes, or on none."""
    roles, headers, _ = CALLERS[caller]
    sent = {"X-Auth-Token": "u:p", **headers, **(also or {})}
    sent |= {} if roles is None else {"X-Roles": roles}
    admitted: dict[str, set[bool]] = {}
    for (method, template), rule in RULES.items():
        kind = {"usages": USAGES, "reshaper:reshape": RESHAPER}.get(rule, EVERYTHING_ELSE)
        answer = ask(client, method, template, sent)
        admitted.setdefault(kind, set()).add(answer.status != 403)
        if answer.status == 403:
            assert_refused(answer, 403, f"placement:{rule}")
    assert all(len(each) == 1 for each in admitted.values()), admitted
    return {kind for kind, each in admitted.items() if True in each}


@pytest.mark.parametrize("caller", CALLERS)
def test_the_new_defaults(strict: Client, caller: str) -> None:
    """Admin and service may do everything, but only service may reshape; a reader sees its own
    usages."""
    assert is_admitted(strict, caller) == CALLERS[caller][2]


def test_the_old_defaults_let_admin_reshape_too(tmp_path: Path) -> None:
    """Every rule has `or role:admin` added; nothing else differs."""
    lenient = configured.serve(tmp_path, "[oslo_policy]\nenforce_new_defaults = False\n")
    for caller in CALLERS:
        is_admin = caller.startswith("admin") and " of " not in caller
        more = {EVERYTHING_ELSE, USAGES, RESHAPER} if is_admin else set()
        assert is_admitted(lenient, caller) == CALLERS[caller][2] | more, caller


@pytest.mark.parametrize("new_defaults", [True, False])
def test_without_its_enforcement_scope_is_nothing(tmp_path: Path, new_defaults: bool) -> None:
    """Callers with system or domain scope are checked by their roles, on every route."""
    settings = f"[oslo_policy]\nenforce_scope = False\nenforce_new_defaults = {new_defaults}\n"
    lax = configured.serve(tmp_path, settings)
    for scope in OUTSIDE:
        for caller in ("admin", "service", "reader", "member"):
            due = CALLERS[caller][2]
            if caller == "reader" and scope == "system":
                due = set()  # noauth2 gives a project to those of a domain only
            if caller == "admin" and not new_defaults:
                due = {EVERYTHING_ELSE, USAGES, RESHAPER}
            assert is_admitted(lax, caller, OUTSIDE[scope]) == due, (scope, caller)


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
    """When the rules are read; and the file need not exist at the start."""
    client = configured.serve(tmp_path)
    assert as_role(client, "auditor").get("/traits").status == 403
    rules = "placement:traits:list: role:auditor\nplacement:trait:list: role:nobody\n"
    write(tmp_path / "policy.yaml", rules)
    assert as_role(client, "auditor").get("/traits").status == 200
    said = "The policy files set placement:trait:list, which is not a rule; the entry is ignored"
    assert said in caplog.messages


@pytest.mark.parametrize("with_file", [True, False])
def test_every_file_of_policy_d_overrides(tmp_path: Path, with_file: bool) -> None:
    """Also if there is no policy file; what is not listed does not change."""
    if with_file:
        rules = ("placement:traits:list", "placement:traits:show")
        write(tmp_path / "policy.yaml", "".join(f"{rule}: role:auditor\n" for rule in rules))
    (tmp_path / "policy.d").mkdir()
    write(tmp_path / "policy.d" / "one.yaml", "placement:traits:list: role:inspector\n")
    write(tmp_path / "policy.d" / "two.yaml", "placement:resource_classes:list: role:inspector\n")
    client = configured.serve(tmp_path)
    for path in ("/traits", "/resource_classes"):
        assert as_role(client, "inspector").get(path).status == 200
        assert as_role(client, "admin").get(path).status == 403
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


def test_the_scope_counts_whatever_the_file_says(tmp_path: Path) -> None:
    """Only `enforce_scope` opens a rule to other scopes than a project's."""
    write(tmp_path / "policy.yaml", "placement:traits:list: '@'\n")
    client = configured.serve(tmp_path)
    assert as_role(client, "").get("/traits").status == 200
    for scope in OUTSIDE.values():
        assert client.acting_as({"X-Auth-Token": "admin", **scope}).get("/traits").status == 403


# --- Rules by themselves --------------------------------------------------------------------------

LIST = "placement:traits:list"

Build = Callable[[str], Policy]


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """The path of the test's policy file, which may not exist yet."""
    return tmp_path / "policy.yaml"


@pytest.fixture
def build(policy_file: Path) -> Build:
    """Builds a policy from a file with this text."""

    def build_with(text: str) -> Policy:
        policy_file.write_text(text)
        return Policy(configuration(policy_file))

    return build_with


def configuration(policy_file: Path) -> cfg.ConfigOpts:
    """A configuration with this policy file."""
    conf = cfg.ConfigOpts()
    register_opts(conf)
    conf([], project="placement", default_config_files=[])
    conf.set_override("policy_file", str(policy_file), group="oslo_policy")
    return conf


def caller(*roles: str) -> RequestContext:
    """A caller with these roles."""
    return RequestContext(user_id="u", project_id="p", roles=list(roles))


def lets_in(rules: Policy, context: RequestContext) -> bool:
    """Whether the policy lets a caller list traits."""
    try:
        rules.check(LIST, context, None)
    except Refused as refused:
        assert refused.status == 403
        assert LIST in refused.message
        return False
    return True


@pytest.mark.parametrize(
    ("check", "roles", "allowed"),
    [
        ("@", [], True),
        ("!", ["admin"], False),
        ("", [], True),
        ("role:Auditor", ["aUDITOR"], True),
        ("role:a and role:b", ["a"], False),
        ("role:a and role:b", ["a", "b"], True),
        ("role:a or not role:b", [], True),
        ("role:a or not role:b", ["b"], False),
        ("rule:service_api", ["service"], True),
        ("rule:no_such_rule", ["admin"], False),
        ("user_id:u", [], True),
        ("user_id:%(user_id)s and project_id:p", [], True),
        ("project_id:q", [], False),
        ("role:%(project_id)s", ["p"], True),
        ("rule:placement:traits:list", ["admin"], False),
        ("not rule:placement:traits:list", ["admin"], False),
        ("role:a or rule:placement:traits:list", ["a"], True),
        ("role:a and not rule:placement:traits:list", ["a"], False),
    ],
)
def test_a_check_string_means_what_oslo_policy_makes_of_it(
    build: Build, policy_file: Path, check: str, roles: list[str], allowed: bool
) -> None:
    """berth's evaluation of a rule in a file is compared with that of oslo.policy."""
    rules = build(f'"{LIST}": "{check}"')
    context = caller(*roles)
    assert lets_in(rules, context) is allowed
    if "placement:traits:list" not in check:  # the library recurses for ever
        target = {"project_id": "p", "user_id": "u"}
        enforcer = create_enforcer(configuration(policy_file))
        assert bool(enforcer.enforce(LIST, target, context)) is allowed


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ('"{0}": "rule:nowhere"', set()),
        ('"{0}": "rule:nowhere"\n"default": "role:a"', {"a"}),
        ('"{0}": "rule:x"\n"default": "rule:y"', set()),
    ],
)
def test_a_reference_to_no_rule_is_one_to_the_default_rule(
    build: Build, text: str, roles: set[str]
) -> None:
    """`[oslo_policy]policy_default_rule`, by default `default`; if there is none, the check
    fails."""
    rules = build(text.format(LIST))
    assert {role for role in ("a", "admin") if lets_in(rules, caller(role))} == roles


def test_a_folder_that_goes_while_it_is_looked_into_is_no_fault(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules stay, also if the directory cannot be read, and the request is checked against
    them."""
    conf = configuration(policy_file)
    conf.set_override("policy_dirs", [str(policy_file.parent)], group="oslo_policy")
    rules = Policy(conf)

    def closed(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert lets_in(rules, caller("admin"))


@pytest.mark.parametrize(
    ("rule", "check", "roles", "hint"),
    [
        (LIST, "role:admin", (), "It needs the role admin; you have no role."),
        (LIST, "role:admin or role:ops", ("member",), "It needs the role admin or the role ops; "
         "you have the role member."),
        (LIST, "rule:admin_or_service_api", ("member", "reader"), "It needs the role admin or the "
         "role service; you have the roles member, reader."),
        (LIST, "role:ops and user_id:%(user_id)s", ("member",), "It needs the role ops together "
         "with a token of the same user; you have the role member."),
        (LIST, "!", ("admin",), "The policy allows it to no one; you have the role admin."),
        (LIST, "rule:misspelt", ("admin",), "The policy allows it to no one; you have the role "
         "admin."),
        (LIST, "not role:admin", ("admin",), "`berth policy list` shows what this rule asks for; "
         "you have the role admin."),
        (LIST, "(role:a or role:b) and role:c", ("c",), "`berth policy list` shows what this rule "
         "asks for; you have the role c."),
        # By default readers of a project may see its usages too.
        ("placement:usages", "@", ("member",), "It needs the role admin or the role reader "
         "together with a token of the same project or the role service; you have the role "
         "member."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_needed_and_what_the_caller_has(
    build: Build, rule: str, check: str, roles: tuple[str, ...], hint: str
) -> None:
    """In words if the rule is simple; otherwise the message says where to find the rule."""
    with pytest.raises(Refused) as refused:
        build(f'"{LIST}": "{check}"').check(rule, caller(*roles))
    assert refused.value.message == f"Policy does not allow {rule} to be performed."
    assert refused.value.hint == hint
