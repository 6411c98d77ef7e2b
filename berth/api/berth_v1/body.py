# SPDX-License-Identifier: Apache-2.0
"""Bodies of `/berth/v1`. Source: spec/beyond.md 1.4 and 11."""

from __future__ import annotations

import json
from typing import Any, Final

from berth.api import body
from berth.api.berth_v1.pointed import PointedSchema, pointer_of, refused, values_in
from berth.api.berth_v1.refusals import too_large
from berth.api.environ import BODY
from berth.api.rendering import encode
from berth.api.request import Request
from berth.model.bounds import BODY_BYTES_MAX

#: Key in the WSGI environment of the decoded body: a policy may ask for it before the handler.
_CONTENT: Final = "berth.content"


def read(request: Request, schema: PointedSchema) -> Any:
    """Decode the body and check its schema.

    Raises:
        Refused: 400, with the JSON pointer to the member at fault.
    """
    value = content(request)
    schema.check(value)
    return value


def content(request: Request) -> object:
    """The decoded body, of which nothing is checked but its schema: nothing else may decode it.

    Raises:
        Refused: 400 for one that is too large or nested too deeply, that is not JSON, that has
            characters that cannot be stored, or an object with the same member twice.
    """
    if _CONTENT not in request.env:
        raw: bytes = request.env[BODY]
        if len(raw) > BODY_BYTES_MAX:
            raise too_large("max_body_bytes", BODY_BYTES_MAX)
        value = body.decode(raw)
        _check_no_repetition(raw, value)
        request.env[_CONTENT] = value
    return request.env[_CONTENT]


class _Repeated:
    """Stands for the value of a member that an object has twice."""


def _check_no_repetition(raw: bytes, value: object) -> None:
    """Refuse a body in which an object has the same member twice.

    PERF bench.place: without escapes, strings are the same in the body and in the text of its
    value, so that one has fewer colons than the other only if a member was lost.
    """
    if b"\\" not in raw and encode(value).count(b":") == raw.count(b":"):
        return
    for steps, _ in values_in(json.loads(raw, object_pairs_hook=_object), _Repeated):
        raise refused(pointer_of(steps), "appears twice")


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in members:
        values[name] = _Repeated() if name in values else value
    return values
