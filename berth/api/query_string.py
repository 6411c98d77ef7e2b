# SPDX-License-Identifier: Apache-2.0
"""Decode query strings into pairs of text."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from berth.api.errors import Refused

#: Decoded pairs in query order.
Pairs = list[tuple[str, str]]


def parse_pairs(query_string: str) -> Pairs:
    """Decode a raw `QUERY_STRING` (bytes decoded as latin-1, as in WSGI).

    Pairs are separated by `&` or `;`, as in OpenStack Placement; a lone key has an empty value.

    Raises:
        Refused: 400 for bytes that are not UTF-8, or a NUL, which no database stores.
    """
    pairs = []
    for piece in query_string.replace(";", "&").split("&"):
        if piece:
            key, _, value = piece.partition("=")
            pairs.append((_decode(key), _decode(value)))
    return pairs


def values_of(pairs: Pairs, key: str) -> list[str]:
    """All values of one parameter, in order."""
    return [value for name, value in pairs if name == key]


def _decode(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    if "%" in text or not text.isascii():
        try:
            text = unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(400, f"Invalid query string parameters: {error}") from None
    if "\0" in text:
        raise Refused(400, "Invalid query string parameters: a NUL character cannot be matched.")
    return text
