# SPDX-License-Identifier: Apache-2.0
"""Who is asking: from the identity headers that a layer has left to the request's context."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from berth.api import errors
from berth.api.environ import CONTEXT
from berth.api.errors import Refused
from berth.api.paths import is_public

#: The headers by which a layer says who calls, and which a client must not be able to send.
#: Source: those that keystonemiddleware removes, and what else oslo.context reads.
IDENTITY_HEADERS: Final = frozenset(
    {f"HTTP_X{side}_{what}_{form}" for side, what, form in product(
        ("", "_SERVICE"),
        ("DOMAIN", "PROJECT", "PROJECT_DOMAIN", "USER", "USER_DOMAIN"),
        ("ID", "NAME"),
    )}
    | {
        *("HTTP_X_ROLES", "HTTP_X_SERVICE_ROLES", "HTTP_X_ROLE"),
        *("HTTP_X_USER", "HTTP_X_TENANT", "HTTP_X_TENANT_ID", "HTTP_X_TENANT_NAME"),
        *("HTTP_X_IDENTITY_STATUS", "HTTP_X_SERVICE_IDENTITY_STATUS"),
        *("HTTP_X_IS_ADMIN_PROJECT", "HTTP_X_SERVICE_CATALOG", "HTTP_OPENSTACK_SYSTEM_SCOPE"),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who has proved to be a user of ours."""

    user: str
    project: str
    roles: tuple[str, ...]


def remove_identity(environ: WSGIEnvironment) -> None:
    """Take away all that a request says of its caller, credentials left as they are."""
    for name in IDENTITY_HEADERS & environ.keys():
        del environ[name]


def leave_identity(environ: WSGIEnvironment, identity: Identity) -> None:
    """Say who calls, as keystonemiddleware does."""
    environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed"
    environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = identity.user
    environ["HTTP_X_PROJECT_ID"] = environ["HTTP_X_PROJECT_NAME"] = identity.project
    environ["HTTP_X_ROLES"] = ",".join(identity.roles)


def identify(application: WSGIApplication) -> WSGIApplication:
    """Make the context of a request from what the authentication left; 401 if it left no user."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context = RequestContext.from_environ(environ, request_id=environ[errors.REQUEST_ID])
        if context.user_id is None and not is_public(environ):
            refused = Refused(401, "", hint="The request does not say who its user is.")
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
