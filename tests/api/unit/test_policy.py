# SPDX-License-Identifier: Apache-2.0
"""Evaluation of policy rules: files, their changes, and checks other than roles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api.errors import Refused
from berth.api.policy import Policy, create_enforcer
from berth.config.options import register_opts

LIST = "placement:traits:list"
USAGES = "placement:usages"

Build = Callable[[str], Policy]


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the policy files with each request, not twice a second."""
    monkeypatch.setattr("berth.api.policy.enforcement.LOOK_INTERVAL_S", -1.0)


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


def caller(*roles: str, project: str = "p", **scope: Any) -> RequestContext:
    """A caller with these roles."""
    return RequestContext(user_id="u", project_id=project, roles=list(roles), **scope)


def lets_in(
    rules: Policy, context: RequestContext, rule: str = LIST, target: dict[str, str] | None = None
) -> bool:
    """Whether the policy allows a caller."""
    try:
        rules.check(rule, context, target)
    except Refused as refused:
        assert refused.status == 403
        assert rule in refused.message
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


def test_a_reader_sees_the_usages_of_its_own_project_only(build: Build) -> None:
    """The target of that rule is the project in the query."""
    rules = build("")
    reader = caller("reader", project="mine")
    assert lets_in(rules, reader, USAGES, {"project_id": "mine"})
    assert not lets_in(rules, reader, USAGES, {"project_id": "other"})
    assert not lets_in(rules, caller("member", project="mine"), USAGES, {"project_id": "mine"})


@pytest.mark.parametrize("scope", [{"system_scope": "all"}, {"domain_id": "d"}])
def test_no_file_opens_a_rule_to_another_scope(build: Build, scope: dict[str, str]) -> None:
    """System and domain scope are refused before the check string."""
    assert not lets_in(build(f'"{LIST}": "@"'), caller("admin", **scope))


def test_a_changed_file_counts_and_a_broken_one_does_not(
    build: Build, policy_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a restart; while the file cannot be read, the previous rules apply."""
    rules = build(f'"{LIST}": "role:a"')
    assert lets_in(rules, caller("a"))
    rewrite(policy_file, f'"{LIST}": "role:b"')
    assert not lets_in(rules, caller("a"))
    assert lets_in(rules, caller("b"))
    rewrite(policy_file, '"{')
    assert lets_in(rules, caller("b"))
    assert not lets_in(rules, caller("a"))
    assert len(caplog.records) == 1, "a broken file is told once, not with every request"
    rewrite(policy_file, f'"{LIST}": "role:c"')
    assert lets_in(rules, caller("c"))
    policy_file.unlink()
    assert not lets_in(rules, caller("c"))
    assert lets_in(rules, caller("admin"))


@pytest.mark.parametrize("option", ["--config-dir", "--config-file"])
def test_a_file_that_appears_beside_the_configuration_counts(tmp_path: Path, option: str) -> None:
    """At the start it may be missing, and the defaults apply."""
    named = tmp_path / "placement.conf"
    named.write_text("")
    conf = cfg.ConfigOpts()
    register_opts(conf)
    where = tmp_path if option == "--config-dir" else named
    conf([option, str(where)], project="placement", default_config_files=[], default_config_dirs=[])
    rules = Policy(conf)
    assert not lets_in(rules, caller("a"))
    (tmp_path / "policy.yaml").write_text(f'"{LIST}": "role:a"')
    assert lets_in(rules, caller("a"))


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


def rewrite(path: Path, text: str) -> None:
    """Replace a file so that its modification time certainly differs."""
    before = path.stat().st_mtime
    path.write_text(text)
    os.utime(path, (before + 2, before + 2))


def test_the_old_defaults_let_an_administrator_reshape(tmp_path: Path) -> None:
    """With `enforce_new_defaults = False`, every rule also allows the role admin. Tools get an
    enforcer with every rule through the entry point."""
    conf = configuration(tmp_path / "none.yaml")
    reshape = "placement:reshaper:reshape"
    assert not lets_in(Policy(conf), caller("admin"), reshape)
    assert {LIST, "admin_api"} <= create_enforcer(conf).registered_rules.keys()
    conf.set_override("enforce_new_defaults", False, group="oslo_policy")
    assert lets_in(Policy(conf), caller("admin"), reshape)


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
        (USAGES, "@", ("member",), "It needs the role admin or the role reader together with a "
         "token of the same project or the role service; you have the role member."),
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
