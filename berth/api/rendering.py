# SPDX-License-Identifier: Apache-2.0
"""How answers are put on the wire."""

from __future__ import annotations

import msgspec

from berth.api.errors import PHRASES
from berth.api.media_types import JSON
from berth.api.request import Response

_ENCODE = msgspec.json.Encoder().encode
STATUS_LINES = {status: f"{status} {phrase}" for status, phrase in PHRASES.items()}


def answer(response: Response, body: object, *, status: int = 200) -> None:
    """Answer with a value as JSON."""
    answer_bytes(response, _ENCODE(body), status=status)


def answer_bytes(response: Response, body: bytes, *, status: int = 200) -> None:
    """Answer with JSON that is encoded already."""
    response.status = STATUS_LINES[status]
    response.content_type = JSON
    response.data = body


def answer_empty(response: Response, *, status: int = 204) -> None:
    """Answer without a body."""
    response.status = STATUS_LINES[status]
    response.set_header("content-length", "0")
