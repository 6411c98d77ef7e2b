# SPDX-License-Identifier: Apache-2.0
"""Connections to a service: keystoneauth Adapters, with a token, a password or Keystone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from keystoneauth1 import loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from keystoneauth1.http_basic import HTTPBasicAuth
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from berth.hosts.errors import BadConfiguration

if TYPE_CHECKING:
    # At run time it would bring the drivers and the tracker to every command that has a client.
    from berth.hosts.agent_config import ServiceAccess

#: How long to wait for one response, in seconds: longer than a reshape of a large host takes.
_ANSWER_S_MAX: Final = 60


def of_service(access: ServiceAccess) -> Adapter:
    """Connect to the service of an agent's configuration; its token is read now.

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
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadConfiguration(
            f"service.token_file: cannot read {access.token_file}: {reason}"
        ) from error
    if not token:
        raise BadConfiguration(
            f"service.token_file: {access.token_file} is empty; `berth token create` makes a token"
        )
    return with_token(access.url, token, cafile=access.cafile)


def with_token(
    url: str, token: str, headers: Mapping[str, str] | None = None, *, cafile: str | None = None
) -> Adapter:
    """Connect to the service at a URL, with a token.

    Args:
        headers: sent with every request.
        cafile: the trusted certificate authorities; None: the system's.
    """
    return Adapter(
        _session(Token(url, token), cafile),
        service_type="placement",
        endpoint_override=url,
        additional_headers=dict(headers or {}),
    )


def with_http_basic(url: str, user: str, password: str, *, cafile: str | None = None) -> Adapter:
    """Connect to the service at a URL, with a user's name and password."""
    plugin = HTTPBasicAuth(endpoint=url, username=user, password=password)
    return with_session(_session(plugin, cafile), url=url, region=None, interface=None)


def with_session(
    session: Session, *, url: str | None, region: str | None, interface: str | list[str] | None
) -> Adapter:
    """Connect with a session, to the service in Keystone's catalogue, or at a URL."""
    return Adapter(
        session,
        service_type="placement",
        endpoint_override=url,
        region_name=region,
        interface=interface,
    )


def with_variables(variables: Mapping[str, str], *, url: str | None) -> Adapter:
    """Connect with the usual variables of OpenStack's clients, such as OS_AUTH_URL.

    Args:
        variables: the environment. OS_AUTH_TYPE names a plugin of keystoneauth; the value of each
            of its options is in the variable of that name, in capitals and after `OS_`.
        url: the service; None: the one in Keystone's catalogue.

    Raises:
        BadConfiguration: see `with_plugin`.
    """
    is_token = "OS_TOKEN" in variables and "OS_USERNAME" not in variables
    auth_type = variables.get("OS_AUTH_TYPE") or ("token" if is_token else "password")
    return with_plugin(
        auth_type,
        _values_of(auth_type, variables),
        url=url or variables.get("OS_PLACEMENT_ENDPOINT_OVERRIDE"),
        region=variables.get("OS_REGION_NAME"),
        interface=variables.get("OS_INTERFACE", "public"),
        cafile=variables.get("OS_CACERT"),
    )


def _values_of(auth_type: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The values that variables give to a plugin's options; none if there is no such plugin."""
    if auth_type not in entry_points(group="keystoneauth1.plugin").names:
        return {}
    options = loading.get_plugin_loader(auth_type).get_options()
    names = {
        option.dest: [option.dest, *(former.dest for former in option.deprecated)]
        for option in options
    }
    return {
        dest: variables[variable]
        for dest, spellings in names.items()
        for variable in [f"OS_{name.upper()}" for name in reversed(spellings)]
        if variable in variables
    }


def with_cloud(name: str, *, url: str | None) -> Adapter:
    """Connect with an entry of clouds.yaml.

    Args:
        url: the service; None: the cloud's.

    Raises:
        ModuleNotFoundError: openstacksdk is not installed.
        BadConfiguration: there is no such cloud, or its entry is incomplete.
    """
    # Deferred: an extra installs it.
    from openstack.config import OpenStackConfig
    from openstack.exceptions import ConfigException

    try:
        cloud = OpenStackConfig().get_one(cloud=name)
        session = cloud.get_session()
    except (ConfigException, ClientException) as error:
        raise BadConfiguration(f"cloud {name}: {str(error).strip()}") from error
    return with_session(
        session,
        url=url or cloud.get_endpoint("placement"),
        region=cloud.get_region_name("placement"),
        interface=cloud.get_interface("placement"),
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
    """Connect with a plugin of keystoneauth, to the service in Keystone's catalogue, or at a URL.

    Args:
        auth: the plugin's options.

    Raises:
        BadConfiguration: there is no such plugin, or it refuses its options.
    """
    # Looked up without being loaded: some plugins need libraries that are not installed.
    if auth_type not in (installed := entry_points(group="keystoneauth1.plugin").names):
        raise BadConfiguration(
            f"Unknown auth_type {auth_type}; the installed ones are {', '.join(sorted(installed))}"
        )
    try:
        plugin: BaseAuthPlugin = loading.get_plugin_loader(auth_type).load_from_options(**auth)
    except (ClientException, TypeError, ValueError) as error:
        raise BadConfiguration(f"auth_type {auth_type}: {error}") from error
    return with_session(_session(plugin, cafile), url=url, region=region, interface=interface)


def let_go(transport: Adapter) -> None:
    """Close the connections of a transport; its next request opens a new one."""
    transport.session.session.close()


def _session(plugin: BaseAuthPlugin, cafile: str | None) -> Session:
    return Session(auth=plugin, verify=cafile or True, timeout=_ANSWER_S_MAX)
