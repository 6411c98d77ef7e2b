# SPDX-License-Identifier: Apache-2.0
"""The layer that turns an unexpected exception into a logged traceback and a 500."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.errors import Refused

LOG = logging.getLogger(__name__)


def catch_crashes(application: WSGIApplication) -> WSGIApplication:
    """Wrap an application so that it always answers."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return application(environ, start_response)
        except Exception as fault:
            LOG.exception("Unexpected error in request %s", environ.get(errors.REQUEST_ID))
            refused = Refused(500, str(fault))
            rendered = errors.render(refused, environ)
            return errors.send(refused, rendered, environ, start_response)

    return layer
