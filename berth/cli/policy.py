# SPDX-License-Identifier: Apache-2.0
"""`berth policy`: who may do what, as the policy files have it."""

import json
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click
from oslo_context.context import RequestContext

from berth import deploy
from berth.api.errors import Refused
from berth.api.policy import ROUTE_RULES, Policy, create_enforcer, print_sample, unknown_rules
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource, configured

#: May look at everything, and change nothing, where `berth policy sample --auditor` is in force.
AUDITOR: Final = "auditor"

#: Nobody's: stands for the project or user of a caller of whom it is not said.
_SOMEBODY: Final = "somebody"


@click.group()
def policy() -> None:
    """Say who may do what."""


@policy.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of rules.")
@configured
def list_rules(source: ConfigurationSource, as_json: bool) -> None:
    """Print every rule that is in force: its check, the requests that it guards, and whether a
    file overrides it."""
    rules = list(_in_force(source))
    if as_json:
        click.echo(json.dumps([one._asdict() for one in rules], indent=2))
        return
    for one in rules:
        click.echo(f"{one.name}: {one.check}{'' if one.is_default else '  (overridden)'}")
        for request in one.requests:
            click.echo(f"    {request}")


@policy.command()
@click.option(
    "--auditor",
    is_flag=True,
    help=f"Instead the overrides that let the role {AUDITOR} look at everything and change "
    f"nothing: a file for policy.d.",
)
def sample(auditor: bool) -> None:
    """Print a policy file with every rule and its default, commented out."""
    if auditor:
        click.echo(auditor_file(), nl=False)
    else:
        print_sample()


@policy.command()
@click.argument("rules", metavar="[RULE]...", nargs=-1)
@click.option("--role", "roles", multiple=True, help="A role of the caller; may be repeated.")
@click.option("--project", default=_SOMEBODY, help="The project of the caller's token.")
@click.option("--user", default=_SOMEBODY, help="The caller's user id.")
@click.option("--system", is_flag=True, help="The token's scope is the system, not a project.")
@click.option("--target-project", help="Whose usages are asked for.  [default: the caller's]")
@configured
def check(
    source: ConfigurationSource,
    rules: Sequence[str],
    roles: Sequence[str],
    project: str,
    user: str,
    system: bool,
    target_project: str | None,
) -> None:
    """Say what somebody with these roles may do, of everything or of the RULEs named.

    Exit code: 0; where RULEs are named and one of them refuses, or where a policy file sets a rule
    that does not exist, 1.
    """
    known = {name: requests for name, _, _, requests in ROUTE_RULES}
    for rule in rules:
        if rule not in known:
            raise CommandFailed(
                f"there is no rule {rule}: `berth policy list` names them all", ExitCode.USAGE
            )
    conf = source.load()
    deploy.check_policy(conf)
    if unknown := unknown_rules(conf):
        raise CommandFailed(
            f"the policy files set {', '.join(unknown)}, and there is no such rule: `berth policy "
            f"list` names them all",
            ExitCode.CONFIGURATION,
        )
    caller = RequestContext(
        roles=list(roles),
        project_id=None if system else project,
        user_id=user,
        system_scope="all" if system else None,
        overwrite=False,
    )
    target: dict[str, str | None] | None = (
        {"project_id": target_project, "user_id": user} if target_project else None
    )
    in_force = Policy(conf)
    refused = False
    for name in rules or known:
        admitted = _admits(in_force, name, caller, target)
        refused |= not admitted
        requests = ", ".join(f"{method} {path}" for method, path in known[name])
        click.echo(f"{'yes' if admitted else 'no':4} {name:52} {requests}")
    if rules and refused:
        raise click.exceptions.Exit(1)


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


def _in_force(source: ConfigurationSource) -> Iterator[Rule]:
    conf = source.load()
    deploy.check_policy(conf)
    enforcer = create_enforcer(conf)
    enforcer.load_rules()
    requests = {
        name: tuple(f"{method} {path}" for method, path in guarded)
        for name, _, _, guarded in ROUTE_RULES
    }
    for name, default in enforcer.registered_rules.items():
        found = str(enforcer.rules.get(name, default.check))
        yield Rule(name, found, name not in enforcer.file_rules, requests.get(name, ()))


def _admits(
    in_force: Policy, name: str, caller: RequestContext, target: dict[str, str | None] | None
) -> bool:
    try:
        in_force.check(name, caller, target)
    except Refused:
        return False
    return True
