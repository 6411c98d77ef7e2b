# SPDX-License-Identifier: Apache-2.0
"""`berth policy`: who may do what, as the policy files have it."""

import json
from collections.abc import Sequence
from typing import Final

import click

from berth.cli.completion import rule_names
from berth.cli.options import ConfigurationSource, configured

#: The project or user of a caller, where the command line does not say.
_SOMEBODY: Final = "somebody"


@click.group()
def policy() -> None:
    """Show and test the policy."""


@policy.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of rules.")
@configured
def list_rules(source: ConfigurationSource, as_json: bool) -> None:
    """Print every rule in force: its check, the requests that it guards, and whether a file
    overrides it."""
    # Here, so that `--help` need not wait for it.
    from berth.cli.policy_rules import rules_in_force

    rules = list(rules_in_force(source.load()))
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
    help="Print a file for policy.d instead, which lets the role auditor read everything and "
    "change nothing.",
)
def sample(auditor: bool) -> None:
    """Print a policy file with every rule and its default, commented out."""
    # Here, so that `--help` need not wait for it.
    from berth.api.policy import print_sample
    from berth.cli.policy_rules import auditor_file

    if auditor:
        click.echo(auditor_file(), nl=False)
    else:
        print_sample()


@policy.command()
@click.argument("rules", metavar="[RULE]...", nargs=-1, shell_complete=rule_names)
@click.option("--role", "roles", multiple=True, help="A role of the caller; may be repeated.")
@click.option("--project", default=_SOMEBODY, help="The project of the caller's token.")
@click.option("--user", default=_SOMEBODY, help="The caller's user id.")
@click.option("--system", is_flag=True, help="The token's scope is the system, not a project.")
@click.option(
    "--target-project",
    help="The project whose usages the caller asks for.  [default: the caller's]",
)
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
    """Print what a caller with these roles may do, by all rules or by the RULEs named.

    Exit codes: 1 if you name RULEs and one of them refuses, or if a policy file sets a rule that
    does not exist; otherwise 0.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.policy_rules import Caller, print_admitted

    caller = Caller(roles, project, user, is_of_system=system, target_project=target_project)
    if not print_admitted(source.load(), rules, caller) and rules:
        raise click.exceptions.Exit(1)
