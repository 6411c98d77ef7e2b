# SPDX-License-Identifier: Apache-2.0
"""`berth serve`: the service on a socket.

This process prepares the database and keeps the address; `berth.cli.workers` answers requests.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import berth
from berth.cli import service_manager
from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT, Address, parse_bind, reserved
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed, naming_the_database
from berth.cli.options import ConfigurationSource, configured

if TYPE_CHECKING:
    from berth.config import Settings

LOG = logging.getLogger(__name__)


@click.command()
@configured
@click.option(
    "--bind",
    default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 takes a free one and says which.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Worker processes; all serve the same address and database.",
)
@click.option(
    "--insecure-noauth",
    is_flag=True,
    help="Listen on other than loopback addresses although nobody has to authenticate: everybody "
    "who reaches the address may read and change everything.",
)
@click.option(
    "--tls-cert",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Serve HTTPS with this certificate, in PEM, the whole chain in one file.  [default: "
    "[berth]tls_cert]",
)
@click.option(
    "--tls-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The certificate's private key, in PEM.  [default: [berth]tls_key]",
)
def serve(
    source: ConfigurationSource,
    bind: str,
    workers: int,
    insecure_noauth: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Serve the placement API.

    With no configuration at all, the database is an SQLite file of this user's, and only this
    machine may connect.
    """
    # Here, so that `--help` and the completion of options need not wait for it.
    from berth import deploy
    from berth.api.auth.keystone import KeystoneUnavailable
    from berth.cli.metrics_folder import metrics_folder
    from berth.cli.tls import read_tls
    from berth.cli.workers import run, threads_for
    from berth.config import read_settings

    conf = source.load()
    deploy.set_up_logging(conf)
    settings = read_settings(conf)
    deploy.check_supported(settings)
    deploy.check_policy(conf)
    deploy.check_health(settings)
    # Keystone may start later than we do; callers are told until then.
    with suppress(KeystoneUnavailable):
        deploy.check_keystone(settings)
    deploy.check_credentials(settings)
    tls = read_tls(tls_cert or settings.tls_cert, tls_key or settings.tls_key)
    address = replace(parse_bind(bind), scheme="https" if tls else "http")
    refuse_strangers(address, settings, insecure_noauth=insecure_noauth)
    warn_of_clear_text(address, settings)
    with reserved(address) as held:
        with naming_the_database(settings):
            deploy.open_prepared(settings).dispose()
        banner = describe(held, settings, workers=workers)

        def announce() -> None:
            click.echo(banner)
            service_manager.tell_ready(banner.partition("\n")[0])

        try:
            with metrics_folder():
                run(
                    held,
                    source,
                    workers=workers,
                    threads=threads_for(settings.admission, settings.receiving),
                    client_seconds_max=settings.receiving.client_seconds_max,
                    pinned=settings.pin_workers,
                    tls=tls,
                    announce=announce,
                )
        finally:
            deploy.settle(settings)


def refuse_strangers(address: Address, settings: Settings, *, insecure_noauth: bool) -> None:
    """Refuse to listen to other machines when nobody has to authenticate, unless told to.

    Raises:
        CommandFailed: with the ways out (UNSAFE).
    """
    if settings.auth_strategy == "noauth2" and not address.is_loopback and not insecure_noauth:
        raise CommandFailed(
            f"will not listen on {address.host} with [api]auth_strategy = noauth2, which lets "
            f"everybody do everything: bind to 127.0.0.1 or ::1, or accept that with "
            f"--insecure-noauth",
            ExitCode.UNSAFE,
        )


def warn_of_clear_text(address: Address, settings: Settings) -> None:
    """Say so where passwords or tokens of berth's own would cross a network as they are."""
    secrets = {"http_basic": "passwords", "token": "tokens"}.get(settings.auth_strategy)
    if secrets is not None and not address.is_loopback and address.scheme == "http":
        LOG.warning(
            "Clients send their %s to %s in the clear, for everybody on the way to read: serve "
            "with --tls-cert and --tls-key, or bind to 127.0.0.1 behind a proxy that has TLS",
            secrets,
            address.url,
        )


def describe(address: Address, settings: Settings, *, workers: int) -> str:
    """What is said at start: where, on what, for whom, and what to try next."""
    read = [*(settings.conf.config_file or ()), *(settings.conf.config_dir or ())]
    who = {
        "noauth2": "noauth2: callers are whoever they say they are"
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
    return "\n".join(
        [
            f"berth {berth.__version__} serves {address.url}, "
            f"{workers} worker{'s' if workers > 1 else ''}",
            f"  database        {settings.database.masked_url}",
            f"  authentication  {who[settings.auth_strategy]}",
            f"  configuration   {', '.join(read) or 'no placement.conf; environment and defaults'}",
            f"  try             curl {header[settings.auth_strategy]} "
            f"{address.url}/resource_providers",
        ]
    )
