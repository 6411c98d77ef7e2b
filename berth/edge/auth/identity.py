# SPDX-License-Identifier: Apache-2.0
"""The caller: completes the request's context from the identity headers that a layer sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.environ import CONTEXT
from berth.api.errors import Refused
from berth.api.paths import is_public
from berth.edge.context import Context

#: The headers in which a layer names the caller; a client must not be able to set them.
#: Source: those that keystonemiddleware removes, and the others that oslo.context reads.
IDENTITY_HEADERS: Final = frozenset(
    {f"HTTP_X{side}_{part}_{form}" for side, part, form in product(
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
    """An authenticated user."""

    user: str
    project: str
    roles: tuple[str, ...]


def remove_identity(environ: WSGIEnvironment) -> None:
    """Remove the identity headers of a request; leave its credentials."""
    for name in IDENTITY_HEADERS & environ.keys():
        del environ[name]


def leave_identity(environ: WSGIEnvironment, identity: Identity) -> None:
    """Set the identity headers as keystonemiddleware does."""
    environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed"
    environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = identity.user
    environ["HTTP_X_PROJECT_ID"] = environ["HTTP_X_PROJECT_NAME"] = identity.project
    environ["HTTP_X_ROLES"] = ",".join(identity.roles)


def identify(application: WSGIApplication) -> WSGIApplication:
    """Complete a request's context from the identity headers; 401 if they name no user."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context: Context = environ[CONTEXT]
        context.read_identity(environ)
        if context.user_id is None and not is_public(environ):
            refused = Refused(401, "", hint="The request does not say who its user is.")
            return unauthorized(refused, environ, start_response)
        return application(environ, start_response)

    return layer


def unauthorized(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer 401 without calling the application."""
    rendered = errors.render_unauthorized(refused, environ)
    return errors.send(refused, rendered, environ, start_response)
