# SPDX-License-Identifier: Apache-2.0
"""Masks a caller's own credentials in everything that berth writes down about a request.

A client can put its token into a name, a path or a query, and berth quotes those in logs. The
outermost layer notes what a request was sent with; whatever writes a line passes it through
`masked`, and so does a span.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

MASK: Final = "***"

#: The headers with which a client proves who it is.
_HEADERS: Final = (
    "HTTP_X_AUTH_TOKEN",
    "HTTP_AUTHORIZATION",
    "HTTP_X_SERVICE_TOKEN",
    "HTTP_X_STORAGE_TOKEN",
    "HTTP_X_SUBJECT_TOKEN",
)
#: A shorter token is no secret: noauth2's are names. A shorter password is found in many words.
_TOKEN_LENGTH_MIN: Final = 16
_PASSWORD_LENGTH_MIN: Final = 6

#: A text that begins as a secret does for this many characters quotes it.
_START_LENGTH: Final = 16
#: So does a shorter one, if an ellipsis follows.
_CUT_LENGTH_MIN: Final = 4
_ELLIPSES: Final = ("...", "…")

#: Escapes of JSON, Python and similar notations.
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def credentials_in(environ: Mapping[str, Any]) -> list[str]:
    """The values of the headers with which a request proves who sends it, if one is a secret."""
    # PERF bench.fixed_cost: every request passes here, and has one of these headers or two.
    credentials = []
    for header in _HEADERS:
        if header in environ and len(environ[header]) >= _TOKEN_LENGTH_MIN:
            credentials.append(environ[header])
    return credentials


def masked(text: str, context: Any) -> str:
    """A text without the credentials of the request that a context belongs to, even if they are
    escaped, percent-encoded or cut.

    Cost: a microsecond, unless they are there.

    Args:
        context: a `berth.edge.auth.identity.Context`; any other object has no credentials.
    """
    credentials = getattr(context, "credentials", ())
    if not credentials:
        return text
    if context.secrets is None:
        context.secrets = [*dict.fromkeys(_secrets_in(credentials))]
    for secret in context.secrets:
        if _is_quoted(secret, text):
            text = _without(secret, text)
    return text


def _secrets_in(credentials: list[str]) -> Iterator[str]:
    for value in credentials:
        scheme, _, parameter = value.partition(" ")
        token = parameter.strip() or scheme
        if len(token) >= _TOKEN_LENGTH_MIN:
            yield token
        if scheme.lower() == "basic":
            try:
                decoded = base64.b64decode(token, validate=True).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                continue
            password = decoded.partition(":")[2]
            if len(password) >= _PASSWORD_LENGTH_MIN:
                yield password


def _is_quoted(secret: str, text: str) -> bool:
    start = secret[:_START_LENGTH]
    if start in text:
        return True
    if "%" in text or "+" in text:
        decoded = unquote(text)
        if start in decoded or start in decoded.replace("+", " "):
            return True
    if "\\" in text and start in _ESCAPE.sub(_meant, text):
        return True
    is_cut = any(ellipsis in text for ellipsis in _ELLIPSES)
    return is_cut and secret[:_CUT_LENGTH_MIN] in text


def _meant(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    return chr(int(digits, 16)) if digits else escape[3]


def _without(secret: str, text: str) -> str:
    parts, end = [], 0
    for match in re.finditer("".join(map(_forms, secret[:_CUT_LENGTH_MIN])), text):
        begin = match.start()
        if begin < end:
            continue
        length, stop = _quoted_length(secret, text, match.end())
        is_cut = text.startswith(_ELLIPSES, stop)
        if length < min(_START_LENGTH, len(secret)) and not is_cut:
            continue
        # What follows half an escape would no longer be JSON.
        slashes = len(text[:begin]) - len(text[:begin].rstrip("\\"))
        parts += [text[end : begin - slashes % 2], MASK]
        end = stop
    return "".join([*parts, text[end:]])


def _quoted_length(secret: str, text: str, stop: int) -> tuple[int, int]:
    """How many characters of a secret a text quotes, and where that ends."""
    length = _CUT_LENGTH_MIN
    for character in secret[_CUT_LENGTH_MIN:]:
        match = re.compile(_forms(character)).match(text, stop)
        if match is None:
            break
        length, stop = length + 1, match.end()
    return length, stop


def _forms(character: str) -> str:
    """A regular expression for a character as it is, percent-encoded, and as an escape."""
    percent = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "replace"))
    number = ord(character)
    escapes = rf"\\u{number:04x}|\\x{number:02x}"
    plus = r"|\+" if character == " " else ""
    literal = re.escape(character)
    return rf"(?:{literal}|\\{literal}|(?i:{percent}|{escapes}){plus})"
