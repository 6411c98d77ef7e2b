# SPDX-License-Identifier: Apache-2.0
"""`Last-Modified` and `Cache-Control`, which answers carry from 1.15 on.

Source: spec/rest-api.md 1.8.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

from berth.api.request import Request, Response

SINCE = 15

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


def stamp(request: Request, response: Response, modified: datetime | None) -> None:
    """Say when the shown thing was modified (naive UTC); None leaves `Last-Modified` out."""
    if request.microversion >= SINCE:
        response.set_header("cache-control", "no-cache")
        if modified is not None:
            response.set_header("last-modified", http_date(modified))


def stamp_now(request: Request, response: Response) -> None:
    """As `stamp`, for an answer that counts as new each time."""
    if request.microversion >= SINCE:
        response.set_header("cache-control", "no-cache")
        response.set_header("last-modified", _date_of_second(int(time.time())))


def stamp_or_now(request: Request, response: Response, modified: datetime | None) -> None:
    """As `stamp`, with the present for an answer that shows nothing."""
    if modified is None:
        stamp_now(request, response)
    else:
        stamp(request, response, modified)


def http_date(moment: datetime) -> str:
    """A naive UTC time as HTTP writes it, whatever the locale."""
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year:04} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02} GMT"
    )


@lru_cache(maxsize=4)
def _date_of_second(second: int) -> str:
    """A second as HTTP writes it, kept for those who ask within the same."""
    return http_date(datetime.fromtimestamp(second, tz=UTC))
