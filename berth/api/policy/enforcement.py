# SPDX-License-Identifier: Apache-2.0
"""The rules in force: what they decide, and when their files are read again.

Rules, files, deprecations and reloading are oslo.policy's. Source: spec/operations.md 2.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api.errors import Refused
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace
from berth.api.policy.compiled import Circular, CompiledRule, Subject, compile_rules
from berth.api.policy.files import State, check_readable, policy_paths, state_of
from berth.api.policy.rules import create_enforcer, unknown_in
from berth.config import ConfigurationError

LOG = logging.getLogger(__name__)

#: Seconds between two checks for changed, new and removed policy files.
LOOK_INTERVAL_S = 0.5

#: Decisions that are cached; one more clears the cache.
_KEPT_MAX = 1024

_OTHER_SCOPE = "It needs a token of a project; yours is of the system or of a domain."


class Policy:
    """The rules in force, read again when their files change, come or go.

    PERF bench, flat: most rules depend on roles only, so their decisions are cached; checking the
    files on each request would cost as much as the rest of the evaluation.
    """

    def __init__(self, conf: cfg.ConfigOpts, namespaces: Sequence[Namespace] = NAMESPACES) -> None:
        self._conf = conf
        self._namespaces = namespaces
        self._scope_counts: bool = conf.oslo_policy.enforce_scope
        self._lock = threading.Lock()
        self._state = state_of(policy_paths(conf))
        self._rules = _load(conf, namespaces)
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
            self._rules = _load(self._conf, self._namespaces)
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


def _load(conf: cfg.ConfigOpts, namespaces: Sequence[Namespace]) -> dict[str, CompiledRule]:
    check_readable(conf)
    enforcer = create_enforcer(conf, namespaces)
    enforcer.load_rules()
    for name in unknown_in(enforcer):
        LOG.warning("The policy files set %s, which is not a rule; the entry is ignored", name)
    return compile_rules(enforcer)
