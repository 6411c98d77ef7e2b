# SPDX-License-Identifier: Apache-2.0
"""The caller: completes the request's context from the identity headers that a layer sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.environ import CONTEXT, HOST
from berth.api.errors import Refused
from berth.api.paths import is_public
from berth.edge.context import AGENT, Context

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
    #: The host to whose tree of providers the user is confined; None: to no host.
    host: str | None = None


def fault_of_host(host: str | None, roles: Sequence[str]) -> str | None:
    """Why a user with these roles cannot be bound to a host; None if that is possible."""
    if host is not None and [role.lower() for role in roles] != [AGENT]:
        return f"a user that is bound to a host has the role {AGENT} and no other"
    return None


def remove_identity(environ: WSGIEnvironment) -> None:
    """Remove the identity headers of a request; leave its credentials."""
    for name in IDENTITY_HEADERS & environ.keys():
        del environ[name]
    environ.pop(HOST, None)


def leave_identity(environ: WSGIEnvironment, identity: Identity) -> None:
    """Set the identity headers as keystonemiddleware does."""
    environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed"
    environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = identity.user
    environ["HTTP_X_PROJECT_ID"] = environ["HTTP_X_PROJECT_NAME"] = identity.project
    environ["HTTP_X_ROLES"] = ",".join(identity.roles)
    if identity.host is not None:
        environ[HOST] = identity.host


def identify(application: WSGIApplication) -> WSGIApplication:
    """Complete a request's context from the identity headers; 401 if they name no user."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context: Context = environ[CONTEXT]
        context.read_identity(environ)
        if context.user_id is None and not is_public(environ):
            refused = Refused(401, "", hint="The request does not say who its user is.")
            return unauthorized(refused, environ, start_response)
        if context.host is not None:
            environ[HOST] = context.host
        return application(environ, start_response)

    return layer


def unauthorized(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer 401 without calling the application."""
    rendered = errors.render_unauthorized(refused, environ)
    return errors.send(refused, rendered, environ, start_response)
