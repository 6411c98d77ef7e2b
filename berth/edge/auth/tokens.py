# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = token`: callers send tokens made by `berth token create`.

`Authorization: Bearer T` (RFC 6750) and `X-Auth-Token: T`, which OpenStack's clients send, mean the
same. A valid token is accepted however many others fail: checking it takes a microsecond.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.edge.auth.file_based import Gatekeeper, unusable
from berth.edge.auth.identity import Identity
from berth.edge.auth.token_file import Token, hash_of, id_in, parse_tokens
from berth.edge.auth.watched_file import CredentialsUnusable, WatchedFile

CHALLENGE: Final = "Bearer"

#: The id in the log of a text that is not a token.
_NO_ID: Final = "?"


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
