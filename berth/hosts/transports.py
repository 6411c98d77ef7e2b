# SPDX-License-Identifier: Apache-2.0
"""Ways to a service: keystoneauth Adapters, with a token or with Keystone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final

from keystoneauth1 import loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from berth.hosts.agent_config import ServiceAccess
from berth.hosts.errors import BadConfiguration

#: Seconds that one answer is waited for: longer than a reshape of a large host takes.
_ANSWER_S_MAX: Final = 60


def of_service(access: ServiceAccess) -> Adapter:
    """The service that an agent's configuration names; its token is read now.

    Raises:
        BadConfiguration: the token cannot be read, or keystoneauth refuses the options.
    """
    if access.auth_type is not None:
        return with_plugin(
            access.auth_type,
            access.auth,
            url=access.url,
            region=access.region,
            interface=access.interface,
            cafile=access.cafile,
        )
    assert access.url is not None and access.token_file is not None, "checked when it was read"
    try:
        token = access.token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(
            [f"service.token_file: {access.token_file} cannot be read: {error}"]
        ) from error
    if not token:
        raise BadConfiguration(
            [
                f"service.token_file: {access.token_file} is empty; `berth token create` makes "
                "a token"
            ]
        )
    return with_token(access.url, token, cafile=access.cafile)


def with_token(
    url: str, token: str, headers: Mapping[str, str] | None = None, *, cafile: str | None = None
) -> Adapter:
    """The service at a URL, asked with one token.

    Args:
        headers: sent with every request besides.
        cafile: of the authorities that are trusted; None: the usual ones.
    """
    return Adapter(
        _session(Token(url, token), cafile),
        service_type="placement",
        endpoint_override=url,
        additional_headers=dict(headers or {}),
    )


def with_plugin(
    auth_type: str,
    auth: Mapping[str, Any],
    *,
    url: str | None,
    region: str | None,
    interface: str,
    cafile: str | None,
) -> Adapter:
    """The service of Keystone's catalogue, or at a URL, asked by way of a plugin of keystoneauth.

    Args:
        auth: the plugin's options.

    Raises:
        BadConfiguration: there is no such plugin, or it refuses its options.
    """
    # Looked up without loading them: some cannot be where a library of theirs is missing.
    if auth_type not in (known := entry_points(group="keystoneauth1.plugin").names):
        raise BadConfiguration(
            [f"There is no auth_type {auth_type}; there are {', '.join(sorted(known))}"]
        )
    try:
        plugin: BaseAuthPlugin = loading.get_plugin_loader(auth_type).load_from_options(**auth)
    except (ClientException, TypeError, ValueError) as error:
        raise BadConfiguration([f"auth_type {auth_type}: {error}"]) from error
    return Adapter(
        _session(plugin, cafile),
        service_type="placement",
        endpoint_override=url,
        region_name=region,
        interface=interface,
    )


def let_go(transport: Adapter) -> None:
    """Close the connections of a transport; its next request opens one."""
    transport.session.session.close()


def _session(plugin: BaseAuthPlugin, cafile: str | None) -> Session:
    return Session(auth=plugin, verify=cafile or True, timeout=_ANSWER_S_MAX)
