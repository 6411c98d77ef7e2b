# SPDX-License-Identifier: Apache-2.0
"""The work of `berth user`: change or print the user file."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from berth.cli import credential_file
from berth.cli.columns import print_columns
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.identities import Granted, check_host, check_name
from berth.cli.options import ConfigurationSource
from berth.cli.output import ask_password, say_json
from berth.config import read_user_file
from berth.edge.auth.htpasswd import (
    PASSWORD_BYTES_MAX,
    User,
    hash_password,
    parse_users,
    with_user,
    without_user,
)
from berth.edge.auth.identity import Identity
from berth.edge.auth.watched_file import read_credentials

Users = Mapping[str, User]


def add_user(
    source: ConfigurationSource,
    name: str,
    *,
    granted: Granted,
    password_stdin: bool,
    file: Path | None,
) -> None:
    """Ask for a password and add a new user to the file.

    Raises:
        CommandFailed: the user exists, or a name, role or password is invalid (USAGE).
        ConfigurationError: the file cannot be read or parsed.
    """
    conf = source.load()
    path = file or read_user_file(conf)
    check_name(name)
    granted.check(conf)
    identity = granted.identity(name)
    # Checked before the user types, and again when no other command can change the file.
    if path.exists():
        _refuse_duplicate(read_credentials(path, parse_users), name, path)
    password_hash = hash_password(_ask_password(name, from_stdin=password_stdin))
    added = User(identity, password_hash)

    def edit(text: str, users: Users) -> str:
        _refuse_duplicate(users, name, path)
        return with_user(text, added)

    credential_file.change(path, parse_users, edit, may_create=True)


def print_users(source: ConfigurationSource, *, as_json: bool, file: Path | None) -> None:
    """Print the users.

    Raises:
        ConfigurationError: the file cannot be read or parsed.
    """
    users = read_credentials(file or read_user_file(source.load()), parse_users)
    identities = [user.identity for user in users.values()]
    if as_json:
        described = [
            {
                "name": identity.user,
                "project": identity.project,
                "roles": list(identity.roles),
                "host": identity.host,
            }
            for identity in identities
        ]
        say_json(described)
    else:
        rows = [
            (identity.user, identity.project, ",".join(identity.roles), identity.host or "")
            for identity in identities
        ]
        width = 4 if any(identity.host for identity in identities) else 3
        heads = ("name", "project", "roles", "host")
        print_columns(heads[:width], [row[:width] for row in rows])


def change_user(
    source: ConfigurationSource,
    name: str,
    *,
    granted: Granted,
    no_roles: bool,
    file: Path | None,
) -> None:
    """Change the project or the roles of a user in the file.

    Raises:
        CommandFailed: there is no such user, nothing to change, or an agent without a host (USAGE).
        ConfigurationError: the file cannot be read or parsed.
    """
    if not (any(granted) or no_roles):
        raise CommandFailed(
            "nothing to change: give --project, --role, --host or --no-roles", ExitCode.USAGE
        )
    if granted.roles and no_roles:
        raise CommandFailed("give either --role or --no-roles, not both", ExitCode.USAGE)
    conf = source.load()
    granted.check(conf)
    _change_user(
        file or read_user_file(conf),
        name,
        lambda user: replace(user, identity=_changed(user.identity, granted, no_roles=no_roles)),
    )


def change_password(
    source: ConfigurationSource, name: str, *, password_stdin: bool, file: Path | None
) -> None:
    """Ask for a password and set it for a user in the file.

    Raises:
        CommandFailed: there is no such user, or the password is invalid (USAGE).
        ConfigurationError: the file cannot be read or parsed.
    """
    path = file or read_user_file(source.load())
    _find(read_credentials(path, parse_users), name, path)
    password_hash = hash_password(_ask_password(name, from_stdin=password_stdin))
    _change_user(path, name, lambda user: replace(user, password_hash=password_hash))


def remove_user(source: ConfigurationSource, name: str, *, file: Path | None) -> None:
    """Remove a user from the file.

    Raises:
        CommandFailed: there is no such user (USAGE).
        ConfigurationError: the file cannot be read or parsed.
    """
    path = file or read_user_file(source.load())

    def edit(text: str, users: Users) -> str:
        _find(users, name, path)
        return without_user(text, name)

    credential_file.change(path, parse_users, edit, may_create=False)


def _changed(identity: Identity, granted: Granted, *, no_roles: bool) -> Identity:
    """The identity with the new project, and with the new roles or the new host."""
    project = granted.project or identity.project
    if not (granted.roles or granted.host or no_roles):
        return replace(identity, project=project)
    roles = granted.roles if granted.roles or no_roles else identity.roles
    check_host(granted.host, roles)
    return replace(identity, project=project, roles=tuple(roles), host=granted.host)


def _change_user(path: Path, name: str, changed: Callable[[User], User]) -> None:
    def edit(text: str, users: Users) -> str:
        return with_user(text, changed(_find(users, name, path)))

    credential_file.change(path, parse_users, edit, may_create=False)


def _find(users: Users, name: str, path: Path) -> User:
    if name not in users:
        raise CommandFailed(
            f"there is no user {name} in {path}; `berth user list` prints all users", ExitCode.USAGE
        )
    return users[name]


def _refuse_duplicate(users: Users, name: str, path: Path) -> None:
    if name in users:
        raise CommandFailed(
            f"the user {name} already exists in {path}: use `berth user set` to change project or "
            f"roles, `berth user passwd` to change the password",
            ExitCode.USAGE,
        )


def _ask_password(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        password = _read_password()
    elif sys.stdin.isatty():
        password = ask_password(f"Password for {name}")
    else:
        raise CommandFailed(
            "there is no terminal to ask for the password: use --password-stdin",
            ExitCode.USAGE,
        )
    if not 1 <= len(password.encode()) <= PASSWORD_BYTES_MAX or "\0" in password:
        raise CommandFailed(
            f"the password must have 1 to {PASSWORD_BYTES_MAX} bytes, and no NUL byte",
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
