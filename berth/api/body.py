# SPDX-License-Identifier: Apache-2.0
"""Request bodies: the JSON in their bytes, and what JSON admits but nothing behind can hold.

Source: spec/rest-api.md 1.5.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from berth.api.errors import Refused
from berth.api.json_form import is_deeper
from berth.api.media_types import JSON
from berth.api.receiving import BODY
from berth.api.request import Request
from berth.api.schema import Schema
from berth.model.errors import Invalid, InvalidInput, ProviderGenerationConflict
from berth.model.ids import Generation, ProviderUUID
from berth.model.inventory import MAX_INT
from berth.store import providers
from berth.store.engine.database import Database

#: Arrays and objects that may lie in each other. What any operation understands has six levels.
LEVELS_MAX: Final = 32


def check_content_headers(request: Request) -> None:
    """Refuse, before routing, a length that is no number and content without a type."""
    length = request.env.get("CONTENT_LENGTH")
    if not length:
        return
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "content-length header must be an integer")
    if length.strip("0") and not request.content_type:
        raise Refused(400, "content-type header required when content-length > 0")


def check_is_json(request: Request) -> None:
    """Refuse with 415 a body of another type than JSON; the letters must be exactly these."""
    content_type = request.content_type
    if content_type == JSON:
        return
    media_type = content_type.split(";")[0] if content_type else None
    if media_type != JSON:
        raise Refused(415, f"The media type {media_type} is not supported, use {JSON}")


def read(request: Request, schema: Schema) -> Any:
    """The decoded body, which passes the schema.

    Raises:
        Refused: 400 for malformed JSON, for what no database stores, or a breach of the schema.
    """
    value = decode(request.env[BODY])
    schema.check(value)
    return value


class Judgement:
    """What a body said before its fault was found."""

    def __init__(self) -> None:
        self.seen: Generation | None = None

    def saw(self, generation: float) -> Generation:
        """Take note of the provider generation in the body, a number without a fraction."""
        self.seen = Generation(int(generation))
        if abs(self.seen) > MAX_INT:
            raise InvalidInput("No provider can have this generation.")
        return self.seen


@contextmanager
def judged_after(database: Database, provider: ProviderUUID) -> Iterator[Judgement]:
    """Judge a body only after the provider in the path, and its rest only after its generation.

    A missing provider is the first thing told, then a breach of the schema, then an old
    generation, then what else is wrong with the body. A good body costs nothing here, since the
    store looks at the provider itself.
    """
    judgement = Judgement()
    try:
        yield judgement
    except (Refused, Invalid):
        stored = providers.get_provider(database, provider)
        if judgement.seen not in (None, stored.generation):
            raise ProviderGenerationConflict(
                provider, seen=judgement.seen, actual=stored.generation
            ) from None
        raise


def decode(raw: bytes) -> object:
    """Decode JSON, strictly.

    The fast decoder refuses some numbers that are JSON (beyond a double, integers of hundreds of
    digits), so the slow one has the last word and the better message.

    Raises:
        Refused: 400, not JSON, lone surrogates, nested too deeply, or with a NUL. COMPAT: NaN and
            infinity are numbers, which schemas refuse where they make no sense.
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
