# SPDX-License-Identifier: Apache-2.0
"""The work of `berth token`: change or print the token file."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from berth.cli import credential_file
from berth.cli.columns import print_columns
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.identities import Granted, check_name, check_some_role
from berth.cli.options import ConfigurationSource
from berth.cli.output import say, say_json
from berth.config import read_token_file
from berth.edge.auth.token_file import Token, issue, parse_tokens, render_tokens
from berth.edge.auth.watched_file import read_credentials

_NEVER: Final = "never"
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def create_token(
    source: ConfigurationSource,
    *,
    user: str,
    granted: Granted,
    expires: str,
    file: Path | None,
) -> None:
    """Add a new token to the file and print it.

    Raises:
        CommandFailed: a name, a role or the expiry is invalid (USAGE), or the file cannot be
            written.
        ConfigurationError: the file cannot be read or parsed.
    """
    conf = source.load()
    now = datetime.now(UTC).replace(microsecond=0)
    end = parse_expires(expires, now)
    check_name(user)
    check_some_role(conf, granted.roles)
    granted.check(conf)
    identity = granted.identity(user)
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
    path = file or read_token_file(source.load())
    tokens = list(_described(read_credentials(path, parse_tokens).values(), datetime.now(UTC)))
    if as_json:
        say_json(tokens)
    else:
        heads = ["id", "user", "project", "roles", "host", "created", "expires", "state"]
        if not any(token["host"] for token in tokens):
            heads.remove("host")
        print_columns(heads, [[_cell(head, token[head]) for head in heads] for token in tokens])


def revoke_token(source: ConfigurationSource, token_id: str, *, file: Path | None) -> None:
    """Remove a token from the file.

    Raises:
        CommandFailed: there is no such token (USAGE), or the file cannot be written.
        ConfigurationError: the file cannot be read or parsed.
    """
    path = file or read_token_file(source.load())

    def edit(text: str, tokens: Mapping[str, Token]) -> str:
        if token_id not in tokens:
            raise CommandFailed(
                f"there is no token with that ID in {path}; `berth token list` prints all tokens",
                ExitCode.USAGE,
            )
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
        raise CommandFailed(
            f"--expires {text} is not a time: write 12h, 90d, 4w, {_NEVER}, or a date such as "
            f"2027-01-31",
            ExitCode.USAGE,
        ) from None
    if end <= now:
        raise CommandFailed(f"--expires {text} is in the past", ExitCode.USAGE)
    return end


def _described(tokens: Iterable[Token], now: datetime) -> Iterable[dict[str, Any]]:
    for token in tokens:
        yield {
            "id": token.id,
            "user": token.user,
            "project": token.project,
            "roles": list(token.roles),
            "host": token.host,
            "created": token.created.isoformat(),
            "expires": token.expires.isoformat() if token.expires else None,
            "state": "expired" if token.is_expired(now) else "valid",
        }


def _cell(head: str, value: str | list[str] | None) -> str:
    if value is None:
        return _NEVER if head == "expires" else ""
    return ",".join(value) if isinstance(value, list) else value
