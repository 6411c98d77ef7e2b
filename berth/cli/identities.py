# SPDX-License-Identifier: Apache-2.0
"""Whom `berth user` and `berth token` speak of: names, projects and roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

if TYPE_CHECKING:
    from oslo_config import cfg


def identity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--project` and `--role`."""
    project = click.option("--project", metavar="P", help="The project.  [default: the name]")
    role = click.option(
        "--role", "roles", multiple=True, metavar="R", help="A role; may be repeated."
    )
    return project(role(command))


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a user or of a project.

    Raises:
        CommandFailed: USAGE.
    """
    # Here, so that `--help` need not wait for it.
    from berth.api.auth.htpasswd import fault_of_name

    if fault := fault_of_name(name):
        raise CommandFailed(f"{name!r} cannot be a name: {fault}", ExitCode.USAGE)


def check_roles(conf: cfg.ConfigOpts, roles: Iterable[str]) -> None:
    """Refuse what cannot be a role, and say of others that no rule asks for them.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    # Here, so that `--help` need not wait for it.
    from berth.api.auth.htpasswd import fault_of_role
    from berth.api.policy import check_policy, named_roles

    check_policy(conf)
    known = named_roles(conf)
    for role in roles:
        if fault := fault_of_role(role):
            raise CommandFailed(f"{role!r} cannot be a role: {fault}", ExitCode.USAGE)
        if role.lower() not in known:
            click.echo(
                f"berth: no rule of the policy asks for the role {role}; those that it knows are "
                f"{', '.join(sorted(known))}",
                err=True,
            )
