# SPDX-License-Identifier: Apache-2.0
"""The rules of the policy in force, and whom they admit: the work of `berth policy`."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click
from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api.errors import Refused
from berth.api.policy import ROUTE_RULES, Policy, check_policy, create_enforcer, unknown_rules
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: May look at everything, and change nothing, where `berth policy sample --auditor` is in force.
AUDITOR: Final = "auditor"


class Caller(NamedTuple):
    """Somebody of whom it is asked what they may do."""

    roles: Sequence[str]
    project: str
    user: str
    #: The token's scope is the system, not a project.
    is_of_system: bool
    #: Whose usages are asked for; None: those of the caller's project.
    target_project: str | None


class Rule(NamedTuple):
    """A rule in force."""

    name: str
    check: str
    is_default: bool
    #: As in `GET /traits`; none for a rule that others refer to.
    requests: tuple[str, ...]


def auditor_file() -> str:
    """A policy file that adds the auditor to all who may look."""
    lines = [
        f"# The role {AUDITOR} may look at everything, and change nothing.",
        "# Put this file into policy.d, beside placement.conf, and give the role to whom it suits.",
    ]
    for name, default, _, requests in ROUTE_RULES:
        only_looks = all(method == "GET" for method, _ in requests)
        if only_looks and f"role:{AUDITOR}" not in default:
            lines.append(f'"{name}": "{default} or role:{AUDITOR}"')
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
        name: tuple(f"{method} {path}" for method, path in guarded)
        for name, _, _, guarded in ROUTE_RULES
    }
    for name, default in enforcer.registered_rules.items():
        found = str(enforcer.rules.get(name, default.check))
        yield Rule(name, found, name not in enforcer.file_rules, requests.get(name, ()))


def print_admitted(conf: cfg.ConfigOpts, rules: Sequence[str], asked: Caller) -> bool:
    """Print what a caller may do, by all rules or by those named; whether each admits the caller.

    Raises:
        CommandFailed: there is no such rule (USAGE), or a policy file sets one that does not exist
            (CONFIGURATION).
        ConfigurationError: a policy file cannot be read.
    """
    known = {name: requests for name, _, _, requests in ROUTE_RULES}
    for rule in rules:
        if rule not in known:
            raise CommandFailed(
                f"there is no rule {rule}: `berth policy list` names them all", ExitCode.USAGE
            )
    check_policy(conf)
    if unknown := unknown_rules(conf):
        raise CommandFailed(
            f"the policy files set {', '.join(unknown)}, and there is no such rule: `berth policy "
            f"list` names them all",
            ExitCode.CONFIGURATION,
        )
    caller = RequestContext(
        roles=list(asked.roles),
        project_id=None if asked.is_of_system else asked.project,
        user_id=asked.user,
        system_scope="all" if asked.is_of_system else None,
        overwrite=False,
    )
    target: dict[str, str | None] | None = (
        {"project_id": asked.target_project, "user_id": asked.user}
        if asked.target_project
        else None
    )
    in_force = Policy(conf)
    refused = False
    for name in rules or known:
        admitted = _admits(in_force, name, caller, target)
        refused |= not admitted
        requests = ", ".join(f"{method} {path}" for method, path in known[name])
        click.echo(f"{'yes' if admitted else 'no':4} {name:52} {requests}")
    return not refused


def _admits(
    in_force: Policy, name: str, caller: RequestContext, target: dict[str, str | None] | None
) -> bool:
    try:
        in_force.check(name, caller, target)
    except Refused:
        return False
    return True
