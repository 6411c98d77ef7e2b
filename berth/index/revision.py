# SPDX-License-Identifier: Apache-2.0
"""Revisions: one opaque text for "the state after these commits".

A revision is the writers' clock together with the identity of the database: `b1.` and, in
base64url, 8 bytes of identity, and then for each writer that has committed its id and its count, as
varints (LEB128), ascending by writer. So equal revisions mean equal states.

Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from berth.model.errors import RevisionForeign, RevisionGone
from berth.store.identity import IDENTITY_BYTES, NO_IDENTITY

PREFIX: Final = "b1."

#: Bits of a number in one byte of a varint; the next one tells whether another byte follows.
_BITS: Final = 7
_MORE: Final = 1 << _BITS


class Clock:
    """How far each writer had come when a snapshot was taken, and in which database.

    Args:
        identity: of the database.
        heads: writer -> its count of commits. It must not change afterwards.
    """

    __slots__ = ("_revision", "heads", "identity")

    def __init__(self, identity: bytes, heads: Mapping[int, int]) -> None:
        self.identity = identity
        self.heads = heads
        self._revision: str | None = None

    @property
    def revision(self) -> str:
        """The clock as a text, made when it is first asked for."""
        if self._revision is None:
            self._revision = _encoded(self.identity, self.heads)
        return self._revision

    def since(self, revision: str) -> dict[int, int]:
        """The heads of a revision of this database, which is not ahead of this clock.

        Raises:
            RevisionForeign: it is of another database, or no revision at all.
            RevisionGone: the clock has gone back since, as after a restore.
        """
        identity, heads = _decoded(revision)
        if identity != self.identity:
            raise RevisionForeign(revision)
        if any(self.heads.get(writer, 0) < seq for writer, seq in heads.items()):
            raise RevisionGone(revision)
        return heads


#: Of a fleet that no database has.
NO_CLOCK: Final = Clock(NO_IDENTITY, {})


def _encoded(identity: bytes, heads: Mapping[int, int]) -> str:
    pairs = ((writer, seq) for writer, seq in sorted(heads.items()) if seq)
    numbers = b"".join(_varint(number) for pair in pairs for number in pair)
    return PREFIX + urlsafe_b64encode(identity + numbers).decode().rstrip("=")


def _decoded(revision: str) -> tuple[bytes, dict[int, int]]:
    """The identity and the heads of a revision.

    Raises:
        RevisionForeign: no `Clock` has written this text.
    """
    if not revision.startswith(PREFIX):
        raise RevisionForeign(revision)
    text = revision.removeprefix(PREFIX)
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        numbers = list(_numbers(raw[IDENTITY_BYTES:]))
        heads = dict(zip(numbers[::2], numbers[1::2], strict=True))
    except ValueError as error:
        raise RevisionForeign(revision) from error
    identity = raw[:IDENTITY_BYTES]
    if _encoded(identity, heads) != revision:
        raise RevisionForeign(revision)
    return identity, heads


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= _MORE:
        encoded.append(number % _MORE | _MORE)
        number >>= _BITS
    encoded.append(number)
    return bytes(encoded)


def _numbers(raw: Iterable[int]) -> Iterator[int]:
    """The numbers of varints.

    Raises:
        ValueError: the last one is cut off.
    """
    number = shift = 0
    for byte in raw:
        number |= byte % _MORE << shift
        shift += _BITS
        if byte < _MORE:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("a number is cut off")
