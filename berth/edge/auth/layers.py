# SPDX-License-Identifier: Apache-2.0
"""The authentication layer for each `[api]auth_strategy`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import assert_never
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import MATCH
from berth.api.errors import Refused
from berth.config import Settings
from berth.edge.auth.file_based import layer_of
from berth.edge.auth.http_basic import HttpBasic
from berth.edge.auth.identity import unauthorized
from berth.edge.auth.keystone import keystone
from berth.edge.auth.tokens import Tokens

Layer = Callable[[WSGIApplication], WSGIApplication]


#: The user that has roles by default.
ADMIN = "admin"

#: `service` besides `admin`, because a default rule requires it: without it, a host's agent could
#: not move inventory between providers (POST /reshaper).
ADMIN_ROLES = "admin,service"


def layer_for(settings: Settings) -> Layer:
    """The layer of the configured strategy.

    Raises:
        CredentialsUnusable: the file of users or tokens cannot be read or parsed.
    """
    match settings.auth_strategy:
        case "keystone":
            return partial(keystone, conf=settings.conf)
        case "noauth2":
            return noauth2
        case "http_basic":
            return layer_of(HttpBasic(settings.user_file))
        case "token":
            return layer_of(Tokens(settings.token_file))
        case unknown:
            assert_never(unknown)


def noauth2(application: WSGIApplication) -> WSGIApplication:
    """Trust the user and project in `X-Auth-Token: user[:project]`, unchecked.

    For tests and development. Source: spec/operations.md 1.2.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # COMPAT: a bare prefix under which the application is mounted needs a token here.
        if environ[MATCH].route.is_public and environ.get("PATH_INFO"):
            return application(environ, start_response)
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            refused = Refused(401, "", hint="Send a token as X-Auth-Token: user, or user:project.")
            return unauthorized(refused, environ, start_response)
        user, _, project = token.partition(":")
        environ["HTTP_X_USER_ID"] = user
        if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ.pop("HTTP_X_TENANT_ID", None)
        else:
            environ["HTTP_X_TENANT_ID"] = project or user
        environ.setdefault("HTTP_X_ROLES", ADMIN_ROLES if user == ADMIN else "")
        return application(environ, start_response)

    return layer
