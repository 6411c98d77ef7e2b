# SPDX-License-Identifier: Apache-2.0
"""`berth user`: manage the users of `[api]auth_strategy = http_basic`."""

from pathlib import Path

import click

from berth.cli.identities import Granted, identity_options
from berth.cli.options import ConfigurationSource, configured

_file = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The user file.  [default: [api]http_basic_auth_user_file]",
)
_password_stdin = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from the first line of standard input instead of asking for it.",
)


@click.group()
def user() -> None:
    """Manage users (auth_strategy = http_basic)."""


@user.command()
@click.argument("name")
@identity_options
@_password_stdin
@_file
@configured
def add(
    source: ConfigurationSource,
    name: str,
    granted: Granted,
    password_stdin: bool,
    file: Path | None,
) -> None:
    """Add the user NAME; asks for the password.

    A running service accepts the user within a second.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.user_file_edits import add_user

    add_user(source, name, granted=granted, password_stdin=password_stdin, file=file)


@user.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_file
@configured
def list_users(source: ConfigurationSource, as_json: bool, file: Path | None) -> None:
    """Print the users with their projects and roles."""
    # Deferred: `--help` does not need it.
    from berth.cli.user_file_edits import print_users

    print_users(source, as_json=as_json, file=file)


@user.command(name="set")
@click.argument("name")
@identity_options
@click.option("--no-roles", is_flag=True, help="Remove all roles.")
@_file
@configured
def set_user(
    source: ConfigurationSource,
    name: str,
    granted: Granted,
    no_roles: bool,
    file: Path | None,
) -> None:
    """Change the project or the host of the user NAME, or replace the user's roles.

    New roles without --host end the confinement to a host.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.user_file_edits import change_user

    change_user(source, name, granted=granted, no_roles=no_roles, file=file)


@user.command()
@click.argument("name")
@_password_stdin
@_file
@configured
def passwd(source: ConfigurationSource, name: str, password_stdin: bool, file: Path | None) -> None:
    """Change the password of the user NAME; asks for the new one."""
    # Deferred: `--help` does not need it.
    from berth.cli.user_file_edits import change_password

    change_password(source, name, password_stdin=password_stdin, file=file)


@user.command()
@click.argument("name")
@_file
@configured
def remove(source: ConfigurationSource, name: str, file: Path | None) -> None:
    """Remove the user NAME."""
    # Deferred: `--help` does not need it.
    from berth.cli.user_file_edits import remove_user

    remove_user(source, name, file=file)
