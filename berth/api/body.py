# SPDX-License-Identifier: Apache-2.0
"""Request bodies: decode the JSON, and refuse valid JSON that cannot be stored.

The size of a JSON text is estimated before decoding it: three bytes of text, such as `[],`, decode
to an object of sixty, so a text that is small enough to keep may still be too large to decode.
Source: spec/rest-api.md 1.5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final

import msgspec

from berth.api.environ import BODY
from berth.api.errors import Refused
from berth.api.media_types import JSON
from berth.api.request import Call
from berth.api.schema import Schema
from berth.model.errors import Invalid, InvalidInput, ProviderGenerationConflict
from berth.model.ids import Generation, ProviderUUID
from berth.model.inventory import MAX_INT
from berth.store import providers
from berth.store.engine.database import Database

#: How deep arrays and objects may be nested. No operation needs more than six levels.
LEVELS_MAX: Final = 32

_STRING: Final = re.compile(rb'"[^"]*"')
_NO_FORM: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STEP: Final = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


def check_content_headers(call: Call) -> None:
    """Refuse, before routing, a non-numeric length, and content without a type."""
    length = call.env.get("CONTENT_LENGTH")
    if not length:
        return
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "content-length header must be an integer")
    if length.strip("0") and not call.content_type:
        raise Refused(400, "content-type header required when content-length > 0")


def check_is_json(call: Call) -> None:
    """Refuse a body that is not JSON with 415; the media type is case-sensitive."""
    content_type = call.content_type
    if content_type == JSON:
        return
    media_type = content_type.split(";")[0] if content_type else None
    if media_type != JSON:
        raise Refused(415, f"The media type {media_type} is not supported, use {JSON}")


def read(call: Call, schema: Schema) -> Any:
    """Decode the body and check its schema.

    Raises:
        Refused: 400 for malformed JSON, values that no database stores, or a schema error.
    """
    value = decode(call.env[BODY])
    schema.check(value)
    return value


class SeenGeneration:
    """The provider generation in a body, kept while the rest of the body is checked."""

    def __init__(self) -> None:
        self.seen: Generation | None = None

    def note(self, generation: float) -> Generation:
        """Store the provider generation of the body, a whole number, and return it."""
        self.seen = Generation(int(generation))
        if abs(self.seen) > MAX_INT:
            raise InvalidInput("No provider can have this generation.")
        return self.seen


@contextmanager
def report_missing_provider_first(
    database: Database, provider: ProviderUUID
) -> Iterator[SeenGeneration]:
    """Report a missing provider before any error in the body that is read inside.

    The order is: the provider does not exist; the body violates the schema; the generation is old;
    any other error in the body. A valid body costs nothing extra, because only the store looks up
    the provider.
    """
    seen_generation = SeenGeneration()
    try:
        yield seen_generation
    except (Refused, Invalid):
        stored = providers.get_provider(database, provider)
        if seen_generation.seen not in (None, stored.generation):
            raise ProviderGenerationConflict(
                provider, seen=seen_generation.seen, actual=stored.generation
            ) from None
        raise


def decode(raw: bytes) -> object:
    """Decode JSON, strictly.

    msgspec refuses some valid JSON numbers (beyond a double, integers of hundreds of digits), so
    what it refuses goes to `json`, which also has the better messages.

    Raises:
        Refused: 400 for malformed JSON, lone surrogates, too many levels, or a NUL. COMPAT: NaN
            and infinity are numbers, which schemas refuse where they make no sense.
    """
    if is_deeper(raw, LEVELS_MAX):
        raise Refused(400, f"Malformed JSON: nested too deeply; {LEVELS_MAX} levels are read")
    value = _decode(raw)
    if rb"\u0000" in raw:
        _check_no_nul(value)
    return value


def _decode(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        value = json.loads(raw.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, f"Malformed JSON: {error}") from None
    except UnicodeEncodeError:
        raise Refused(400, "Malformed JSON: half of a surrogate pair in a string") from None
    except ValueError as error:
        raise Refused(400, f"Malformed JSON: {error}") from None
    return value


def _check_no_nul(value: object) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise Refused(400, "JSON does not validate: a NUL character cannot be stored.")
    elif isinstance(value, list):
        for item in value:
            _check_no_nul(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_no_nul(key)
            _check_no_nul(item)


def count_elements(text: bytes | bytearray) -> int:
    """At most how many values and members a text has.

    Each follows a comma or an opening bracket; such characters in strings count too. Cost: a tenth
    of a millisecond for a megabyte.
    """
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_deeper(text: bytes, levels_max: int) -> bool:
    """Whether a JSON text nests arrays and objects deeper than `levels_max`.

    For malformed JSON, this covers the text before the first error. Cost: negligible for a text
    with few brackets, else about ten milliseconds for a megabyte.
    """
    if text.count(b"[") + text.count(b"{") <= levels_max:
        return False
    without_escapes = text.replace(rb"\\", b"").replace(rb"\"", b"")
    # Adjacent quotes change nothing for the text around them: this removes most strings, at a
    # tenth of the cost.
    form = without_escapes.translate(None, _NO_FORM).replace(b'""', b"")
    brackets = _STRING.sub(b"", form)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > levels_max
