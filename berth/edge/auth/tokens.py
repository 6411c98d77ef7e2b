# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = token`: callers send tokens made by `berth token create`.

`Authorization: Bearer T` (RFC 6750) and `X-Auth-Token: T`, which OpenStack's clients send, mean the
same. A valid token is accepted however many others fail: checking it takes a microsecond.

The file of tokens has one JSON object per line, with the SHA-256 of a token, never the token. A
token is `berth_<id>_<secret>`. The secret has 256 random bits and cannot be guessed, so the hash
needs neither a salt nor a high cost.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final
from wsgiref.types import WSGIEnvironment

import msgspec

from berth.edge.auth.file_based import Gatekeeper, unusable
from berth.edge.auth.identity import Identity, fault_of_host
from berth.edge.auth.watched_file import CredentialsUnusable, MalformedLine, WatchedFile

CHALLENGE: Final = "Bearer"

#: The id in the log of a text that is not a token.
_NO_ID: Final = "?"

_ID_BYTES: Final = 4

_SECRET_BYTES: Final = 32

_TOKEN: Final = re.compile(rf"berth_([0-9a-f]{{{2 * _ID_BYTES}}})_[0-9a-f]{{{2 * _SECRET_BYTES}}}")

_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


def utc_now() -> datetime:
    """The time against which expiry is checked."""
    return datetime.now(UTC)


class Tokens:
    """Authenticates callers by token.

    Args:
        path: the file of tokens.
        clock: monotonic seconds.
        utc: the time of day.

    Raises:
        CredentialsUnusable: the file cannot be read or parsed.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        utc: Callable[[], datetime] = utc_now,
    ) -> None:
        self._file = WatchedFile(path, parse_tokens, clock=clock)
        self._gatekeeper = Gatekeeper(challenge=CHALLENGE, subject="token", clock=clock)
        self._utc = utc

    def __call__(self, environ: WSGIEnvironment) -> Identity:
        """The caller of a request.

        Raises:
            Refused: 401, 429, or 503 if the token cannot be checked now.
        """
        given = _token_in(environ)
        if not given:
            raise self._gatekeeper.unauthorized(
                "Send a token as Authorization: Bearer TOKEN, or as X-Auth-Token: TOKEN."
            )
        try:
            tokens = self._file.content()
        except CredentialsUnusable:
            raise unusable() from None
        token_id = id_in(given)
        entry = tokens.get(token_id) if token_id is not None else None
        is_right = entry is not None and hmac.compare_digest(hash_of(given), entry.sha256)
        if entry is not None and is_right and not entry.is_expired(self._utc()):
            return entry.identity
        caller = self._gatekeeper.caller(environ, token_id or _NO_ID)
        self._gatekeeper.slow_down(caller)
        why = "it has expired" if is_right else "it is not known"
        raise self._gatekeeper.failure(caller, why)

    def still_valid(self, environ: WSGIEnvironment) -> Callable[[], bool]:
        """See `Authenticate`: the line of the file is as it was, and the token has not expired."""
        seen = self._entry(id_in(_token_in(environ)))

        def is_valid() -> bool:
            return (
                seen is not None
                and not seen.is_expired(self._utc())
                and self._entry(seen.id) == seen
            )

        return is_valid

    def _entry(self, token_id: str | None) -> Token | None:
        """The line of a token; None if there is none, or the file cannot be used."""
        with suppress(CredentialsUnusable):
            return self._file.content().get(token_id or _NO_ID)
        return None


def _token_in(environ: WSGIEnvironment) -> str:
    authorization: str = environ.get("HTTP_AUTHORIZATION", "")
    x_auth_token: str = environ.get("HTTP_X_AUTH_TOKEN", "")
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else x_auth_token


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the file. The token itself cannot be recovered from it."""

    id: str
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    user: str
    project: str
    roles: tuple[str, ...]
    created: _Instant
    #: None: never.
    expires: _Instant | None
    #: The host to which the token is bound.
    host: str | None = None

    @property
    def identity(self) -> Identity:
        """The caller that the token authenticates."""
        return Identity(self.user, self.project, self.roles, self.host)

    def is_expired(self, now: datetime) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and self.expires <= now


_token_of: Final = msgspec.json.Decoder(Token).decode


def issue(
    identity: Identity, *, created: datetime, expires: datetime | None, taken: Iterable[str] = ()
) -> tuple[str, Token]:
    """A new token, and the record to store for it.

    Args:
        taken: the ids of other tokens.
    """
    others = set(taken)
    while (token_id := secrets.token_hex(_ID_BYTES)) in others:
        pass
    token = f"berth_{token_id}_{secrets.token_hex(_SECRET_BYTES)}"
    return token, Token(
        id=token_id,
        sha256=hash_of(token),
        user=identity.user,
        project=identity.project,
        roles=identity.roles,
        created=created,
        expires=expires,
        host=identity.host,
    )


def id_in(token: str) -> str | None:
    """The id of a token; None if the text is not a token."""
    match = _TOKEN.fullmatch(token)
    return match[1] if match else None


def hash_of(token: str) -> str:
    """The hash that is stored for a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def parse_tokens(text: str) -> dict[str, Token]:
    """The tokens of a file by id, in file order.

    Raises:
        MalformedLine: a line does not describe a token, or repeats an id.
    """
    tokens: dict[str, Token] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token = _token_of(line)
        except msgspec.DecodeError as error:
            raise MalformedLine(number, f"not a token: {error}") from None
        if fault := fault_of_host(token.host, token.roles):
            raise MalformedLine(number, f"token {token.id}: {fault}")
        if token.id in tokens:
            raise MalformedLine(number, f"duplicate token {token.id}")
        tokens[token.id] = token
    return tokens


def render_tokens(tokens: Iterable[Token]) -> str:
    """The text of a file with these tokens."""
    return "".join(f"{msgspec.json.encode(token).decode()}\n" for token in tokens)
