# SPDX-License-Identifier: Apache-2.0
"""What the layers in front of the application answer by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from wsgiref.types import StartResponse, WSGIEnvironment

from berth.api import errors
from berth.api.errors import MICROVERSION, OVERLOADED, RETRY_AFTER_S, Refused
from berth.api.microversion import negotiate


def overloaded() -> Refused:
    """503: there is no room for this request now, and nothing was done for it."""
    return Refused(
        503,
        "More requests have come than can be served at the moment; try again.",
        code=OVERLOADED,
        headers={"retry-after": RETRY_AFTER_S},
    )


def refuse(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with a refusal; with its code, if the request names a microversion that has codes."""
    with suppress(Refused):  # a version that is not served: told as to the oldest
        environ[MICROVERSION] = negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))
    return errors.send(refused, errors.render(refused, environ), environ, start_response)
