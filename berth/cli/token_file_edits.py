# SPDX-License-Identifier: Apache-2.0
"""The work of `berth token`: a file of tokens is changed, or shown."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from berth.api.auth.identity import Identity
from berth.api.auth.token_file import Token, issue, parse_tokens, render_tokens
from berth.api.auth.watched_file import read_credentials
from berth.cli import credential_file
from berth.cli.columns import print_columns
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.identities import check_name, check_roles
from berth.cli.options import ConfigurationSource
from berth.config import read_token_file

_NEVER: Final = "never"
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def create_token(
    source: ConfigurationSource,
    *,
    user: str,
    project: str | None,
    roles: Sequence[str],
    expires: str,
    file: Path | None,
) -> None:
    """Put a new token into the file and print it.

    Raises:
        CommandFailed: a name, a role or the time cannot be meant (USAGE), or the file not written.
        ConfigurationError: the file cannot be read or understood.
    """
    conf = source.load()
    now = datetime.now(UTC).replace(microsecond=0)
    end = parse_expires(expires, now)
    check_name(user)
    check_name(project or user)
    if not roles:
        raise CommandFailed(
            "a token without a role is refused everything: give it one with --role, as in "
            "--role admin, --role service or --role reader",
            ExitCode.USAGE,
        )
    check_roles(conf, roles)
    identity = Identity(user, project or user, tuple(roles))
    secret = ""

    def edit(text: str, tokens: Mapping[str, Token]) -> str:
        nonlocal secret
        secret, made = issue(identity, created=now, expires=end, taken=tokens)
        return render_tokens([*tokens.values(), made])

    credential_file.change(file or read_token_file(conf), parse_tokens, edit, may_create=True)
    click.echo(secret)


def print_tokens(source: ConfigurationSource, *, as_json: bool, file: Path | None) -> None:
    """Print which tokens there are.

    Raises:
        ConfigurationError: the file cannot be read or understood.
    """
    path = file or read_token_file(source.load())
    shown = list(_shown(read_credentials(path, parse_tokens).values(), datetime.now(UTC)))
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    else:
        heads = ("id", "user", "project", "roles", "created", "expires", "state")
        print_columns(heads, [[_cell(one[head]) for head in heads] for one in shown])


def revoke_token(source: ConfigurationSource, token_id: str, *, file: Path | None) -> None:
    """Take a token out of the file.

    Raises:
        CommandFailed: there is none of this id (USAGE), or the file cannot be written.
        ConfigurationError: the file cannot be read or understood.
    """
    path = file or read_token_file(source.load())

    def edit(text: str, tokens: Mapping[str, Token]) -> str:
        if token_id not in tokens:
            raise CommandFailed(
                f"there is no token of that ID in {path}: `berth token list` names them all",
                ExitCode.USAGE,
            )
        return render_tokens(one for one in tokens.values() if one.id != token_id)

    credential_file.change(path, parse_tokens, edit, may_create=False)


def parse_expires(text: str, now: datetime) -> datetime | None:
    """When a token shall expire; None for never.

    Raises:
        CommandFailed: it is no such thing, or is past (USAGE).
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
        raise CommandFailed(
            f"--expires {text}: say 12h, 90d, 4w, {_NEVER}, or a date such as 2027-01-31",
            ExitCode.USAGE,
        ) from None
    if end <= now:
        raise CommandFailed(f"--expires {text}: this is past", ExitCode.USAGE)
    return end


def _shown(tokens: Iterable[Token], now: datetime) -> Iterable[dict[str, Any]]:
    for one in tokens:
        yield {
            "id": one.id,
            "user": one.user,
            "project": one.project,
            "roles": list(one.roles),
            "created": one.created.isoformat(),
            "expires": one.expires.isoformat() if one.expires else None,
            "state": "expired" if one.is_expired(now) else "valid",
        }


def _cell(value: str | list[str] | None) -> str:
    if value is None:
        return _NEVER
    return ",".join(value) if isinstance(value, list) else value
