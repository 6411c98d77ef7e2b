# SPDX-License-Identifier: Apache-2.0
"""The rules in force: what they decide, and when their files are read again.

Rules, files, deprecations and reloading are oslo.policy's. It inspects every check with the
`inspect` module on each request, which costs more than the rest of a request; so the check trees
are compiled to closures, once per change of a policy file. Source: spec/operations.md 2.
"""

from __future__ import annotations

import inspect
import logging
import os
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
from berth.api.policy.rules import create_enforcer, unknown_in
from berth.config import ConfigurationError

LOG = logging.getLogger(__name__)

#: Seconds between two checks for changed, new and removed policy files.
LOOK_INTERVAL_S = 0.5

#: Decisions that are cached; one more clears the cache.
_KEPT_MAX = 1024

_OTHER_SCOPE = "It needs a token of a project; yours is of the system or of a domain."


#: How errors describe checks that compare the caller with the target.
_OWN: Mapping[str, tuple[str, ...]] = {
    "project_id:%(project_id)s": ("a token of the same project",),
    "user_id:%(user_id)s": ("a token of the same user",),
}

#: The stamp of each watched path, which changes with its content; None: it does not exist.
State = tuple[tuple[int, int, int] | None, ...]


class Policy:
    """The rules in force, read again when their files change, come or go.

    PERF bench, flat: most rules depend on roles only, so their decisions are cached; checking the
    files on each request would cost as much as the rest of the evaluation.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._scope_counts: bool = conf.oslo_policy.enforce_scope
        self._lock = threading.Lock()
        self._state = state_of(policy_paths(conf))
        self._rules = _load(conf)
        self._looked_at = time.monotonic()
        #: (rule, roles) -> whether the rule allows them, for rules that depend on roles only.
        #: Cleared whenever the rules are read again.
        self._kept: dict[tuple[str, tuple[str, ...]], bool] = {}

    def check(
        self, rule: str, caller: RequestContext, target: Mapping[str, str | None] | None = None
    ) -> None:
        """Raise a 403 unless the rule allows the caller.

        Every rule is for tokens of project scope: system and domain scope are refused whatever the
        files say, unless [oslo_policy]enforce_scope is off. The target is the caller's own project
        and user unless given.
        """
        if time.monotonic() - self._looked_at > LOOK_INTERVAL_S:
            self._look_again()
        if (caller.system_scope or caller.domain_id) and self._scope_counts:
            raise Refused(403, rule, hint=_OTHER_SCOPE)
        # Read before the decision: if the rules are replaced meanwhile, a decision of the old rules
        # must not enter the cache of the new ones.
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
        """Whether a rule allows the caller, and whether that depends on the roles only."""
        rule = self._rules[name]
        if target is None:
            target = {"project_id": caller.project_id, "user_id": caller.user_id}
        try:
            return rule.decide(Subject(caller, target)), rule.is_of_roles
        except Circular:
            return False, rule.is_of_roles

    def _look_again(self) -> None:
        self._looked_at = time.monotonic()
        state = state_of(policy_paths(self._conf))
        if state != self._state:
            self._reload(state)

    def _reload(self, state: State) -> None:
        """Read the files again; if one cannot be read, the rules stay as they were."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._state = state
            self._rules = _load(self._conf)
            self._kept = {}
        except Exception as error:  # noqa: BLE001 - whatever a parser raises
            reason = " ".join(str(error).split())
            LOG.error("Cannot read the policy files; the previous rules stay in force: %s", reason)
        finally:
            self._lock.release()


def _hint(needs: tuple[str, ...] | None, roles: Sequence[str]) -> str:
    """What a rejected caller lacks, and what it has."""
    if needs is None:
        needed = "`berth policy list` shows what this rule asks for"
    elif needs:
        needed = f"It needs {' or '.join(needs)}"
    else:
        needed = "The policy allows it to no one"
    has = f"the role{'s' if len(roles) > 1 else ''} {', '.join(roles)}" if roles else "no role"
    return f"{needed}; you have {has}."


def check_policy(conf: cfg.ConfigOpts) -> None:
    """Read the policy files, so that a broken one is reported at startup.

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


def _load(conf: cfg.ConfigOpts) -> dict[str, CompiledRule]:
    check_readable(conf)
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    for name in unknown_in(enforcer):
        LOG.warning("The policy files set %s, which is not a rule; the entry is ignored", name)
    return compile_rules(enforcer)


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


class CompiledRule(NamedTuple):
    """A rule in force."""

    decide: Decision
    #: Whether nothing but the caller's roles counts.
    is_of_roles: bool
    #: What a caller may need for it, in words; None where that is not simple to say.
    needs: tuple[str, ...] | None = None


class Circular(Exception):
    """To decide a rule one would have to have decided it."""


def compile_rules(enforcer: policy.Enforcer) -> dict[str, CompiledRule]:
    """A closure for each registered rule, be its check from a file or the default."""
    return {
        name: _compile_check(enforcer.rules[name], enforcer, (name,))
        for name in enforcer.registered_rules
    }


def _compile_check(check: Any, enforcer: policy.Enforcer, within: tuple[str, ...]) -> CompiledRule:
    """A closure for one check; `within` names the rules that led here, to end circles."""
    if isinstance(check, checks.TrueCheck):
        return CompiledRule(lambda subject: True, is_of_roles=True)
    if isinstance(check, checks.FalseCheck):
        return CompiledRule(lambda subject: False, is_of_roles=True, needs=())
    if isinstance(check, checks.OrCheck | checks.AndCheck):
        parts = [_compile_check(part, enforcer, within) for part in check.rules]
        gather = any if isinstance(check, checks.OrCheck) else all
        return CompiledRule(
            lambda subject: gather(part.decide(subject) for part in parts),
            is_of_roles=all(part.is_of_roles for part in parts),
            needs=_any_needed(parts) if gather is any else _all_needed(parts),
        )
    if isinstance(check, checks.NotCheck):
        inner = _compile_check(check.rule, enforcer, within)
        return CompiledRule(lambda subject: not inner.decide(subject), inner.is_of_roles)
    if isinstance(check, checks.RuleCheck):
        name = check.match
        if name in within:
            return CompiledRule(_refuse_circle, is_of_roles=True)
        try:
            # A name that no rule has stands for [oslo_policy]policy_default_rule, if there is one.
            named = enforcer.rules[name]
        except KeyError:
            return CompiledRule(lambda subject: False, is_of_roles=True, needs=())
        return _compile_check(named, enforcer, (*within, name))
    if isinstance(check, checks.RoleCheck) and "%" not in check.match:
        role = check.match.lower()
        return CompiledRule(
            lambda subject: role in subject.roles, is_of_roles=True, needs=(f"the role {role}",)
        )
    return CompiledRule(
        _compile_other(check, enforcer, within[0]), is_of_roles=False, needs=_OWN.get(str(check))
    )


def _any_needed(parts: Sequence[CompiledRule]) -> tuple[str, ...] | None:
    needs: dict[str, None] = {}
    for part in parts:
        if part.needs is None:
            return None
        needs.update(dict.fromkeys(part.needs))
    return tuple(needs)


def _all_needed(parts: Sequence[CompiledRule]) -> tuple[str, ...] | None:
    """Only where each part can be met in one way: anything else would take brackets to say."""
    needs: dict[str, None] = {}
    for part in parts:
        if part.needs is None or len(part.needs) != 1:
            return None
        needs.update(dict.fromkeys(part.needs))
    return (" together with ".join(needs),)


def _refuse_circle(subject: Subject) -> NoReturn:
    """A rule that leads back to itself decides nothing; `False` would let in behind a `not`."""
    raise Circular


def _compile_other(check: Any, enforcer: policy.Enforcer, rule: str) -> Decision:
    """A check that judges for itself; those of old extensions do not want to know the rule."""
    if len(inspect.getfullargspec(check.__call__).args) > 4:
        return lambda subject: bool(check(subject.target, subject.credentials, enforcer, rule))
    return lambda subject: bool(check(subject.target, subject.credentials, enforcer))


def policy_paths(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """The paths of the present policy files and of their directories."""
    options = conf.oslo_policy
    names = (options.policy_file, *options.policy_dirs)
    paths = [path for name in names if (path := conf.find_file(name))]
    inside = [path for folder in paths for path in _paths_in(folder)]
    return tuple(dict.fromkeys((*paths, *inside)))


def _paths_in(folder: str) -> list[str]:
    """The paths in a directory; none if it is missing, not a directory, or unreadable."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries]
    except OSError:
        return []


def state_of(paths: tuple[str, ...]) -> State:
    """The stamps of the paths, which change with their content."""
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def check_readable(conf: cfg.ConfigOpts) -> None:
    """Raise OSError for a policy file or directory that the configuration names and that does not
    exist, or that exists and cannot be read.

    oslo.policy only logs it and continues with the defaults, and so would admit callers whom the
    file excludes.
    """
    for option, names in (
        ("policy_file", [conf.oslo_policy.policy_file]),
        ("policy_dirs", conf.oslo_policy.policy_dirs),
    ):
        location = conf.get_location(option, "oslo_policy")
        is_named = location is not None and location.location.is_user_controlled
        for name in names:
            if is_named and conf.find_file(name) is None:
                raise FileNotFoundError(f"[oslo_policy]{option} names {name}, which does not exist")
    for name in (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs):
        path = conf.find_file(name)
        if path is None:
            continue
        inside = os.path.isdir(path) and name != conf.oslo_policy.policy_file
        for file in _files_in(path) if inside else [path]:
            with open(file, "rb"):
                pass


def _files_in(folder: str) -> list[str]:
    """The policy files of a directory; raises OSError if it cannot be listed."""
    with os.scandir(folder) as entries:
        return [
            entry.path for entry in entries if not (entry.name.startswith(".") or entry.is_dir())
        ]
