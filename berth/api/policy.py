# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the rules with their defaults, and their cheap evaluation.

Rules, files, deprecations and reloading are oslo.policy's. Its own evaluation inspects every check
with the `inspect` module on each request, which costs more than the rest of a request; so the
loaded check trees are turned into closures, once per change of a policy file.

Source: spec/operations.md 2.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_policy import _checks as checks
from oslo_policy import policy

from berth.api.errors import Refused
from berth.config import PROJECT, ConfigurationError

LOG = logging.getLogger(__name__)

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_OR_READER_OR_SERVICE = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"

METRICS_RULE = "berth:metrics"

#: The roles that OpenStack always has.
CUSTOMARY_ROLES = frozenset({"admin", "service", "member", "reader"})

_ROLE = re.compile(r"\brole:([\w.-]+)")
_REFERENCE = re.compile(r"\brule:([\w:.-]+)")

#: Policy files, and the places where some may yet appear, are looked at again after so long a time.
LOOK_INTERVAL_S = 0.5

#: Decisions that are kept; one more, and all are forgotten.
_KEPT_MAX = 1024

#: What is said of checks that compare the caller with the target.
_OWN: Mapping[str, tuple[str, ...]] = {
    "project_id:%(project_id)s": ("a token of the same project",),
    "user_id:%(user_id)s": ("a token of the same user",),
}

_OTHER_SCOPE = "It needs a token of a project; yours is of the system or of a domain."

_PROJECT_SCOPE = ["project"]
_OLD_REASON = "Placement tells service users from administrators by roles of their own."
_OLD_SINCE = "9.0.0"

#: The rules that others refer to: name, default, whether admin sufficed before, scope, description.
_BASE_RULES: tuple[tuple[str, str, bool, list[str] | None, str], ...] = (
    ("admin_api", "role:admin", False, _PROJECT_SCOPE, "Administrators."),
    ("service_api", "role:service", True, _PROJECT_SCOPE, "Services that talk to each other."),
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
        "Readers of the project in question.",
    ),
    (
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        True,
        _PROJECT_SCOPE,
        "Administrators, services, and readers of the project in question.",
    ),
)

_PROVIDER = "/resource_providers/{uuid}"

#: The rules of the routes: name, default, description, and the (method, path) pairs they guard.
ROUTE_RULES: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "placement:resource_providers:list",
        ADMIN_OR_SERVICE,
        "List resource providers.",
        (("GET", "/resource_providers"),),
    ),
    (
        "placement:resource_providers:create",
        ADMIN_OR_SERVICE,
        "Create a resource provider.",
        (("POST", "/resource_providers"),),
    ),
    (
        "placement:resource_providers:show",
        ADMIN_OR_SERVICE,
        "Show a resource provider.",
        (("GET", _PROVIDER),),
    ),
    (
        "placement:resource_providers:update",
        ADMIN_OR_SERVICE,
        "Rename or move a resource provider.",
        (("PUT", _PROVIDER),),
    ),
    (
        "placement:resource_providers:delete",
        ADMIN_OR_SERVICE,
        "Delete a resource provider.",
        (("DELETE", _PROVIDER),),
    ),
    (
        "placement:resource_providers:inventories:list",
        ADMIN_OR_SERVICE,
        "List a provider's inventories.",
        (("GET", f"{_PROVIDER}/inventories"),),
    ),
    (
        "placement:resource_providers:inventories:create",
        ADMIN_OR_SERVICE,
        "Add one inventory to a provider.",
        (("POST", f"{_PROVIDER}/inventories"),),
    ),
    (
        "placement:resource_providers:inventories:show",
        ADMIN_OR_SERVICE,
        "Show one inventory.",
        (("GET", f"{_PROVIDER}/inventories/{{resource_class}}"),),
    ),
    (
        "placement:resource_providers:inventories:update",
        ADMIN_OR_SERVICE,
        "Replace one or all of a provider's inventories.",
        (
            ("PUT", f"{_PROVIDER}/inventories"),
            ("PUT", f"{_PROVIDER}/inventories/{{resource_class}}"),
        ),
    ),
    (
        "placement:resource_providers:inventories:delete",
        ADMIN_OR_SERVICE,
        "Delete one or all of a provider's inventories.",
        (
            ("DELETE", f"{_PROVIDER}/inventories"),
            ("DELETE", f"{_PROVIDER}/inventories/{{resource_class}}"),
        ),
    ),
    (
        "placement:resource_providers:aggregates:list",
        ADMIN_OR_SERVICE,
        "List a provider's aggregates.",
        (("GET", f"{_PROVIDER}/aggregates"),),
    ),
    (
        "placement:resource_providers:aggregates:update",
        ADMIN_OR_SERVICE,
        "Replace a provider's aggregates.",
        (("PUT", f"{_PROVIDER}/aggregates"),),
    ),
    (
        "placement:resource_providers:traits:list",
        ADMIN_OR_SERVICE,
        "List a provider's traits.",
        (("GET", f"{_PROVIDER}/traits"),),
    ),
    (
        "placement:resource_providers:traits:update",
        ADMIN_OR_SERVICE,
        "Replace a provider's traits.",
        (("PUT", f"{_PROVIDER}/traits"),),
    ),
    (
        "placement:resource_providers:traits:delete",
        ADMIN_OR_SERVICE,
        "Remove a provider's traits.",
        (("DELETE", f"{_PROVIDER}/traits"),),
    ),
    (
        "placement:resource_providers:usages",
        ADMIN_OR_SERVICE,
        "Show what is used of a provider.",
        (("GET", f"{_PROVIDER}/usages"),),
    ),
    (
        "placement:resource_providers:allocations:list",
        ADMIN_OR_SERVICE,
        "List the allocations on a provider.",
        (("GET", f"{_PROVIDER}/allocations"),),
    ),
    (
        "placement:resource_classes:list",
        ADMIN_OR_SERVICE,
        "List resource classes.",
        (("GET", "/resource_classes"),),
    ),
    (
        "placement:resource_classes:create",
        ADMIN_OR_SERVICE,
        "Create a resource class.",
        (("POST", "/resource_classes"),),
    ),
    (
        "placement:resource_classes:show",
        ADMIN_OR_SERVICE,
        "Show a resource class.",
        (("GET", "/resource_classes/{name}"),),
    ),
    (
        "placement:resource_classes:update",
        ADMIN_OR_SERVICE,
        "Create a resource class where it is missing (before 1.7: rename it).",
        (("PUT", "/resource_classes/{name}"),),
    ),
    (
        "placement:resource_classes:delete",
        ADMIN_OR_SERVICE,
        "Delete a resource class.",
        (("DELETE", "/resource_classes/{name}"),),
    ),
    ("placement:traits:list", ADMIN_OR_SERVICE, "List traits.", (("GET", "/traits"),)),
    ("placement:traits:show", ADMIN_OR_SERVICE, "Show a trait.", (("GET", "/traits/{name}"),)),
    (
        "placement:traits:update",
        ADMIN_OR_SERVICE,
        "Create a trait where it is missing.",
        (("PUT", "/traits/{name}"),),
    ),
    (
        "placement:traits:delete",
        ADMIN_OR_SERVICE,
        "Delete a trait.",
        (("DELETE", "/traits/{name}"),),
    ),
    (
        "placement:allocations:manage",
        ADMIN_OR_SERVICE,
        "Write the allocations of several consumers.",
        (("POST", "/allocations"),),
    ),
    (
        "placement:allocations:list",
        ADMIN_OR_SERVICE,
        "List the allocations of a consumer.",
        (("GET", "/allocations/{consumer_uuid}"),),
    ),
    (
        "placement:allocations:update",
        ADMIN_OR_SERVICE,
        "Write the allocations of a consumer.",
        (("PUT", "/allocations/{consumer_uuid}"),),
    ),
    (
        "placement:allocations:delete",
        ADMIN_OR_SERVICE,
        "Delete the allocations of a consumer.",
        (("DELETE", "/allocations/{consumer_uuid}"),),
    ),
    (
        "placement:allocation_candidates:list",
        ADMIN_OR_SERVICE,
        "List allocation candidates.",
        (("GET", "/allocation_candidates"),),
    ),
    (
        "placement:usages",
        ADMIN_OR_READER_OR_SERVICE,
        "Show what a project uses.",
        (("GET", "/usages"),),
    ),
    (
        "placement:reshaper:reshape",
        SERVICE,
        "Move inventories and allocations in one transaction.",
        (("POST", "/reshaper"),),
    ),
    (
        METRICS_RULE,
        f"{ADMIN_OR_SERVICE} or role:auditor",
        "Read the metrics.",
        (("GET", "/metrics"),),
    ),
)


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
            name,
            default,
            description,
            [{"method": method, "path": path} for method, path in operations],
            scope_types=_PROJECT_SCOPE,
            deprecated_rule=_admin_only(name),
        )
        for name, default, description, operations in ROUTE_RULES
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
    """The names in the policy files that stand for nothing: no request asks for them, and no other
    rule refers to them."""
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    return _unknown_in(enforcer)


def _unknown_in(enforcer: policy.Enforcer) -> list[str]:
    meant = {*enforcer.registered_rules, enforcer.default_rule}
    for check in enforcer.rules.values():
        meant.update(_REFERENCE.findall(str(check)))
    return sorted(set(enforcer.file_rules) - meant)


def named_roles(conf: cfg.ConfigOpts) -> frozenset[str]:
    """The roles that a rule in force asks for, and the customary ones, in small letters."""
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    asked_for = (_ROLE.findall(str(check)) for check in enforcer.rules.values())
    return CUSTOMARY_ROLES.union(*([role.lower() for role in roles] for roles in asked_for))


def print_sample() -> None:
    """Print a policy file with every rule and its default, commented out."""
    # Here, because a service does not need it, and it takes a tenth of a second to import.
    from oslo_policy import generator

    generator.generate_sample(["--namespace", PROJECT])


class Subject:
    """Who asks for what, as the checks want to see it."""

    def __init__(self, caller: RequestContext, target: Mapping[str, str | None]) -> None:
        self._caller = caller
        self.target = target
        self.roles = frozenset(role.lower() for role in caller.roles)

    @cached_property
    def credentials(self) -> dict[str, Any]:
        """All that is known of the caller; only checks on more than roles need it."""
        return dict(self._caller.to_policy_values())


Decision = Callable[[Subject], bool]

#: For each path that is watched what tells one content from another; None: it is not there.
_State = tuple[tuple[int, int, int] | None, ...]


class _Rule(NamedTuple):
    """A rule in force."""

    decide: Decision
    #: Whether nothing but the caller's roles counts.
    is_of_roles: bool
    #: What a caller may need for it, in words; None where that is not simple to say.
    needs: tuple[str, ...] | None = None


class _Circular(Exception):
    """To decide a rule one would have to have decided it."""


class Policy:
    """The rules in force, read again when their files change, come or go.

    PERF bench, flat: most rules ask for roles only, so what they decide is remembered; and to look
    at the files with each request cost as much as all that.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._scope_counts: bool = conf.oslo_policy.enforce_scope
        self._lock = threading.Lock()
        self._state = _state_of(_policy_paths(conf))
        self._rules = _load(conf)
        self._looked_at = time.monotonic()
        #: (rule, roles) -> whether it lets them in, where nothing else counts. Depends on the rules
        #: in force, and begins empty again with each set of rules that is read.
        self._kept: dict[tuple[str, tuple[str, ...]], bool] = {}

    def check(
        self, rule: str, caller: RequestContext, target: Mapping[str, str | None] | None = None
    ) -> None:
        """Refuse with 403 unless the rule lets the caller in.

        Every rule is for tokens of project scope: system and domain scope are refused whatever the
        files say, unless [oslo_policy]enforce_scope is off. The target is the caller's own project
        and user unless given.
        """
        if time.monotonic() - self._looked_at > LOOK_INTERVAL_S:
            self._look_again()
        if (caller.system_scope or caller.domain_id) and self._scope_counts:
            raise Refused(403, rule, hint=_OTHER_SCOPE)
        # Taken before the question: what is decided by rules that go meanwhile is not remembered
        # for those that come.
        kept = self._kept
        key = rule, tuple(caller.roles)
        allowed = kept.get(key)
        if allowed is None:
            allowed, is_of_roles = self._decided(rule, caller, target)
            if is_of_roles:
                if len(kept) >= _KEPT_MAX:
                    kept.clear()
                kept[key] = allowed
        if not allowed:
            raise Refused(
                403,
                f"Policy does not allow {rule} to be performed.",
                hint=_hint(self._rules[rule].needs, caller.roles),
            )

    def _decided(
        self, name: str, caller: RequestContext, target: Mapping[str, str | None] | None
    ) -> tuple[bool, bool]:
        """Whether a rule lets somebody in, and whether that holds for all who have these roles."""
        rule = self._rules[name]
        if target is None:
            target = {"project_id": caller.project_id, "user_id": caller.user_id}
        try:
            return rule.decide(Subject(caller, target)), rule.is_of_roles
        except _Circular:
            return False, rule.is_of_roles

    def _look_again(self) -> None:
        self._looked_at = time.monotonic()
        state = _state_of(_policy_paths(self._conf))
        if state != self._state:
            self._reload(state)

    def _reload(self, state: _State) -> None:
        """Read the files again; if one cannot be read, the rules stay as they were."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._state = state
            self._rules = _load(self._conf)
            self._kept = {}
        except Exception as error:  # noqa: BLE001 - whatever a parser raises
            said = " ".join(str(error).split())
            LOG.error("The policy files cannot be read, and the rules read before stay: %s", said)
        finally:
            self._lock.release()


def _hint(needs: tuple[str, ...] | None, roles: Sequence[str]) -> str:
    """What a caller who was refused lacks, and what he has."""
    if needs is None:
        needed = "`berth policy list` shows what this rule asks for"
    elif needs:
        needed = f"It needs {' or '.join(needs)}"
    else:
        needed = "The policy allows it to nobody"
    has = f"the role{'s' if len(roles) > 1 else ''} {', '.join(roles)}" if roles else "no role"
    return f"{needed}; you have {has}."


def _policy_paths(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """Where policy files are, and where beside the configuration they may yet appear."""
    options = conf.oslo_policy
    names = (options.policy_file, *options.policy_dirs)
    found = [path for name in names if (path := conf.find_file(name))]
    beside = {os.path.dirname(os.path.abspath(path)) for path in conf.config_file or ()}
    beside.update(os.path.abspath(path) for path in conf.config_dir or ())
    possible = [os.path.join(folder, name) for folder in sorted(beside) for name in names]
    inside = [path for folder in found for path in _paths_in(folder)]
    return tuple(dict.fromkeys((*found, *possible, *inside)))


def _paths_in(folder: str) -> list[str]:
    """What is in a folder; nothing, if it is none, or not there any more, or closed to us."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries]
    except OSError:
        return []


def _state_of(paths: tuple[str, ...]) -> _State:
    """What tells one content of the paths from another."""
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def check_policy(conf: cfg.ConfigOpts) -> None:
    """Read the policy files, so that a broken one is found before anything is served.

    Raises:
        ConfigurationError: one of them cannot be read.
    """
    try:
        check_readable(conf)
        create_enforcer(conf).load_rules()
    except Exception as error:
        raise ConfigurationError(
            f"the policy files ({conf.oslo_policy.policy_file}, and those of policy_dirs) "
            f"cannot be read: {' '.join(str(error).split())}"
        ) from error


def check_readable(conf: cfg.ConfigOpts) -> None:
    """Raise OSError for a policy file that is there and cannot be read.

    oslo.policy passes over it with a line in the log, and goes on with the defaults: whoever the
    file was to keep out would be let in.
    """
    for name in (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs):
        path = conf.find_file(name)
        if path is None:
            continue
        inside = os.path.isdir(path) and name != conf.oslo_policy.policy_file
        for file in _files_in(path) if inside else [path]:
            with open(file, "rb"):
                pass


def _files_in(folder: str) -> list[str]:
    """The files of a folder that are read; raises OSError where it cannot be looked into."""
    with os.scandir(folder) as entries:
        return [one.path for one in entries if not (one.name.startswith(".") or one.is_dir())]


def _load(conf: cfg.ConfigOpts) -> dict[str, _Rule]:
    check_readable(conf)
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    for name in _unknown_in(enforcer):
        LOG.warning("The policy files set %s, and there is no such rule: it has no effect", name)
    return _compile(enforcer)


def _admin_only(name: str) -> policy.DeprecatedRule:
    return policy.DeprecatedRule(
        name, "role:admin", deprecated_reason=_OLD_REASON, deprecated_since=_OLD_SINCE
    )


def _compile(enforcer: policy.Enforcer) -> dict[str, _Rule]:
    """A closure for each registered rule, be its check from a file or the default."""
    return {
        name: _compile_check(enforcer.rules[name], enforcer, (name,))
        for name in enforcer.registered_rules
    }


def _compile_check(check: Any, enforcer: policy.Enforcer, within: tuple[str, ...]) -> _Rule:
    """A closure for one check; `within` names the rules that led here, to end circles."""
    if isinstance(check, checks.TrueCheck):
        return _Rule(lambda subject: True, is_of_roles=True)
    if isinstance(check, checks.FalseCheck):
        return _Rule(lambda subject: False, is_of_roles=True, needs=())
    if isinstance(check, checks.OrCheck | checks.AndCheck):
        parts = [_compile_check(part, enforcer, within) for part in check.rules]
        gather = any if isinstance(check, checks.OrCheck) else all
        return _Rule(
            lambda subject: gather(part.decide(subject) for part in parts),
            is_of_roles=all(part.is_of_roles for part in parts),
            needs=_any_needed(parts) if gather is any else _all_needed(parts),
        )
    if isinstance(check, checks.NotCheck):
        inner = _compile_check(check.rule, enforcer, within)
        return _Rule(lambda subject: not inner.decide(subject), inner.is_of_roles)
    if isinstance(check, checks.RuleCheck):
        name = check.match
        if name in within:
            return _Rule(_refuse_circle, is_of_roles=True)
        try:
            # A name that no rule has stands for [oslo_policy]policy_default_rule, if there is one.
            named = enforcer.rules[name]
        except KeyError:
            return _Rule(lambda subject: False, is_of_roles=True, needs=())
        return _compile_check(named, enforcer, (*within, name))
    if isinstance(check, checks.RoleCheck) and "%" not in check.match:
        role = check.match.lower()
        return _Rule(
            lambda subject: role in subject.roles, is_of_roles=True, needs=(f"the role {role}",)
        )
    return _Rule(
        _compile_other(check, enforcer, within[0]), is_of_roles=False, needs=_OWN.get(str(check))
    )


def _any_needed(parts: Sequence[_Rule]) -> tuple[str, ...] | None:
    needs: dict[str, None] = {}
    for part in parts:
        if part.needs is None:
            return None
        needs.update(dict.fromkeys(part.needs))
    return tuple(needs)


def _all_needed(parts: Sequence[_Rule]) -> tuple[str, ...] | None:
    """Only where each part can be met in one way: anything else would take brackets to say."""
    needs: dict[str, None] = {}
    for part in parts:
        if part.needs is None or len(part.needs) != 1:
            return None
        needs.update(dict.fromkeys(part.needs))
    return (" together with ".join(needs),)


def _refuse_circle(subject: Subject) -> NoReturn:
    """A rule that leads back to itself decides nothing; `False` would let in behind a `not`."""
    raise _Circular


def _compile_other(check: Any, enforcer: policy.Enforcer, rule: str) -> Decision:
    """A check that judges for itself; those of old extensions do not want to know the rule."""
    if len(inspect.getfullargspec(check.__call__).args) > 4:
        return lambda subject: bool(check(subject.target, subject.credentials, enforcer, rule))
    return lambda subject: bool(check(subject.target, subject.credentials, enforcer))
