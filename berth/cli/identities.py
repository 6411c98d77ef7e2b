# SPDX-License-Identifier: Apache-2.0
"""Names, projects and roles in `berth user` and `berth token`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

if TYPE_CHECKING:
    from oslo_config import cfg


def identity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--project` and `--role`."""
    project = click.option(
        "--project", metavar="PROJECT", help="The project.  [default: the user's name]"
    )
    role = click.option(
        "--role", "roles", multiple=True, metavar="ROLE", help="A role; may be repeated."
    )
    return project(role(command))


def check_name(name: str) -> None:
    """Refuse an invalid name of a user or a project.

    Raises:
        CommandFailed: USAGE.
    """
    # Deferred: `--help` does not need it.
    from berth.edge.auth.htpasswd import fault_of_name

    if fault := fault_of_name(name):
        raise CommandFailed(f"{shlex.quote(name)} is not a valid name: {fault}", ExitCode.USAGE)


def check_some_role(conf: cfg.ConfigOpts, roles: Collection[str]) -> None:
    """Refuse a token without a role, with the roles that there are.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    # Deferred: `--help` does not need it.
    from berth.api.policy import check_policy, named_roles

    if not roles:
        check_policy(conf)
        raise CommandFailed(
            "a token without a role may do nothing: add --role; the policy's roles are "
            f"{', '.join(sorted(named_roles(conf)))}",
            ExitCode.USAGE,
        )


def check_roles(conf: cfg.ConfigOpts, roles: Iterable[str]) -> None:
    """Refuse invalid roles, and warn about roles that no policy rule grants anything.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    # Deferred: `--help` does not need it.
    from berth.api.policy import check_policy, named_roles
    from berth.edge.auth.htpasswd import fault_of_role

    check_policy(conf)
    granted = named_roles(conf)
    for role in roles:
        if fault := fault_of_role(role):
            raise CommandFailed(f"{shlex.quote(role)} is not a valid role: {fault}", ExitCode.USAGE)
        if role.lower() not in granted:
            click.echo(
                f"berth: no policy rule grants the role {role} anything; the policy's roles are "
                f"{', '.join(sorted(granted))}",
                err=True,
            )
