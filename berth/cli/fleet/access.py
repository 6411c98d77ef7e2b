# SPDX-License-Identifier: Apache-2.0
"""The options of every command that speaks to a service: which one, and as whom."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import OPTIONS, ConfigurationSource

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.hosts.service import Transport

#: The variables that name Keystone, or a plugin of keystoneauth that needs no Keystone.
_KEYSTONE_VARIABLES = ("OS_AUTH_URL", "OS_ENDPOINT", "OS_AUTH_TYPE")

SERVICE_OPTIONS = (
    click.option(
        "--url",
        metavar="URL",
        help="The service.  [env var: BERTH_URL; default: the database, without a service]",
    ),
    click.option("--token", metavar="TOKEN", help="Authenticate with it.  [env var: OS_TOKEN]"),
    click.option(
        "--os-cloud",
        metavar="NAME",
        help="Use this entry of clouds.yaml.  [env var: OS_CLOUD]",
    ),
)

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print the API's answer.")


@dataclass(frozen=True, slots=True)
class Access:
    """Which service a command speaks to, and as whom; the first that is given.

    1. `url` with `token`, with BERTH_USER and BERTH_PASSWORD, or with one of the next two.
    2. `cloud`, an entry of clouds.yaml.
    3. The usual variables of OpenStack's clients, such as OS_AUTH_URL.
    4. The database of the configuration, in this process.
    """

    url: str | None
    token: str | None
    cloud: str | None
    source: ConfigurationSource
    as_json: bool = False

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client of the service, or of the database.

        Raises:
            CommandFailed: the options contradict each other, or name nobody (USAGE).
            SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
        """
        # Deferred: `--help` does not need it.
        from berth.cli.fleet.client import of_transport

        with ExitStack() as stack:
            transport = connect(self, os.environ, stack)
            client: Client = of_transport(transport, as_json=self.as_json)
            yield client


def accessing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Access`, and `--json`; the command gets an `Access`."""

    def with_access(
        debug: bool,
        url: str | None,
        token: str | None,
        os_cloud: str | None,
        config_file: tuple[str, ...],
        config_dir: tuple[str, ...],
        as_json: bool,
        **options: object,
    ) -> None:
        source = ConfigurationSource(config_file, config_dir, debug)
        command(access_of(os.environ, url, token, os_cloud, source, as_json=as_json), **options)

    functools.update_wrapper(with_access, command)
    decorated: Callable[..., None] = click.pass_obj(with_access)
    for option in reversed((JSON_OPTION, *SERVICE_OPTIONS, *OPTIONS)):
        decorated = option(decorated)
    return decorated


def access_of(
    variables: Mapping[str, str],
    url: str | None,
    token: str | None,
    cloud: str | None,
    source: ConfigurationSource,
    *,
    as_json: bool = False,
) -> Access:
    """The options, completed by the environment unless they name a database.

    Raises:
        CommandFailed: they name both a service and a database (USAGE).
    """
    if source.files or source.dirs:
        if url or token or cloud:
            raise CommandFailed(
                "--config-file and --config-dir name a database, and --url, --token and --os-cloud "
                "a service: choose one",
                ExitCode.USAGE,
            )
        return Access(None, None, None, source, as_json)
    return Access(
        url or variables.get("BERTH_URL"),
        token or variables.get("OS_TOKEN"),
        cloud or variables.get("OS_CLOUD"),
        source,
        as_json,
    )


def connect(
    access: Access,
    variables: Mapping[str, str],
    stack: ExitStack,
    *,
    read_only: bool = False,
) -> Transport:
    """Connect to what was named.

    Args:
        stack: closes the database.
        read_only: change nothing in the database.

    Raises:
        CommandFailed: nobody, or only somebody, is named (USAGE), or an extra is missing
            (UNSUPPORTED).
        BadConfiguration: keystoneauth refuses what the variables say.
        SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
    """
    if access.source.files or access.source.dirs:
        return _database(access, stack, read_only=read_only)
    return (
        _with_url(access, variables)
        or _with_keystone(access, variables)
        or _database(access, stack, read_only=read_only)
    )


def _with_url(access: Access, variables: Mapping[str, str]) -> Transport | None:
    user, password = variables.get("BERTH_USER"), variables.get("BERTH_PASSWORD")
    if access.url is None or not (access.token or user):
        return None
    # Deferred: the database does not need it.
    from berth.hosts import transports

    cafile = variables.get("OS_CACERT")
    transport: Transport
    if access.token:
        transport = transports.with_token(access.url, access.token, cafile=cafile)
    else:
        transport = transports.with_http_basic(
            access.url, user or "", password or "", cafile=cafile
        )
    return transport


def _with_keystone(access: Access, variables: Mapping[str, str]) -> Transport | None:
    if access.cloud is not None:
        return _with_cloud(access.cloud, access.url)
    if any(name in variables for name in _KEYSTONE_VARIABLES):
        # Deferred: the database does not need it.
        from berth.hosts import transports

        transport: Transport = transports.with_variables(variables, url=access.url)
        return transport
    return None


def _with_cloud(cloud: str, url: str | None) -> Transport:
    # Deferred: the database does not need it.
    from berth.hosts import transports

    try:
        transport: Transport = transports.with_cloud(cloud, url=url)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openstack":
            raise
        raise CommandFailed(
            "clouds.yaml needs openstacksdk, which is not installed: pip install 'berthd[client]'",
            ExitCode.UNSUPPORTED,
        ) from error
    return transport


def _database(access: Access, stack: ExitStack, *, read_only: bool) -> Transport:
    if access.url is not None:
        raise CommandFailed(
            f"{access.url} needs authentication: --token or OS_TOKEN, BERTH_USER and "
            "BERTH_PASSWORD, --os-cloud, or OS_AUTH_URL",
            ExitCode.USAGE,
        )
    if access.token is not None:
        raise CommandFailed(
            "a token is for a service: name it with --url or BERTH_URL", ExitCode.USAGE
        )
    # Deferred: it imports the whole service.
    from berth.direct import PlacementDirect

    return stack.enter_context(PlacementDirect(access.source.load(), read_only=read_only))
