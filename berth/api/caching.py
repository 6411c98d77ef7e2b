# SPDX-License-Identifier: Apache-2.0
"""`Last-Modified` and `Cache-Control`, on responses from 1.15 on.

Source: spec/rest-api.md 1.8.
"""

from __future__ import annotations

from datetime import datetime

from berth.api.http_date import http_date
from berth.api.request import Request, Response, Services

SINCE = 15


def stamp(request: Request, response: Response, modified: datetime | None) -> None:
    """Set both headers; `modified` is in UTC, and None omits `Last-Modified`."""
    if request.microversion >= SINCE:
        response.set_header("cache-control", "no-cache")
        if modified is not None:
            response.set_header("last-modified", http_date(modified))


def stamp_now(services: Services, request: Request, response: Response) -> None:
    """Like `stamp`, with the current time."""
    if request.microversion >= SINCE:
        response.set_header("cache-control", "no-cache")
        response.set_header("last-modified", services.clock.read())


def stamp_or_now(
    services: Services, request: Request, response: Response, modified: datetime | None
) -> None:
    """Like `stamp`, with the current time instead of None."""
    if modified is None:
        stamp_now(services, request, response)
    else:
        stamp(request, response, modified)
