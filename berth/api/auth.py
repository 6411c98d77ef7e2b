# SPDX-License-Identifier: Apache-2.0
"""Authentication: WSGI layers that establish who is asking, before the application is entered.

A layer leaves its findings as the identity headers of keystonemiddleware (`HTTP_X_USER_ID`, ...),
from which `identify` makes the request's context. Any layer that does so may take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg
from oslo_context.context import RequestContext

from berth.api import errors
from berth.api.errors import Refused
from berth.api.paths import is_version_document
from berth.api.request import CONTEXT

Layer = Callable[[WSGIApplication], WSGIApplication]

ADMIN = "admin"


def layer_for(strategy: str, conf: cfg.ConfigOpts) -> Layer:
    """The layer for a value of `[api]auth_strategy`."""
    if strategy == "noauth2":
        return noauth2
    assert strategy == "keystone", "the option admits two values"
    return partial(keystone, conf=conf)


def noauth2(application: WSGIApplication) -> WSGIApplication:
    """Believe what callers say of themselves in `X-Auth-Token: user[:project]`.

    For tests and for one's own machine. Source: spec/operations.md 1.2.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == "/":
            return application(environ, start_response)
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            refused = Refused(401, "Send a token as X-Auth-Token: user, or user:project.")
            return unauthorized(refused, environ, start_response)
        user, _, project = token.partition(":")
        environ["HTTP_X_USER_ID"] = user
        if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ.pop("HTTP_X_TENANT_ID", None)
        else:
            environ["HTTP_X_TENANT_ID"] = project or user
        environ.setdefault("HTTP_X_ROLES", ADMIN if user == ADMIN else "")
        return application(environ, start_response)

    return layer


def keystone(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Let keystonemiddleware validate tokens, everywhere but on the version document."""
    # Imported here: it is slow to load, and only this strategy needs it.
    from keystonemiddleware import auth_token

    guarded: WSGIApplication = auth_token.AuthProtocol(application, {"oslo_config_config": conf})

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_version_document(environ):
            return application(environ, start_response)
        return guarded(environ, start_response)

    return layer


def identify(application: WSGIApplication) -> WSGIApplication:
    """Make the context of a request from what the authentication left; 401 if it left no user."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context = RequestContext.from_environ(environ, request_id=environ[errors.REQUEST_ID])
        if context.user_id is None and not is_version_document(environ):
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
