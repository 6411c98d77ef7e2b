# SPDX-License-Identifier: Apache-2.0
"""The file of tokens: one JSON object per line, with the SHA-256 of a token, never the token.

A token is `berth_<id>_<secret>`. The secret has 256 random bits and cannot be guessed, so the hash
needs neither a salt nor a high cost.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final

import msgspec

from berth.edge.auth.identity import Identity, fault_of_host
from berth.edge.auth.watched_file import MalformedLine

_ID_BYTES: Final = 4
_SECRET_BYTES: Final = 32

_TOKEN: Final = re.compile(rf"berth_([0-9a-f]{{{2 * _ID_BYTES}}})_[0-9a-f]{{{2 * _SECRET_BYTES}}}")

_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


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
            token = msgspec.json.decode(line, type=Token)
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
