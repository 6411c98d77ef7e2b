# SPDX-License-Identifier: Apache-2.0
"""The policy rules with their defaults, in the form that oslo.policy and its tools take.

The rule of an operation is defined beside its route. Source: spec/operations.md 2.
"""

from __future__ import annotations

import re
from typing import Any

from oslo_config import cfg
from oslo_policy import _checks as checks
from oslo_policy import policy

from berth.api.namespaces import guarding_rules
from berth.config import PROJECT

#: The roles that OpenStack always has.
CUSTOMARY_ROLES = frozenset({"admin", "service", "member", "reader"})

_ROLE = re.compile(r"\brole:([\w.-]+)")
_REFERENCE = re.compile(r"\brule:([\w:.-]+)")

_PROJECT_SCOPE = ["project"]
_OLD_REASON = "Placement tells service users from administrators by roles of their own."
_OLD_SINCE = "9.0.0"

#: Rules that other rules refer to: name, default, whether `role:admin` used to be enough, scope,
#: description.
_BASE_RULES: tuple[tuple[str, str, bool, list[str] | None, str], ...] = (
    ("admin_api", "role:admin", False, _PROJECT_SCOPE, "Administrators."),
    ("service_api", "role:service", True, _PROJECT_SCOPE, "Services that call each other."),
    (
        "admin_or_service_api",
        "role:admin or role:service",
        True,
        _PROJECT_SCOPE,
        "Administrators and services.",
    ),
    (
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        True,
        None,
        "Readers of the project that the request is about.",
    ),
    (
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        True,
        _PROJECT_SCOPE,
        "Administrators, services, and readers of the project that the request is about.",
    ),
    (
        "berth_reader",
        "rule:admin_or_service_api or role:auditor",
        False,
        _PROJECT_SCOPE,
        "Those who may read everything and change nothing, such as auditors.",
    ),
    (
        "agent_api",
        "role:agent",
        False,
        _PROJECT_SCOPE,
        "Agents, which may read and change the tree of their own host only.",
    ),
)


class _Extensions(dict[str, Any]):
    """The kinds of checks that other packages add to oslo.policy, such as `http`.

    PERF bench.start: oslo.policy loads them for the first rule of any kind, and with them requests,
    which takes as long as a fifteenth of a start. This loads them for a kind that the defaults do
    not have.
    """

    def __contains__(self, kind: object) -> bool:
        return kind not in ("role", "rule", "project_id") and kind in _load_extensions()

    def __getitem__(self, kind: str) -> Any:
        return _load_extensions()[kind]


def _load_extensions() -> dict[str, Any]:
    checks.extension_checks = None
    extensions: dict[str, Any] = checks.get_extensions()
    return extensions


checks.extension_checks = _Extensions()


def list_rules() -> list[policy.RuleDefault]:
    """Every rule with its default, for the enforcer and for oslo.policy's tools."""
    rules: list[policy.RuleDefault] = [
        policy.RuleDefault(
            name,
            default,
            description=description,
            scope_types=scope,
            deprecated_rule=_admin_only(name) if admin_sufficed else None,
        )
        for name, default, admin_sufficed, scope, description in _BASE_RULES
    ]
    rules += [
        policy.DocumentedRuleDefault(
            guarding.rule.name,
            guarding.rule.default,
            guarding.rule.description,
            [{"method": method, "path": path} for method, path in guarding.requests],
            scope_types=_PROJECT_SCOPE,
            deprecated_rule=None
            if _is_own(guarding.rule.name)
            else _admin_only(guarding.rule.name),
        )
        for guarding in guarding_rules()
    ]
    return rules


def create_enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """An oslo.policy enforcer that knows the rules, with the files of a configuration."""
    enforcer = policy.Enforcer(conf)
    enforcer.suppress_default_change_warnings = True
    enforcer.suppress_deprecation_warnings = True
    enforcer.register_defaults(list_rules())
    return enforcer


def get_enforcer() -> policy.Enforcer:
    """The enforcer that oslo.policy's command line tools work with."""
    conf = cfg.ConfigOpts()
    conf([], project=PROJECT)
    return create_enforcer(conf)


def unknown_rules(conf: cfg.ConfigOpts) -> list[str]:
    """The names in the policy files that have no effect: no operation and no other rule uses
    them."""
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    return unknown_in(enforcer)


def unknown_in(enforcer: policy.Enforcer) -> list[str]:
    """See `unknown_rules`."""
    meant = {*enforcer.registered_rules, enforcer.default_rule}
    for check in enforcer.rules.values():
        meant.update(_REFERENCE.findall(str(check)))
    return sorted(set(enforcer.file_rules) - meant)


def named_roles(conf: cfg.ConfigOpts) -> frozenset[str]:
    """The roles that the rules in force name, and the customary ones, in lower case."""
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    asked_for = (_ROLE.findall(str(check)) for check in enforcer.rules.values())
    return CUSTOMARY_ROLES.union(*([role.lower() for role in roles] for roles in asked_for))


def print_sample() -> None:
    """Print a policy file with every rule and its default, commented out."""
    # Imported here: that takes a tenth of a second, and a service does not need it.
    from oslo_policy import generator

    generator.generate_sample(["--namespace", PROJECT])


def _is_own(name: str) -> bool:
    """Whether OpenStack Placement has no such rule."""
    return name.startswith("berth:")


def _admin_only(name: str) -> policy.DeprecatedRule:
    return policy.DeprecatedRule(
        name, "role:admin", deprecated_reason=_OLD_REASON, deprecated_since=_OLD_SINCE
    )
