# SPDX-License-Identifier: Apache-2.0
"""Keystone as the service that validates tokens, and the handling of its outages.

keystonemiddleware sends it requests with the credentials of [keystone_authtoken]. That section is
checked when the service starts; whether Keystone accepts it shows only with the first request.

This module is slow to load, and only one authentication strategy needs it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, Final
from wsgiref.types import WSGIApplication

from keystoneauth1 import exceptions, loading
from keystonemiddleware import auth_token
from oslo_config import cfg

from berth.config import ConfigurationError
from berth.config.options import KEYSTONE_GROUP, register_keystone_opts
from berth.edge.auth.identity import KeystoneUnavailable

LOG = logging.getLogger(__name__)

#: Seconds between two requests to a Keystone that gave no answer: each blocks its caller.
PAUSE_S: Final = 1.0

#: The token sent to Keystone to check whether it would validate one.
_NO_TOKEN: Final = "berth-asks-whether-tokens-are-validated"

#: The operating system's reason for a failed connection, inside an error message.
_CAUSE: Final = re.compile(r"\[Errno -?\d+\] ([\w ]+)")

#: The options that a password plugin needs: one from each group.
_NEEDED: Final = (
    ("auth_url",),
    ("username", "user_id"),
    ("password",),
    ("user_domain_name", "user_domain_id", "user_id", "default_domain_id", "default_domain_name"),
)


class IdentityServer:
    """Wraps the middleware's client of Keystone, and turns its failures into one exception.

    During an outage one caller per `PAUSE_S` tries Keystone, and the others fail at once; so a
    Keystone that hangs does not block all requests of a worker. An outage and its end are logged
    with one line each.

    Args:
        server: the middleware's own client.
        timeout_s: seconds that it waits for an answer; None: for ever.
    """

    def __init__(
        self, server: Any, *, timeout_s: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._clock = clock
        #: The reason of the current outage; None: none is known.
        self._reason: str | None = None
        #: No request is sent before this time; 0 unless there is an outage.
        self._asked_again_at = 0.0

    @property
    def www_authenticate_uri(self) -> str:
        """Where callers get tokens, if the configuration does not set it."""
        return str(self._server.www_authenticate_uri)

    def invalidate(self) -> bool:
        """Discard the service's own token."""
        return bool(self._server.invalidate())

    def verify_token(self, token: str, allow_expired: bool = False) -> Any:
        """Keystone's data of a token.

        Raises:
            KeystoneUnavailable: Keystone gave no usable answer.
            InvalidToken: the middleware's exception; the token is not valid.
        """
        if self._asked_again_at:
            now = self._clock()
            if now < self._asked_again_at:
                raise KeystoneUnavailable(self._reason or "")
            self._asked_again_at = now + PAUSE_S
        try:
            token_data = self._server.verify_token(token, allow_expired=allow_expired)
        except auth_token.InvalidToken:
            self._note_answer()
            raise
        except (
            auth_token.ServiceError,
            exceptions.ClientException,
            # From invalid certificate files, and from answers that are not Keystone's.
            OSError,
            ValueError,
            LookupError,
        ) as error:
            if isinstance(error, exceptions.EndpointNotFound):
                self._server.invalidate()
            raise self._note_outage(error) from error
        self._note_answer()
        return token_data

    def accepts(self, token: str, *, allow_expired: bool) -> bool:
        """Whether Keystone accepts a token now; True if it cannot say."""
        try:
            self.verify_token(token, allow_expired=allow_expired)
        except auth_token.InvalidToken:
            return False
        except KeystoneUnavailable:
            pass
        return True

    def probe(self) -> None:
        """Check that Keystone would validate a token.

        Raises:
            KeystoneUnavailable: it would not.
        """
        try:
            self.verify_token(_NO_TOKEN)
        except auth_token.InvalidToken:
            return

    def _note_answer(self) -> None:
        self._asked_again_at = 0.0
        if self._reason is not None:
            self._reason = None
            LOG.warning("Keystone validates tokens again.")

    def _note_outage(self, error: Exception) -> KeystoneUnavailable:
        outage = self._outage_of(error)
        if _concerns_everybody(error):
            self._asked_again_at = self._clock() + PAUSE_S
        if self._reason != str(outage):
            self._reason = str(outage)
            LOG.error("Keystone cannot validate tokens: %s. Until it can, callers get 503.", outage)
        return outage

    def _outage_of(self, error: Exception) -> KeystoneUnavailable:
        """The error, described for an operator."""
        cause = _http_error_of(error)
        if isinstance(cause, exceptions.Unauthorized):
            return KeystoneUnavailable(
                f"it refuses the credentials of [{KEYSTONE_GROUP}]", is_refusal=True
            )
        if isinstance(cause, exceptions.Forbidden):
            return KeystoneUnavailable(
                f"it does not let the user of [{KEYSTONE_GROUP}] validate tokens: give this user "
                f"the role service or admin in the project that the section names",
                is_refusal=True,
            )
        if cause is not None:
            return KeystoneUnavailable(f"it answers {cause.http_status}")
        if isinstance(error, exceptions.ConnectTimeout):
            return KeystoneUnavailable(f"it does not answer within {self._timeout_s} s")
        if isinstance(error, exceptions.EndpointNotFound):
            return KeystoneUnavailable(
                f"its catalogue has no identity endpoint as [{KEYSTONE_GROUP}]interface and "
                f"region_name want it",
                is_refusal=True,
            )
        if isinstance(error, exceptions.ConnectionError | exceptions.DiscoveryFailure):
            match = _CAUSE.search(str(error))
            return KeystoneUnavailable(
                f"it cannot be reached ({match[1].strip().lower()})"
                if match
                else "nothing answers as Keystone does at the address that is configured"
            )
        return KeystoneUnavailable(f"its answer cannot be used ({type(error).__name__})")


def open_middleware(
    application: WSGIApplication, conf: cfg.ConfigOpts
) -> tuple[WSGIApplication, IdentityServer]:
    """Put keystonemiddleware before an application; return both it and its Keystone. Sends nothing.

    Raises:
        ConfigurationError: [keystone_authtoken] is incomplete or invalid.
    """
    section = KEYSTONE_GROUP
    try:
        register_keystone_opts(conf)
        section = conf[KEYSTONE_GROUP].auth_section or section
        _check(conf, section)
        middleware = auth_token.AuthProtocol(application, {"oslo_config_config": conf})
    except exceptions.MissingRequiredOptions as error:
        raise _lacks(section, [option.dest for option in error.options]) from error
    except (exceptions.ClientException, auth_token.ConfigurationError, cfg.Error) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"[{section}] cannot be used: {reason}") from error
    server = IdentityServer(
        middleware._identity_server, timeout_s=conf[KEYSTONE_GROUP].http_connect_timeout
    )
    middleware._identity_server = server
    return middleware, server


def _check(conf: cfg.ConfigOpts, section: str) -> None:
    """Refuse errors that the middleware would notice only with the first token, or never.

    Args:
        section: the section with the credentials.
    """
    group = conf[KEYSTONE_GROUP]
    plugin = conf[section].auth_type
    if not plugin:
        raise _lacks(section, ["auth_type"])
    try:
        options = loading.get_auth_plugin_conf_options(plugin)
    except exceptions.NoMatchingPlugin as error:
        plugins = ", ".join(sorted(loading.get_available_plugin_names()))
        raise ConfigurationError(
            f"[{section}]auth_type = {plugin}: there is no such plugin; available: {plugins}"
        ) from error
    if missing := list(_missing(conf[section], {option.dest for option in options})):
        raise _lacks(section, missing)
    for name in ("cafile", "certfile", "keyfile"):
        path = group[name]
        if path and not os.access(path, os.R_OK):
            raise ConfigurationError(
                f"[{KEYSTONE_GROUP}]{name} = {path} cannot be read: correct the path, or let this "
                f"user read the file"
            )


def _missing(section: Any, options: set[str]) -> Iterator[str]:
    """The missing options that the password plugins declare optional, but cannot work without."""
    for names in _NEEDED if "password" in options else ():
        if not any(section[name] for name in names if name in options):
            yield names[0]


def _lacks(section: str, names: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"[{section}] lacks {', '.join(names)}: with [api]auth_strategy = keystone it says "
        f"as whom tokens are validated; auth_type = password takes auth_url, username, password, "
        f"project_name, user_domain_name and project_domain_name"
    )


def _http_error_of(error: BaseException | None) -> exceptions.HttpError | None:
    """The HTTP error behind an error, which the middleware replaces with one of its own."""
    while error is not None:
        if isinstance(error, exceptions.HttpError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _concerns_everybody(error: Exception) -> bool:
    """Whether every caller would get this error, whatever the token.

    An error that a strange token provokes must not lock out callers with valid ones.
    """
    cause = _http_error_of(error)
    if cause is not None:
        return cause.http_status == HTTPStatus.UNAUTHORIZED
    return isinstance(error, exceptions.RetriableConnectionFailure | exceptions.DiscoveryFailure)
