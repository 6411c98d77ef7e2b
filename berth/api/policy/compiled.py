# SPDX-License-Identifier: Apache-2.0
"""oslo.policy's checks as closures.

oslo.policy inspects every check with the `inspect` module on each request, which costs more than
the rest of a request. So the check trees are compiled, once per change of a policy file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from oslo_context.context import RequestContext
from oslo_policy import _checks as checks
from oslo_policy import policy

#: How errors describe checks that compare the caller with the target.
_OWN: Mapping[str, tuple[str, ...]] = {
    "project_id:%(project_id)s": ("a token of the same project",),
    "user_id:%(user_id)s": ("a token of the same user",),
}


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
