# SPDX-License-Identifier: Apache-2.0
"""The layer that counts and times requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import NO_ROUTE, ROUTE
from berth.api.errors import MICROVERSION
from berth.edge.request_log import STARTED, STATUS

if TYPE_CHECKING:
    from berth.edge.instruments import RequestInstruments


def count_requests(
    instruments: RequestInstruments,
) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that reports every request to the instruments, even one that raises.

    It belongs inside `log_requests`, which notes when the request started, and its status.
    """
    answered = instruments.answered

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            try:
                return application(environ, start_response)
            finally:
                answered(
                    environ["REQUEST_METHOD"],
                    environ.get(ROUTE, NO_ROUTE),
                    environ.get(STATUS, "500"),
                    environ.get(MICROVERSION),
                    perf_counter() - environ[STARTED],
                )

        return layer

    return wrap
