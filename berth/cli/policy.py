# SPDX-License-Identifier: Apache-2.0
"""`berth policy`: show and test who may do what."""

from collections.abc import Sequence
from typing import Final

import click

from berth.cli.completion import rule_names
from berth.cli.options import ConfigurationSource, configured
from berth.cli.output import say, say_json

#: The project or user of a caller, unless the command line names one.
_SOMEBODY: Final = "somebody"


@click.group()
def policy() -> None:
    """Show and test the policy."""


@policy.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@configured
def list_rules(source: ConfigurationSource, as_json: bool) -> None:
    """Print every rule and the requests that it guards.

    Also prints each rule's check, and whether a policy file overrides it.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.policy_rules import rules_in_force

    rules = list(rules_in_force(source.load()))
    if as_json:
        say_json([rule._asdict() for rule in rules])
        return
    for rule in rules:
        say(f"{rule.name}: {rule.check}{'' if rule.is_default else '  (overridden)'}")
        for request in rule.requests:
            say(f"    {request}")


@policy.command()
@click.option(
    "--auditor",
    is_flag=True,
    help="Print a file for policy.d instead that gives the role auditor read-only access.",
)
@click.option(
    "--members",
    is_flag=True,
    help="Print a file for policy.d instead that lets the role member place for its own project, "
    "and see and release what it holds.",
)
def sample(auditor: bool, members: bool) -> None:
    """Print a policy file with every rule and its default, commented out."""
    # Deferred: `--help` does not need it.
    from berth.api.policy import print_sample
    from berth.cli.policy_rules import auditor_file, members_file

    if auditor and members:
        raise click.UsageError("--auditor and --members are two files: print one after the other")
    if auditor:
        say(*auditor_file().splitlines())
    elif members:
        say(*members_file().splitlines())
    else:
        print_sample()


@policy.command()
@click.argument("rules", metavar="[RULE]...", nargs=-1, shell_complete=rule_names)
@click.option("--role", "roles", multiple=True, help="A role of the caller; may be repeated.")
@click.option("--project", default=_SOMEBODY, help="The project of the caller's token.")
@click.option("--user", default=_SOMEBODY, help="The caller's user id.")
@click.option(
    "--system", is_flag=True, help="The caller's token is scoped to the system, not to a project."
)
@click.option(
    "--target-project",
    help="The project whose usages the caller requests.  [default: the caller's]",
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
    """Print what a caller with these roles may do.

    Checks all rules, or the RULEs that you name.

    Exit codes: 0 all RULEs that you named allow it; 1 one of them refuses, or a policy file sets an
    unknown rule; 2 there is no such RULE.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.policy_rules import Caller, print_admitted

    caller = Caller(roles, project, user, is_of_system=system, target_project=target_project)
    if not print_admitted(source.load(), rules, caller) and rules:
        raise click.exceptions.Exit(1)
