# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = noauth2`: authentication is off."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.errors import Refused
from berth.api.paths import PUBLIC
from berth.edge.auth.identity import unauthorized

#: The user that has roles by default.
ADMIN = "admin"

#: `service` besides `admin`, because a default rule requires it: without it, a host's agent could
#: not move inventory between providers (POST /reshaper).
ADMIN_ROLES = "admin,service"


def noauth2(application: WSGIApplication) -> WSGIApplication:
    """Trust the user and project in `X-Auth-Token: user[:project]`, unchecked.

    For tests and development. Source: spec/operations.md 1.2.
    """

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") in PUBLIC:
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
