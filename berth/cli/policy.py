# SPDX-License-Identifier: Apache-2.0
"""The work of `berth policy`: the effective rules, and whom they admit."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click
from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api.berth_v1 import routes as own
from berth.api.errors import Refused
from berth.api.namespaces import guarding_rules
from berth.api.policy import (
    Policy,
    check_policy,
    create_enforcer,
    print_sample,
    unknown_rules,
)
from berth.cli.failure import CommandFailed, Misused
from berth.cli.output import say, say_json
from berth.cli.sources import ConfigurationSource

#: The role with read-only access in the file that `berth policy sample --auditor` prints.
AUDITOR: Final = "auditor"


#: The role of the people of a project in the file that `berth policy sample --members` prints.
MEMBER: Final = "member"

#: What members may do for their own project.
_OF_OWN_PROJECT: Final = (
    own.PLACE,
    own.CONSUMERS_LIST,
    own.CONSUMERS_SHOW,
    own.CONSUMERS_DELETE,
    own.LEASES_LIST,
    own.LEASES_UPDATE,
)
#: What they may ask, about the whole fleet.
_QUESTIONS: Final = (own.CANDIDATES, own.EXPLAIN, own.CAPACITY)


class Rule(NamedTuple):
    """An effective policy rule."""

    name: str
    check: str
    is_default: bool
    #: Such as `GET /traits`; empty for a rule that only other rules use.
    requests: tuple[str, ...]


def print_rules(source: ConfigurationSource, *, as_json: bool) -> None:
    """Print every rule, its check, and the requests that it guards.

    Raises:
        ConfigurationError: a policy file cannot be read.
    """
    rules = list(rules_in_force(source.load()))
    if as_json:
        say_json([rule._asdict() for rule in rules])
        return
    for rule in rules:
        say(f"{rule.name}: {rule.check}{'' if rule.is_default else '  (overridden)'}")
        for request in rule.requests:
            say(f"    {request}")


def print_sample_file(*, auditor: bool, members: bool) -> None:
    """Print a policy file: every rule as a comment, or what one role needs.

    Raises:
        UsageError: both roles are wanted.
    """
    if auditor and members:
        raise click.UsageError("--auditor and --members are two files: print one after the other")
    if auditor:
        say(*auditor_file().splitlines())
    elif members:
        say(*members_file().splitlines())
    else:
        print_sample()


def auditor_file() -> str:
    """A policy file that adds the auditor to every rule for reading."""
    lines = [
        f"# The role {AUDITOR} may read everything and change nothing.",
        "# Save this file in policy.d, next to placement.conf, and give your auditors the role.",
    ]
    for guarding in guarding_rules():
        rule = guarding.rule
        is_for_reading = all(method == "GET" for method, _ in guarding.requests)
        admits_auditors = f"role:{AUDITOR}" in rule.default or own.READERS in rule.default
        if is_for_reading and not admits_auditors:
            lines.append(f'"{rule.name}": "{rule.default} or role:{AUDITOR}"')
    return "\n".join(lines) + "\n"


def members_file() -> str:
    """A policy file with which members of a project place for it, and see, lease and release what
    it holds. Source: spec/beyond.md 6.4."""
    lines = [
        f"# The role {MEMBER} may send every question of berth's own API, and place, list, show,",
        "# lease and release consumers of its own project; nothing else.",
        "# Save this file in policy.d, next to placement.conf. Under Keystone every project has",
        f"# members: the file is for a berth that stands alone, and `berth token create --role "
        f"{MEMBER}`.",
        *(f'"{rule.name}": "{rule.default} or role:{MEMBER}"' for rule in _QUESTIONS),
        *(
            f'"{rule.name}": "{rule.default} or (role:{MEMBER} and project_id:%(project_id)s)"'
            for rule in _OF_OWN_PROJECT
        ),
    ]
    return "\n".join(lines) + "\n"


def rules_in_force(conf: cfg.ConfigOpts) -> Iterator[Rule]:
    """Every rule, in the order of the documentation.

    Raises:
        ConfigurationError: a policy file cannot be read.
    """
    check_policy(conf)
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    requests = {
        guarding.rule.name: tuple(f"{method} {path}" for method, path in guarding.requests)
        for guarding in guarding_rules()
    }
    for name, default in enforcer.registered_rules.items():
        check = str(enforcer.rules.get(name, default.check))
        yield Rule(name, check, name not in enforcer.file_rules, requests.get(name, ()))


def print_admitted(
    source: ConfigurationSource,
    *,
    rules: Sequence[str],
    roles: Sequence[str],
    project: str,
    user: str,
    system: bool,
    target_project: str | None,
) -> None:
    """Print what a caller may do, for all rules or those named.

    Args:
        system: its token is scoped to the system, not to a project.
        target_project: the project whose usages the caller requests; None: the caller's own.

    Raises:
        Exit: one of those named refuses it (1).
        CommandFailed: there is no such rule (USAGE), or a policy file sets an unknown one
            (CONFIGURATION).
        ConfigurationError: a policy file cannot be read.
    """
    conf = source.load()
    requests_by_rule = {guarding.rule.name: guarding.requests for guarding in guarding_rules()}
    for rule in rules:
        if rule not in requests_by_rule:
            raise Misused(f"there is no rule {rule}; `berth policy list` prints all rules")
    check_policy(conf)
    if unknown := unknown_rules(conf):
        raise CommandFailed(
            f"the policy files set unknown rules: {', '.join(unknown)}; `berth policy list` prints "
            f"all rules"
        )
    caller = RequestContext(
        roles=list(roles),
        project_id=None if system else project,
        user_id=user,
        system_scope="all" if system else None,
        overwrite=False,
    )
    target = {"project_id": target_project, "user_id": user} if target_project else None
    in_force = Policy(conf)
    refused = False
    for name in rules or requests_by_rule:
        admitted = _admits(in_force, name, caller, target)
        refused |= not admitted
        requests = ", ".join(f"{method} {path}" for method, path in requests_by_rule[name])
        say(f"{'yes' if admitted else 'no':4} {name:52} {requests}")
    if refused and rules:
        raise click.exceptions.Exit(1)


def _admits(
    in_force: Policy, name: str, caller: RequestContext, target: dict[str, str] | None
) -> bool:
    try:
        in_force.check(name, caller, target)
    except Refused:
        return False
    return True
