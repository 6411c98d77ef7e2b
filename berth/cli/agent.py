# SPDX-License-Identifier: Apache-2.0
"""`berth agent`: reports what a host offers, for people who run hosts without nova."""

import logging
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

import click

from berth import config
from berth.cli import service_manager
from berth.compute.agent import Agent, Woken
from berth.compute.agent_config import (
    DEFAULT_PATH,
    AgentConfig,
    ServiceAccess,
    read_agent_config,
)
from berth.compute.drivers import load_driver
from berth.compute.drivers.provider_config import ProviderConfig, WithProviderConfig
from berth.compute.errors import BadConfiguration
from berth.compute.report_client import ReportClient
from berth.compute.service import Transport
from berth.compute.tracker import Tracker
from berth.compute.transports import with_plugin, with_token
from berth.deploy import set_up_logging

LOG = logging.getLogger(__name__)

#: Attempts of one report: conflicts with others are usual, and a service may be starting.
_ATTEMPTS_MAX: Final = 10


@click.group()
def agent() -> None:
    """Report what this host offers."""


@agent.command()
@click.option(
    "--config",
    "path",
    default=str(DEFAULT_PATH),
    show_default=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The agent's configuration.",
)
@click.option("--driver", metavar="NAME", help="Use this driver, whatever the configuration says.")
@click.option("--once", is_flag=True, help="Report once, as at a start, and end.")
@click.pass_obj
def run(debug: bool, path: Path, driver: str | None, once: bool) -> None:
    """Report this host when the agent starts, and again from time to time.

    At the start its tree may take a new shape, with what its consumers hold; what goes wrong there
    ends the agent. SIGHUP reads the configuration again.
    """
    set_up_logging(config.load(debug=debug))
    alarm = Alarm()
    first = _read(path, driver)
    node = first.node()
    client = ReportClient(_transport(first.service))
    made = Agent(
        lambda: _tracker(client, _read(path, driver), alarm),
        [node],
        interval_s=first.interval_s,
        wait=alarm.wait,
        clock=time.monotonic,
        rng=Random(),
    )
    alarm.set()
    with suppress(KeyboardInterrupt):
        made.start()
        if once:
            click.echo(f"{node.name} ({node.uuid}) is reported")
            return
        service_manager.tell_ready(f"reports {node.name} with the driver {first.driver}")
        made.run()
    service_manager.tell_stopping()


class Alarm:
    """Wakes the agent on signals."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stops = False
        self._reloads = False

    def set(self) -> None:
        """Wake on SIGTERM and Ctrl-C to stop, on SIGHUP to read the configuration again."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._reload)

    def wait(self, seconds: float) -> Woken:
        """Wait, unless woken."""
        self._woken.wait(seconds)
        self._woken.clear()
        if self._stops:
            return Woken.TO_STOP
        if self._reloads:
            self._reloads = False
            return Woken.TO_RELOAD
        return Woken.BY_TIME

    def pause(self, seconds: float) -> None:
        """Wait between two attempts; shorter where the agent is to stop.

        Raises:
            KeyboardInterrupt: it is.
        """
        if self._stops or (self._woken.wait(seconds) and self._stops):
            raise KeyboardInterrupt

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stops = True
        self._woken.set()

    def _reload(self, number: int, frame: FrameType | None) -> None:
        self._reloads = True
        self._woken.set()


def _read(path: Path, driver: str | None) -> AgentConfig:
    found = read_agent_config(path)
    return replace(found, driver=driver) if driver else found


def _tracker(client: ReportClient, found: AgentConfig, alarm: Alarm) -> Tracker:
    driver = load_driver(found.driver, found.options, used=client.get_usages)
    if found.provider_config is not None:
        additions = ProviderConfig(found.provider_config, found.state_dir / "provider-config.json")
        driver = WithProviderConfig(driver, additions)
    return Tracker(client, driver, attempts_max=_ATTEMPTS_MAX, pause=alarm.pause, rng=Random())


def _transport(access: ServiceAccess) -> Transport:
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
        raise BadConfiguration([f"{access.token_file} cannot be read: {error}"]) from error
    return with_token(access.url, token, cafile=access.cafile)
