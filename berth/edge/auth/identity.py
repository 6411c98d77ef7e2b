# SPDX-License-Identifier: Apache-2.0
"""Who sends a request: its context, for the policy and for the lines of the log, which is completed
from the identity headers that a layer of authentication sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from berth.api import errors
from berth.api.environ import CONTEXT, HOST, MATCH
from berth.api.errors import Refused

#: The role of a caller that may write to the tree of one host only.
AGENT: Final = "agent"

#: The headers of identity, and the attributes that they become; of several, the last one counts.
#: Source: oslo.context, to which tests/edge/test_context.py compares this.
_HEADERS: Final = (
    ("HTTP_X_STORAGE_TOKEN", "auth_token"),
    ("HTTP_X_AUTH_TOKEN", "auth_token"),
    ("HTTP_X_USER", "user_id"),
    ("HTTP_X_USER_ID", "user_id"),
    ("HTTP_X_TENANT", "project_id"),
    ("HTTP_X_TENANT_ID", "project_id"),
    ("HTTP_X_PROJECT_ID", "project_id"),
    ("HTTP_X_DOMAIN_ID", "domain_id"),
    ("HTTP_X_DOMAIN_NAME", "domain_name"),
    ("HTTP_OPENSTACK_SYSTEM_SCOPE", "system_scope"),
    ("HTTP_X_USER_DOMAIN_ID", "user_domain_id"),
    ("HTTP_X_PROJECT_DOMAIN_ID", "project_domain_id"),
    ("HTTP_X_USER_NAME", "user_name"),
    ("HTTP_X_TENANT_NAME", "project_name"),
    ("HTTP_X_PROJECT_NAME", "project_name"),
    ("HTTP_X_USER_DOMAIN_NAME", "user_domain_name"),
    ("HTTP_X_PROJECT_DOMAIN_NAME", "project_domain_name"),
    ("HTTP_X_SERVICE_TOKEN", "service_token"),
    ("HTTP_X_SERVICE_USER_ID", "service_user_id"),
    ("HTTP_X_SERVICE_USER_NAME", "service_user_name"),
    ("HTTP_X_SERVICE_USER_DOMAIN_ID", "service_user_domain_id"),
    ("HTTP_X_SERVICE_USER_DOMAIN_NAME", "service_user_domain_name"),
    ("HTTP_X_SERVICE_PROJECT_ID", "service_project_id"),
    ("HTTP_X_SERVICE_PROJECT_NAME", "service_project_name"),
    ("HTTP_X_SERVICE_PROJECT_DOMAIN_ID", "service_project_domain_id"),
    ("HTTP_X_SERVICE_PROJECT_DOMAIN_NAME", "service_project_domain_name"),
)


class Context(RequestContext):
    """oslo.context's own, which is made once per request and then learns who the caller is.

    PERF bench.fixed_cost: the defaults of all attributes belong to the class, because the
    constructor sets 33 of them, and `from_environ` passes them by name.
    """

    #: The id of the trace that the request belongs to, in 32 hexadecimal digits.
    trace_id: str | None = None
    #: What the request was sent with to prove who sends it, and the secrets in that once they are
    #: needed: see `berth.edge.secrets`.
    credentials: Sequence[str] = ()
    secrets: Sequence[str] | None = None
    #: The host to whose tree of providers the caller is confined; None: to no host.
    host: str | None = None

    @classmethod
    def begin(cls, request_id: str, global_request_id: str | None) -> Context:
        """The context of a request whose caller is unknown; lines of this thread show it."""
        context = cls.__new__(cls)
        context.request_id = request_id
        context.global_request_id = global_request_id
        context.update_store()
        return context

    def read_identity(self, environ: Mapping[str, Any]) -> None:
        """Take the caller from the headers of identity, as `RequestContext.from_environ` does."""
        attributes = self.__dict__
        for header, attribute in _HEADERS:
            if header in environ:
                attributes[attribute] = environ[header]
        roles = environ.get("HTTP_X_ROLES", environ.get("HTTP_X_ROLE"))
        self.roles = _roles(roles)
        # PERF bench.fixed_cost: nearly nobody is an agent, or has a role with such a name.
        if roles and AGENT in roles.lower() and AGENT in map(str.lower, self.roles):
            self._bind_to_host(environ.get(HOST))
        self.service_roles = _roles(environ.get("HTTP_X_SERVICE_ROLES"))
        is_admin_project: str = environ.get("HTTP_X_IS_ADMIN_PROJECT", "true")
        self.is_admin_project = is_admin_project.lower() == "true"

    def _bind_to_host(self, host: str | None) -> None:
        """Confine an agent to its host: that of its credentials, or the one with the user's name.

        Beside other roles that of an agent grants nothing, because those are not of one host.
        """
        if host is not None or len(self.roles) == 1:
            self.host = host or self.user_name or self.user_id
        else:
            self.roles = [role for role in self.roles if role.lower() != AGENT]


def _roles(header: str | None) -> list[str]:
    return [role.strip() for role in header.split(",")] if header else []


class _Nobody(RequestContext):
    """A context of no request."""

    def update_store(self) -> None:
        """Nothing: it is not this thread's context."""


for _name, _default in vars(_Nobody(request_id="-")).items():
    setattr(Context, _name, _default)


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


class KeystoneUnavailable(Exception):
    """Keystone cannot say whether a token is valid."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        #: Keystone answers, but refuses to validate tokens until the configuration is changed.
        self.is_refusal = is_refusal


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
        if context.user_id is None and not environ[MATCH].route.is_public:
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
    return errors.send(refused, environ, start_response, form=errors.render_unauthorized)
