# SPDX-License-Identifier: Apache-2.0
"""The work of `berth user` and `berth token`: change or print the files of users and of tokens."""

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from oslo_config import cfg

from berth.cli import credential_file
from berth.cli.columns import print_columns
from berth.cli.failure import Misused
from berth.cli.options import Granted
from berth.cli.output import ask_password, say, say_json
from berth.cli.sources import ConfigurationSource
from berth.config import read_token_file, read_user_file
from berth.edge.auth.htpasswd import (
    PASSWORD_BYTES_MAX,
    User,
    fault_of_name,
    fault_of_role,
    hash_password,
    parse_users,
    with_user,
    without_user,
)
from berth.edge.auth.identity import AGENT, Identity, fault_of_host
from berth.edge.auth.tokens import Token, issue, parse_tokens, render_tokens
from berth.edge.auth.watched_file import read_credentials

Users = Mapping[str, User]
Entry = TypeVar("Entry")


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
    check_granted(granted, conf)
    identity = identity_of(name, granted)
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
    described = [{"name": user.name, **_described(user.identity)} for user in users.values()]
    _print(("name", "project", "roles", "host"), described, as_json=as_json)


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
        raise Misused("nothing to change: give --project, --role, --host or --no-roles")
    if granted.roles and no_roles:
        raise Misused("give either --role or --no-roles, not both")
    conf = source.load()
    check_granted(granted, conf)
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
    _find_user(read_credentials(path, parse_users), name, path)
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
        _find_user(users, name, path)
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
        return with_user(text, changed(_find_user(users, name, path)))

    credential_file.change(path, parse_users, edit, may_create=False)


def _find_user(users: Users, name: str, path: Path) -> User:
    return _find(users, name, f"user {name} in {path}", "user")


def _refuse_duplicate(users: Users, name: str, path: Path) -> None:
    if name in users:
        raise Misused(
            f"the user {name} already exists in {path}: use `berth user set` to change project or "
            f"roles, `berth user passwd` to change the password"
        )


def _ask_password(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        password = _read_password()
    elif sys.stdin.isatty():
        password = ask_password(f"Password for {name}")
    else:
        raise Misused("there is no terminal to ask for the password: use --password-stdin")
    if not 1 <= len(password.encode()) <= PASSWORD_BYTES_MAX or "\0" in password:
        raise Misused(f"the password must have 1 to {PASSWORD_BYTES_MAX} bytes, and no NUL byte")
    return password


def _read_password() -> str:
    try:
        password = sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except UnicodeError:
        raise Misused("the password is not UTF-8") from None
    return password


_NEVER: Final = "never"
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def create_token(
    source: ConfigurationSource,
    *,
    user: str | None,
    granted: Granted,
    expires: str,
    file: Path | None,
) -> None:
    """Add a new token to the file and print it.

    Args:
        user: the owner; None: the host.

    Raises:
        UsageError: there is neither.
        CommandFailed: a name, a role or the expiry is invalid (USAGE), or the file cannot be
            written.
        ConfigurationError: the file cannot be read or parsed.
    """
    owner = granted.host if user is None else user
    if owner is None:
        raise click.UsageError("Missing option '--user'.")
    conf = source.load()
    now = datetime.now(UTC).replace(microsecond=0)
    end = parse_expires(expires, now)
    check_name(owner)
    check_some_role(conf, granted.roles)
    check_granted(granted, conf)
    identity = identity_of(owner, granted)
    secret = ""

    def edit(text: str, tokens: Mapping[str, Token]) -> str:
        nonlocal secret
        secret, made = issue(identity, created=now, expires=end, taken=tokens)
        return render_tokens([*tokens.values(), made])

    credential_file.change(file or read_token_file(conf), parse_tokens, edit, may_create=True)
    say(secret)


def print_tokens(source: ConfigurationSource, *, as_json: bool, file: Path | None) -> None:
    """Print the tokens.

    Raises:
        ConfigurationError: the file cannot be read or parsed.
    """
    tokens = read_credentials(file or read_token_file(source.load()), parse_tokens)
    now = datetime.now(UTC)
    described = [
        {
            "id": token.id,
            "user": token.user,
            **_described(token.identity),
            "created": token.created.isoformat(),
            "expires": token.expires.isoformat() if token.expires else None,
            "state": "expired" if token.is_expired(now) else "valid",
        }
        for token in tokens.values()
    ]
    heads = ("id", "user", "project", "roles", "host", "created", "expires", "state")
    _print(heads, described, as_json=as_json)


def revoke_token(source: ConfigurationSource, token_id: str, *, file: Path | None) -> None:
    """Remove a token from the file.

    Raises:
        CommandFailed: there is no such token (USAGE), or the file cannot be written.
        ConfigurationError: the file cannot be read or parsed.
    """
    path = file or read_token_file(source.load())

    def edit(text: str, tokens: Mapping[str, Token]) -> str:
        _find(tokens, token_id, f"token with that ID in {path}", "token")
        return render_tokens(token for token in tokens.values() if token.id != token_id)

    credential_file.change(path, parse_tokens, edit, may_create=False)


def parse_expires(text: str, now: datetime) -> datetime | None:
    """Parse the expiry of a token; None for never.

    Raises:
        CommandFailed: it is not a time, or is in the past (USAGE).
    """
    if text == _NEVER:
        return None
    try:
        if after := re.fullmatch(r"(\d+)([hdw])", text):
            end = now + timedelta(**{_UNITS[after[2]]: int(after[1])})
        else:
            end = datetime.fromisoformat(text)
            end = end.replace(tzinfo=UTC) if end.tzinfo is None else end.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Misused(
            f"--expires {text} is not a time: write 12h, 90d, 4w, {_NEVER}, or a date such as "
            f"2027-01-31"
        ) from None
    if end <= now:
        raise Misused(f"--expires {text} is in the past")
    return end


# --- Users and tokens -----------------------------------------------------------------------------


def _find(entries: Mapping[str, Entry], key: str, subject: str, noun: str) -> Entry:
    """An entry of a file.

    Raises:
        CommandFailed: there is none (USAGE).
    """
    if key not in entries:
        raise Misused(f"there is no {subject}; `berth {noun} list` prints all {noun}s")
    return entries[key]


def _described(identity: Identity) -> dict[str, Any]:
    return {"project": identity.project, "roles": list(identity.roles), "host": identity.host}


def _print(heads: Sequence[str], entries: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Print entries as JSON or in columns, of which that of hosts may be left out."""
    if as_json:
        say_json(entries)
        return
    are_bound = any(entry["host"] for entry in entries)
    shown = [head for head in heads if head != "host" or are_bound]
    print_columns(shown, [[_cell(head, entry[head]) for head in shown] for entry in entries])


def _cell(head: str, value: str | list[str] | None) -> str:
    if value is None:
        return _NEVER if head == "expires" else ""
    return ",".join(value) if isinstance(value, list) else value


# --- Names, roles and hosts -----------------------------------------------------------------------


def check_granted(granted: Granted, conf: cfg.ConfigOpts) -> None:
    """Refuse an invalid name or role.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    if granted.project is not None:
        check_name(granted.project)
    _check_roles(conf, granted.roles)


def identity_of(user: str, granted: Granted) -> Identity:
    """The identity of a new user or token.

    Raises:
        CommandFailed: it cannot have this host (USAGE).
    """
    check_host(granted.host, granted.roles)
    return Identity(user, granted.project or user, tuple(granted.roles), granted.host)


def check_name(name: str) -> None:
    """Refuse an invalid name of a user or a project.

    Raises:
        CommandFailed: USAGE.
    """
    if fault := fault_of_name(name):
        raise Misused(f"{shlex.quote(name)} is not a valid name: {fault}")


def check_host(host: str | None, roles: Sequence[str]) -> None:
    """Refuse an agent without a host, and a host for any other role.

    Raises:
        CommandFailed: USAGE.
    """
    if host is not None:
        check_name(host)
        if fault := fault_of_host(host, roles):
            raise Misused(f"--host: {fault}")
    elif AGENT in map(str.lower, roles):
        raise Misused(
            f"the role {AGENT} is for one host: add --host with the name of its root provider"
        )


def check_some_role(conf: cfg.ConfigOpts, roles: Collection[str]) -> None:
    """Refuse a token without a role, with the roles that there are.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    # Deferred: listing and revoking do not need it.
    from berth.api.policy import check_policy, named_roles

    if not roles:
        check_policy(conf)
        raise Misused(
            "a token without a role may do nothing: add --role; the policy's roles are "
            f"{', '.join(sorted(named_roles(conf)))}"
        )


def _check_roles(conf: cfg.ConfigOpts, roles: Iterable[str]) -> None:
    """Refuse invalid roles, and warn about roles that no policy rule grants anything.

    Raises:
        CommandFailed: USAGE.
        ConfigurationError: a policy file cannot be read.
    """
    # Deferred: listing and revoking do not need it.
    from berth.api.policy import check_policy, named_roles

    check_policy(conf)
    granted = named_roles(conf)
    for role in roles:
        if fault := fault_of_role(role):
            raise Misused(f"{shlex.quote(role)} is not a valid role: {fault}")
        if role.lower() not in granted:
            say(
                f"berth: no policy rule grants the role {role} anything; the policy's roles are "
                f"{', '.join(sorted(granted))}",
                err=True,
            )
