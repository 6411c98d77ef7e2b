# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = token`: callers bring tokens that `berth token create` has made.

`Authorization: Bearer T` (RFC 6750) and `X-Auth-Token: T`, as OpenStack's clients send it, mean
the same. A valid token is let in whoever else fails beside it: checking it costs a microsecond.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.api.auth.file_based import Gatekeeper, unusable
from berth.api.auth.identity import Identity
from berth.api.auth.token_file import hash_of, id_in, parse_tokens
from berth.api.auth.watched_file import CredentialsUnusable, WatchedFile

CHALLENGE: Final = "Bearer"

#: What a text is called in the log that is no token of ours.
_NO_ID: Final = "?"


def utc_now() -> datetime:
    """The time by which tokens expire."""
    return datetime.now(UTC)


class Tokens:
    """Who calls, by a token.

    Args:
        path: the file of tokens.
        clock: monotonic seconds.
        utc: the time of day.

    Raises:
        CredentialsUnusable: the file cannot be read or understood.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        utc: Callable[[], datetime] = utc_now,
    ) -> None:
        self._file = WatchedFile(path, parse_tokens, clock=clock)
        self._gatekeeper = Gatekeeper(challenge=CHALLENGE, what="token", clock=clock)
        self._utc = utc

    def __call__(self, environ: WSGIEnvironment) -> Identity:
        """Who sends this request.

        Raises:
            Refused: 401, 429, or 503 where it cannot be told now.
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
        found = tokens.get(token_id) if token_id is not None else None
        is_right = found is not None and hmac.compare_digest(hash_of(given), found.sha256)
        if found is not None and is_right and not found.is_expired(self._utc()):
            return found.identity
        caller = self._gatekeeper.caller(environ, token_id or _NO_ID)
        self._gatekeeper.slow_down(caller)
        why = "it has expired" if is_right else "it is not known"
        raise self._gatekeeper.failure(caller, why)


def _token_in(environ: WSGIEnvironment) -> str:
    authorization: str = environ.get("HTTP_AUTHORIZATION", "")
    x_auth_token: str = environ.get("HTTP_X_AUTH_TOKEN", "")
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else x_auth_token
