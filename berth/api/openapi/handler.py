# SPDX-License-Identifier: Apache-2.0
"""`GET /openapi.json`: the description of the API, for people's tools."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from berth.api.microversion import MINOR_MAX, SERVICE_TYPE, names_version
from berth.api.rendering import answer_bytes
from berth.api.request import Request, Response, Services


def show_description(services: Services, request: Request, response: Response) -> None:
    """Answer the description of the microversion asked for; of the newest, where none is."""
    asked = names_version(request.env.get("HTTP_OPENSTACK_API_VERSION"))
    minor = request.microversion if asked else MINOR_MAX
    response.set_header("openstack-api-version", f"{SERVICE_TYPE} 1.{minor}")
    answer_bytes(response, _rendered(minor, services.settings.auth_strategy, request.mount))


@lru_cache(maxsize=64)
def _rendered(microversion: int, auth_strategy: str, mount: str) -> bytes:
    """The document, kept until the process ends: this release and the arguments decide it."""
    # Imported here: it needs the table of routes, which this handler stands in.
    from berth.api.openapi.document import describe

    return msgspec.json.encode(describe(microversion, auth_strategy=auth_strategy, mount=mount))
