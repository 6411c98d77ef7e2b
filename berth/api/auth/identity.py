# SPDX-License-Identifier: Apache-2.0
"""Who is asking: from the identity headers that a layer has left to the request's context."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from berth.api import errors
from berth.api.errors import Refused
from berth.api.paths import is_public
from berth.api.request import CONTEXT


def identify(application: WSGIApplication) -> WSGIApplication:
    """Make the context of a request from what the authentication left; 401 if it left no user."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context = RequestContext.from_environ(environ, request_id=environ[errors.REQUEST_ID])
        if context.user_id is None and not is_public(environ):
            refused = Refused(401, "The request does not say who its user is.")
            return unauthorized(refused, environ, start_response)
        environ[CONTEXT] = context
        return application(environ, start_response)

    return layer


def unauthorized(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer a 401 from in front of the application."""
    rendered = errors.render_unauthorized(refused, environ)
    return errors.send(refused, rendered, environ, start_response)
