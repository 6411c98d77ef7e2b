# SPDX-License-Identifier: Apache-2.0
"""The file of tokens: a JSON object a line, with the SHA-256 of each token and never the token.

A token is `berth_<id>_<secret>`, the secret being 256 random bits. So the hash needs no salt and
no slowness: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final

import msgspec

from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import MalformedLine

_ID_BYTES: Final = 4
_SECRET_BYTES: Final = 32

_TOKEN: Final = re.compile(rf"berth_([0-9a-f]{{{2 * _ID_BYTES}}})_[0-9a-f]{{{2 * _SECRET_BYTES}}}")

_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file: what is known of a token, which cannot be had from it."""

    id: str
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    user: str
    project: str
    roles: tuple[str, ...]
    created: _Instant
    #: None: never.
    expires: _Instant | None

    @property
    def identity(self) -> Identity:
        """Who calls with it."""
        return Identity(self.user, self.project, self.roles)

    def is_expired(self, now: datetime) -> bool:
        """Whether it does not count any more."""
        return self.expires is not None and self.expires <= now


def issue(
    identity: Identity, *, created: datetime, expires: datetime | None, taken: Iterable[str] = ()
) -> tuple[str, Token]:
    """A new token, and what is to be stored of it.

    Args:
        taken: ids that others have.
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
    )


def id_in(token: str) -> str | None:
    """The id of a token; None for a text that is none of ours."""
    found = _TOKEN.fullmatch(token)
    return found[1] if found else None


def hash_of(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def parse_tokens(text: str) -> dict[str, Token]:
    """The tokens of a file by their ids, in its order.

    Raises:
        MalformedLine: a line is none of a token, or has the id of another.
    """
    tokens: dict[str, Token] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token = msgspec.json.decode(line, type=Token)
        except msgspec.DecodeError as error:
            raise MalformedLine(number, f"this is no token: {error}") from None
        if token.id in tokens:
            raise MalformedLine(number, f"the token {token.id} stands above already")
        tokens[token.id] = token
    return tokens


def render_tokens(tokens: Iterable[Token]) -> str:
    """The text of a file with these tokens."""
    return "".join(f"{msgspec.json.encode(token).decode()}\n" for token in tokens)
