# SPDX-License-Identifier: Apache-2.0
"""Which service or database a command uses, and as whom: one rule for all of them.

Source: docs/command-line.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth.cli.failure import CommandFailed, ExitCode, Misused
from berth.cli.sources import ConfigurationSource
from berth.extras import ServiceNotInstalled, needs_service

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.hosts.agent_config import ServiceAccess
    from berth.hosts.service import Transport


#: The variables that name Keystone, or a plugin of keystoneauth that needs no Keystone.
_KEYSTONE_VARIABLES = ("OS_AUTH_URL", "OS_ENDPOINT", "OS_AUTH_TYPE")

#: What names a service instead of a database.
_INSTEAD: Final = "--url or BERTH_URL"


@dataclass(frozen=True, slots=True)
class Access:
    """Which service a command uses, and as whom; the first that is given.

    1. The database of `source`, if that has files.
    2. `url` with `token`, with BERTH_USER and BERTH_PASSWORD, or with one of the next two.
    3. `cloud`, an entry of clouds.yaml.
    4. The usual variables of OpenStack's clients, such as OS_AUTH_URL.
    5. The service of client.yaml.
    6. The database of the configuration in the usual places, in this process.
    """

    url: str | None
    token: str | None
    cloud: str | None
    source: ConfigurationSource
    as_json: bool = False

    def is_of_service(self, variables: Mapping[str, str]) -> bool:
        """Whether it is a service, and not a database.

        Args:
            variables: the environment.
        """
        return not self.source.is_given and bool(
            self.url
            or self.cloud
            or any(name in variables for name in _KEYSTONE_VARIABLES)
            or find_client_file(variables)
        )

    @contextmanager
    def client(self, *, creates: bool = False) -> Iterator[Client]:
        """A client of the service, or of the database.

        Args:
            creates: create the database if it does not exist, and change it even if nothing names
                it.

        Raises:
            CommandFailed: the options contradict each other, or name nobody (USAGE); there is no
                such database (DATABASE); or the command would change one that nothing names
                (UNSAFE).
            SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
        """
        # Deferred: `--help` does not need it.
        from berth.cli.fleet.client import of_transport

        with ExitStack() as stack:
            transport = connect(self, os.environ, stack, creates=creates)
            client: Client = of_transport(transport, as_json=self.as_json)
            yield client


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
        CommandFailed: they name both a service and a database, or the URL is none (USAGE).
    """
    if source.is_given:
        if url or token or cloud:
            raise Misused(
                "--config-file and --config-dir name a database, and --url, --token and --os-cloud "
                "a service: choose one"
            )
        return Access(None, None, None, source, as_json)
    return Access(
        named_url(variables, url),
        token or variables.get("OS_TOKEN") or None,
        cloud or variables.get("OS_CLOUD") or None,
        source,
        as_json,
    )


def service_url(
    variables: Mapping[str, str], url: str | None, source: ConfigurationSource
) -> str | None:
    """The URL of the service that the options, the environment or client.yaml name, if any.

    Raises:
        CommandFailed: it is not the URL of a service (USAGE).
        BadConfiguration: client.yaml is wrong.
    """
    named = named_url({} if source.is_given else variables, url)
    if named is None and not source.is_given and (path := find_client_file(variables)):
        return read_client_file(path).url
    return named


def named_url(variables: Mapping[str, str], url: str | None) -> str | None:
    """The URL of an option, or else of BERTH_URL.

    Raises:
        CommandFailed: it is not the URL of a service (USAGE).
    """
    named = url or variables.get("BERTH_URL") or None
    if named is not None and not named.startswith(("http://", "https://")):
        example = "127.0.0.1:8778" if "://" in named else named
        raise Misused(
            f"{'--url' if url else 'BERTH_URL'} must begin with http:// or https://, as in "
            f"http://{example}"
        )
    return named


def connect(
    access: Access,
    variables: Mapping[str, str],
    stack: ExitStack,
    *,
    read_only: bool = False,
    changes: bool = False,
    creates: bool = False,
    is_quiet: bool = False,
) -> Transport:
    """Connect to what was named; of a database, say on stderr which it is.

    Args:
        stack: closes the database.
        read_only: change nothing in the database.
        changes: the command changes something: refuse now what a database that nothing names
            refuses to the first request.
        creates: see `Access.client`.
        is_quiet: say nothing.

    Raises:
        CommandFailed: nobody, or only somebody, is named (USAGE), or an extra is missing
            (UNSUPPORTED); see `Access.client` for databases.
        BadConfiguration: keystoneauth refuses what the variables or client.yaml say.
        SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
    """
    if access.is_of_service(variables):
        transport = (
            _with_url(access, variables)
            or _with_keystone(access, variables)
            or _with_file(access, variables)
        )
        if transport is not None:
            return transport
    if access.url is not None:
        raise Misused(
            f"{access.url} needs authentication: --token or OS_TOKEN, BERTH_USER and "
            "BERTH_PASSWORD, --os-cloud, or OS_AUTH_URL"
        )
    if access.token is not None:
        raise Misused("a token is for a service: name it with --url or BERTH_URL")
    try:
        with needs_service():
            # Deferred: they import the whole service.
            from berth.cli import local_database
            from berth.direct import PlacementDirect, ReadOnly

            settings = local_database.database_of(
                access.source,
                changes=changes,
                must_exist=not creates,
                is_quiet=is_quiet,
                instead=_INSTEAD,
            )

            @contextmanager
            def refusing_changes() -> Iterator[None]:
                try:
                    yield
                except ReadOnly as error:
                    raise local_database.refusal(settings, _INSTEAD) from error

            stack.enter_context(refusing_changes())
            read_only |= not (creates or local_database.is_named(settings))
            return stack.enter_context(PlacementDirect(settings.conf, read_only=read_only))
    except ServiceNotInstalled as error:
        raise CommandFailed(
            "no service is named: set --url or BERTH_URL, and --token or OS_TOKEN. To open a "
            "database without a service, install berth's own: pip install 'berthd[service]'",
            ExitCode.UNSUPPORTED,
        ) from error


def _with_url(
    access: Access, variables: Mapping[str, str], *, cafile: str | None = None
) -> Transport | None:
    user, password = variables.get("BERTH_USER"), variables.get("BERTH_PASSWORD")
    if access.url is None or not (access.token or user):
        return None
    # Deferred: the database does not need it.
    from berth.hosts.transports import with_http_basic, with_token

    trusted = variables.get("OS_CACERT") or cafile
    if access.token:
        return with_token(access.url, access.token, cafile=trusted)
    return with_http_basic(access.url, user or "", password or "", cafile=trusted)


def _with_keystone(access: Access, variables: Mapping[str, str]) -> Transport | None:
    if access.cloud is not None:
        return _with_cloud(access.cloud, access.url)
    if any(name in variables for name in _KEYSTONE_VARIABLES):
        # Deferred: the database does not need it.
        from berth.hosts.transports import with_variables

        return with_variables(variables, url=access.url)
    return None


def _with_cloud(cloud: str, url: str | None) -> Transport:
    # Deferred: the database does not need it.
    from berth.hosts.transports import with_cloud

    try:
        return with_cloud(cloud, url=url)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openstack":
            raise
        raise CommandFailed(
            "clouds.yaml needs openstacksdk, which is not installed: pip install 'berthd[client]'",
            ExitCode.UNSUPPORTED,
        ) from error


def _with_file(access: Access, variables: Mapping[str, str]) -> Transport | None:
    """The service of client.yaml; a token or a user that the caller names replaces the file's."""
    path = find_client_file(variables)
    # The file's secret is for the file's service alone.
    if path is None or access.url is not None:
        return None
    # Deferred: the database does not need it.
    from berth.hosts.transports import of_service

    service = read_client_file(path)
    own: Transport | None = _with_url(
        replace(access, url=service.url), variables, cafile=service.cafile
    )
    return own or of_service(service)


# --- client.yaml: the service that commands use if neither options nor variables name one ---------
#
#     url: https://berth.example.org:8778
#     token_file: token
#
# It has the members of `service` in an agent's configuration. A relative path starts at the file.

#: The file of every user of a machine.
_OF_MACHINE: Final = Path("/etc/berth/client.yaml")


def find_client_file(variables: Mapping[str, str]) -> Path | None:
    """The user's file, or else the machine's; None if there is neither.

    Args:
        variables: the environment.
    """
    folder = Path(variables.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    of_user = folder / "berth" / "client.yaml"
    return next((path for path in (of_user, _OF_MACHINE) if path.is_file()), None)


def read_client_file(path: Path) -> ServiceAccess:
    """Read a file.

    Raises:
        BadConfiguration: with every fault.
    """
    # Deferred: most commands have no such file.
    from berth.hosts.agent_config import ServiceAccess
    from berth.hosts.validation import convert, load_yaml

    body = load_yaml(path) or {}
    if isinstance(body, dict):
        # People, unlike agents, use the public endpoint of a catalogue.
        body = {"interface": "public", **body}
        if isinstance(token_file := body.get("token_file"), str) and token_file:
            body["token_file"] = str(path.parent / Path(token_file).expanduser())
    return convert(body, ServiceAccess, path)
