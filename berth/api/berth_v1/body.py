# SPDX-License-Identifier: Apache-2.0
"""Bodies of `/berth/v1`. Source: spec/beyond.md 1.4 and 11."""

from __future__ import annotations

from typing import Any

from berth.api import body
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.berth_v1.refusals import too_large
from berth.api.environ import BODY
from berth.api.request import Request
from berth.model.bounds import BODY_BYTES_MAX


def read(request: Request, schema: PointedSchema) -> Any:
    """Decode the body and check its schema.

    Raises:
        Refused: 400, with the JSON pointer to the member at fault.
    """
    if len(request.env[BODY]) > BODY_BYTES_MAX:
        raise too_large("max_body_bytes", BODY_BYTES_MAX)
    return body.read(request, schema)
