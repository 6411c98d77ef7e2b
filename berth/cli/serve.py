# SPDX-License-Identifier: Apache-2.0
"""`berth serve`: the service on a socket.

This process prepares the database and reserves the address; the workers of
`berth.edge.server.workers` answer requests.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from wsgiref.types import WSGIApplication

import berth
from berth import deploy
from berth.cli import service_manager
from berth.cli.address import Address, parse_bind, reserved
from berth.cli.failure import CommandFailed, ExitCode, naming_the_database
from berth.cli.output import say
from berth.cli.sources import ConfigurationSource
from berth.cli.tls import read_tls
from berth.config import Settings, read_settings
from berth.edge.page import PAGE
from berth.edge.server.metrics_folder import metrics_folder
from berth.edge.server.workers import NoWorkerStarts, run

LOG = logging.getLogger(__name__)


def serve(
    source: ConfigurationSource,
    *,
    bind: str,
    workers: int,
    insecure_noauth: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Prepare the database, reserve the address, and run the workers until a signal ends them.

    Raises:
        CommandFailed: it cannot serve with these options.
        BerthError, ConfigurationError: the application cannot be built.
    """
    conf = source.load()
    deploy.set_up_logging(conf)
    settings = read_settings(conf)
    deploy.check_before_serving(settings)
    tls = read_tls(tls_cert or settings.tls_cert, tls_key or settings.tls_key)
    address = replace(parse_bind(bind), scheme="https" if tls else "http")
    refuse_strangers(address, settings, insecure_noauth=insecure_noauth)
    warn_of_clear_text(address, settings)
    with reserved(address) as listening:
        with naming_the_database(settings):
            deploy.open_prepared(settings).dispose()
        banner = describe(listening, settings, workers=workers)

        def announce() -> None:
            say(*banner)
            service_manager.tell_ready(banner[0])

        try:
            with metrics_folder():
                run(
                    partial(load_application, source),
                    settings,
                    host=listening.host,
                    port=listening.port,
                    workers=workers,
                    tls=tls,
                    announce=announce,
                    stopping=service_manager.tell_stopping,
                )
        except NoWorkerStarts as error:
            raise CommandFailed(
                "no worker can start; the log above says why", ExitCode.WORKERS
            ) from error
        finally:
            deploy.leave_database(settings)


def load_application(source: ConfigurationSource, stopping: Event) -> tuple[WSGIApplication, float]:
    """In a worker: read the configuration again and build the application.

    Returns:
        The application, and for how many seconds it waits for a client.

    Raises:
        BerthError, ConfigurationError: it cannot be built.
    """
    conf = source.load()
    deploy.set_up_logging(conf)
    # The parent has compared the sums of usage, for all workers and those that replace them.
    application = deploy.load_application(conf, recount=False, stopping=stopping)
    return application, read_settings(conf).receiving.client_seconds_max


def refuse_strangers(address: Address, settings: Settings, *, insecure_noauth: bool) -> None:
    """Refuse to serve other machines without authentication, unless the user insists.

    Raises:
        CommandFailed: names the alternatives (UNSAFE).
    """
    if settings.auth_strategy == "noauth2" and not address.is_loopback and not insecure_noauth:
        raise CommandFailed(
            f"will not listen on {address.host} with [api]auth_strategy = noauth2, which lets "
            f"everyone do everything: bind to 127.0.0.1 or ::1, or accept the risk with "
            f"--insecure-noauth",
            ExitCode.UNSAFE,
        )


def warn_of_clear_text(address: Address, settings: Settings) -> None:
    """Warn if passwords or tokens would cross a network unencrypted."""
    secrets = {"http_basic": "passwords", "token": "tokens"}.get(settings.auth_strategy)
    if secrets is not None and not address.is_loopback and address.scheme == "http":
        LOG.warning(
            "Clients send their %s to %s unencrypted: serve with --tls-cert and --tls-key, or bind "
            "to 127.0.0.1 behind a proxy with TLS",
            secrets,
            address.url,
        )


def describe(address: Address, settings: Settings, *, workers: int) -> list[str]:
    """The banner at startup: address, database, authentication, page, and a request to try."""
    read = [*(settings.conf.config_file or ()), *(settings.conf.config_dir or ())]
    who = {
        "noauth2": "noauth2: off, clients may claim to be anyone"
        + ("" if address.is_loopback else ", FROM ANYWHERE"),
        "keystone": "keystone",
        "http_basic": f"http_basic: the users of {settings.user_file}",
        "token": f"token: the tokens of {settings.token_file}",
    }
    header = {
        "noauth2": "-H 'X-Auth-Token: admin'",
        "keystone": '-H "X-Auth-Token: $TOKEN"',
        "http_basic": "-u USER",
        "token": '-H "Authorization: Bearer $TOKEN"',
    }
    return [
        f"berth {berth.__version__} serves {address.url}, "
        f"{workers} worker{'s' if workers > 1 else ''}",
        f"  database        {settings.database.masked_url}",
        f"  authentication  {who[settings.auth_strategy]}",
        f"  configuration   {', '.join(read) or 'no placement.conf; environment and defaults'}",
        *([f"  page            {address.url}{PAGE}"] if settings.page else []),
        f"  try             curl {header[settings.auth_strategy]} {address.url}/resource_providers",
    ]
