# SPDX-License-Identifier: Apache-2.0
"""The work of `berth user`: a file of users is changed, or shown."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from berth.api.auth.htpasswd import (
    PASSWORD_BYTES_MAX,
    User,
    hash_password,
    parse_users,
    with_user,
    without_user,
)
from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import read_credentials
from berth.cli import credential_file
from berth.cli.columns import print_columns
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.identities import check_name, check_roles
from berth.cli.options import ConfigurationSource
from berth.config import read_user_file

Users = Mapping[str, User]


def add_user(
    source: ConfigurationSource,
    name: str,
    *,
    project: str | None,
    roles: Sequence[str],
    password_stdin: bool,
    file: Path | None,
) -> None:
    """Ask for a password and put a new user into the file.

    Raises:
        CommandFailed: there is such a user, or a name, role or password cannot be meant (USAGE).
        ConfigurationError: the file cannot be read or understood.
    """
    conf = source.load()
    path = file or read_user_file(conf)
    check_name(name)
    check_name(project or name)
    check_roles(conf, roles)
    # Once before anybody types, and once more when nobody else can change the file.
    if path.exists():
        _refuse_double(read_credentials(path, parse_users), name, path)
    password_hash = hash_password(_ask_password(name, from_stdin=password_stdin))
    added = User(Identity(name, project or name, tuple(roles)), password_hash)

    def edit(text: str, users: Users) -> str:
        _refuse_double(users, name, path)
        return with_user(text, added)

    credential_file.change(path, parse_users, edit, may_create=True)


def print_users(source: ConfigurationSource, *, as_json: bool, file: Path | None) -> None:
    """Print who may log in.

    Raises:
        ConfigurationError: the file cannot be read or understood.
    """
    users = read_credentials(file or read_user_file(source.load()), parse_users)
    found = [one.identity for one in users.values()]
    if as_json:
        shown = [
            {"name": one.user, "project": one.project, "roles": list(one.roles)} for one in found
        ]
        click.echo(json.dumps(shown, indent=2))
    else:
        print_columns(
            ("name", "project", "roles"),
            [(one.user, one.project, ",".join(one.roles)) for one in found],
        )


def change_user(
    source: ConfigurationSource,
    name: str,
    *,
    project: str | None,
    roles: Sequence[str],
    no_roles: bool,
    file: Path | None,
) -> None:
    """Give a user of the file another project, or other roles.

    Raises:
        CommandFailed: there is no such user, or nothing to change (USAGE).
        ConfigurationError: the file cannot be read or understood.
    """
    if not (project or roles or no_roles) or (roles and no_roles):
        raise CommandFailed("say --project, and either --role or --no-roles", ExitCode.USAGE)
    conf = source.load()
    if project is not None:
        check_name(project)
    check_roles(conf, roles)

    def changed(found: User) -> User:
        old = found.identity
        identity = Identity(
            old.user,
            project or old.project,
            tuple(roles) if roles or no_roles else old.roles,
        )
        return replace(found, identity=identity)

    _change_user(file or read_user_file(conf), name, changed)


def change_password(
    source: ConfigurationSource, name: str, *, password_stdin: bool, file: Path | None
) -> None:
    """Ask for a password and give it to a user of the file.

    Raises:
        CommandFailed: there is no such user, or the password cannot be one (USAGE).
        ConfigurationError: the file cannot be read or understood.
    """
    path = file or read_user_file(source.load())
    _find(read_credentials(path, parse_users), name, path)
    password_hash = hash_password(_ask_password(name, from_stdin=password_stdin))
    _change_user(path, name, lambda found: replace(found, password_hash=password_hash))


def remove_user(source: ConfigurationSource, name: str, *, file: Path | None) -> None:
    """Take a user out of the file.

    Raises:
        CommandFailed: there is no such user (USAGE).
        ConfigurationError: the file cannot be read or understood.
    """
    path = file or read_user_file(source.load())

    def edit(text: str, users: Users) -> str:
        _find(users, name, path)
        return without_user(text, name)

    credential_file.change(path, parse_users, edit, may_create=False)


def _change_user(path: Path, name: str, changed: Callable[[User], User]) -> None:
    def edit(text: str, users: Users) -> str:
        return with_user(text, changed(_find(users, name, path)))

    credential_file.change(path, parse_users, edit, may_create=False)


def _find(users: Users, name: str, path: Path) -> User:
    if name not in users:
        raise CommandFailed(
            f"there is no user {name} in {path}: `berth user list` names them all", ExitCode.USAGE
        )
    return users[name]


def _refuse_double(users: Users, name: str, path: Path) -> None:
    if name in users:
        raise CommandFailed(
            f"there is a user {name} in {path} already: `berth user set` changes project and "
            f"roles, `berth user passwd` the password",
            ExitCode.USAGE,
        )


def _ask_password(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        password = _read_password()
    elif sys.stdin.isatty():
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True)
    else:
        raise CommandFailed(
            "there is no terminal to ask for the password: send it with --password-stdin",
            ExitCode.USAGE,
        )
    if not 1 <= len(password.encode()) <= PASSWORD_BYTES_MAX or "\0" in password:
        raise CommandFailed(
            f"a password has 1 to {PASSWORD_BYTES_MAX} bytes, and no NUL among them",
            ExitCode.USAGE,
        )
    return password


def _read_password() -> str:
    try:
        password = sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except UnicodeError:
        raise CommandFailed("the password is not UTF-8", ExitCode.USAGE) from None
    return password
