# SPDX-License-Identifier: Apache-2.0
"""The layer that turns an unexpected exception into a logged traceback and a 500."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.environ import CONTEXT
from berth.api.errors import Refused
from berth.edge.context import Context

LOG = logging.getLogger(__name__)


def catch_crashes(application: WSGIApplication) -> WSGIApplication:
    """Wrap an application so that it always answers."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return application(environ, start_response)
        except Exception as fault:
            LOG.exception("Unexpected error in request %s%s", *_ids(environ))
            refused = Refused(500, str(fault))
            rendered = errors.render(refused, environ)
            return errors.send(refused, rendered, environ, start_response)

    return layer


def _ids(environ: WSGIEnvironment) -> tuple[object, str]:
    """The id of a request, and its trace if it has one."""
    context: Context | None = environ.get(CONTEXT)
    trace_id = None if context is None else context.trace_id
    return environ.get(errors.REQUEST_ID), "" if trace_id is None else f" of trace {trace_id}"
