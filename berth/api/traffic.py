# SPDX-License-Identifier: Apache-2.0
"""The layer that counts requests and takes their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import NO_ROUTE, ROUTE
from berth.api.errors import MICROVERSION
from berth.api.request_log import ExceptionInfo

if TYPE_CHECKING:
    from berth.api.instruments import RequestInstruments


def count_requests(
    instruments: RequestInstruments,
) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that tells the instruments of every request, however it ends."""
    answered = instruments.answered

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            begun = perf_counter()
            status = "500"

            def start(
                line: str,
                headers: list[tuple[str, str]],
                exc_info: ExceptionInfo | None = None,
            ) -> Any:
                nonlocal status
                status = line[:3]
                if exc_info is None:
                    return start_response(line, headers)
                return start_response(line, headers, exc_info)

            try:
                return application(environ, start)
            finally:
                answered(
                    environ["REQUEST_METHOD"],
                    environ.get(ROUTE, NO_ROUTE),
                    status,
                    environ.get(MICROVERSION),
                    perf_counter() - begun,
                )

        return layer

    return wrap
