# SPDX-License-Identifier: Apache-2.0
"""`berth token`: tokens for callers, with `[api]auth_strategy = token`."""

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
from berth.cli.identities import check_name, check_roles, identity_options
from berth.cli.options import ConfigurationSource, configured
from berth.config import read_token_file

_NEVER: Final = "never"
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}

_file = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file of tokens.  [default: that of the configuration]",
)


@click.group()
def token() -> None:
    """Make and revoke tokens for callers (auth_strategy = token)."""


@token.command()
@click.option("--user", required=True, metavar="U", help="Whose token it is.")
@identity_options
@click.option(
    "--expires",
    default="90d",
    show_default=True,
    metavar="WHEN",
    help="After so many hours, days or weeks (12h, 90d, 4w), at a date (2027-01-31, or "
    "2027-01-31T12:00:00Z; UTC), or never.",
)
@_file
@configured
def create(
    source: ConfigurationSource,
    user: str,
    project: str | None,
    roles: Sequence[str],
    expires: str,
    file: Path | None,
) -> None:
    """Make a token and print it, this once: only its hash is kept.

    It counts within a second where the service runs.
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


@token.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of tokens.")
@_file
@configured
def list_tokens(source: ConfigurationSource, as_json: bool, file: Path | None) -> None:
    """Print which tokens there are, and whose; the tokens themselves are not kept."""
    path = file or read_token_file(source.load())
    shown = list(_shown(read_credentials(path, parse_tokens).values(), datetime.now(UTC)))
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    else:
        heads = ("id", "user", "project", "roles", "created", "expires", "state")
        print_columns(heads, [[_cell(one[head]) for head in heads] for one in shown])


@token.command()
@click.argument("token_id", metavar="ID")
@_file
@configured
def revoke(source: ConfigurationSource, token_id: str, file: Path | None) -> None:
    """Revoke the token ID, the part between the underscores: who brings it is not let in any
    more."""
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
