# SPDX-License-Identifier: Apache-2.0
"""Names, projects and roles in `berth user` and `berth token`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.output import say

if TYPE_CHECKING:
    from oslo_config import cfg

    from berth.edge.auth.identity import Identity


class Granted(NamedTuple):
    """The values of `--project`, `--role` and `--host`."""

    project: str | None
    roles: Sequence[str]
    host: str | None

    def check(self, conf: cfg.ConfigOpts) -> None:
        """Refuse an invalid name or role.

        Raises:
            CommandFailed: USAGE.
            ConfigurationError: a policy file cannot be read.
        """
        if self.project is not None:
            check_name(self.project)
        _check_roles(conf, self.roles)

    def identity(self, user: str) -> Identity:
        """The identity of a new user or token.

        Raises:
            CommandFailed: it cannot have this host (USAGE).
        """
        # Deferred: `--help` does not need it.
        from berth.edge.auth.identity import Identity

        check_host(self.host, self.roles)
        return Identity(user, self.project or user, tuple(self.roles), self.host)


def identity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--project`, `--role` and `--host`, and pass their values as `granted`."""

    @wraps(command)
    def pass_granted(
        *arguments: object,
        project: str | None,
        roles: Sequence[str],
        host: str | None,
        **options: object,
    ) -> None:
        command(*arguments, granted=Granted(project, roles, host), **options)

    project = click.option(
        "--project", metavar="PROJECT", help="The project.  [default: the user's name]"
    )
    role = click.option(
        "--role", "roles", multiple=True, metavar="ROLE", help="A role; may be repeated."
    )
    host = click.option(
        "--host",
        metavar="HOST",
        help="Confine the role agent to the tree of one host: the name or UUID of its root "
        "provider, which need not exist yet.",
    )
    return project(role(host(pass_granted)))


def check_name(name: str) -> None:
    """Refuse an invalid name of a user or a project.

    Raises:
        CommandFailed: USAGE.
    """
    # Deferred: `--help` does not need it.
    from berth.edge.auth.htpasswd import fault_of_name

    if fault := fault_of_name(name):
        raise CommandFailed(f"{shlex.quote(name)} is not a valid name: {fault}", ExitCode.USAGE)


def check_host(host: str | None, roles: Sequence[str]) -> None:
    """Refuse an agent without a host, and a host for any other role.

    Raises:
        CommandFailed: USAGE.
    """
    # Deferred: `--help` does not need it.
    from berth.edge.auth.identity import fault_of_host
    from berth.edge.context import AGENT

    if host is not None:
        check_name(host)
        if fault := fault_of_host(host, roles):
            raise CommandFailed(f"--host: {fault}", ExitCode.USAGE)
    elif AGENT in map(str.lower, roles):
        raise CommandFailed(
            f"the role {AGENT} is for one host: add --host with the name of its root provider",
            ExitCode.USAGE,
        )


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


def _check_roles(conf: cfg.ConfigOpts, roles: Iterable[str]) -> None:
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
            say(
                f"berth: no policy rule grants the role {role} anything; the policy's roles are "
                f"{', '.join(sorted(granted))}",
                err=True,
            )
