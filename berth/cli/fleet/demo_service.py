# SPDX-License-Identifier: Apache-2.0
"""`berth demo serve`: a service of its own with the demo fleet, in which something goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

from berth import deploy
from berth.cli.columns import counted
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet import demo_loading
from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import DemoFleet, demo_fleet
from berth.cli.fleet.demo_traffic import Traffic
from berth.cli.options import ConfigurationSource
from berth.cli.output import say
from berth.client import Unreachable
from berth.config import read_settings

#: Without authentication, as the fleet is nobody's; without fsync, as nobody will miss it.
_CONFIGURATION = """\
[api]
auth_strategy = noauth2

[placement_database]
connection = sqlite:///{folder}/berth.db
sqlite_synchronous = False
"""

#: Lines of the service's log that are shown if it ends by itself.
_LAST_LINES = 10


def serve_demo(bind: str, *, hosts: int, changes: float) -> None:
    """Serve the fleet, and change it, until SIGINT or SIGTERM; nothing is left behind.

    Args:
        changes: how many a second; 0 for none.

    Raises:
        CommandFailed: the service does not start, or ended by itself.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    fleet = demo_fleet(hosts)
    try:
        with tempfile.TemporaryDirectory(prefix="berth-demo-") as name:
            folder = Path(name)
            conf = folder / "placement.conf"
            conf.write_text(_CONFIGURATION.format(folder=folder))
            source = ConfigurationSource((str(conf),), (), False)
            _load(source, fleet)
            with _serving(folder, conf, bind) as (service, url):
                _change(url, fleet, changes, service)
                _raise_end(service, folder)
    except KeyboardInterrupt:
        say("the demo fleet is gone")


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _load(source: ConfigurationSource, fleet: DemoFleet) -> None:
    say(f"inventing {counted(len(fleet.providers), 'provider')}")
    deploy.open_prepared(read_settings(source.load())).dispose()
    with Access(None, None, None, source).client() as client:
        say(demo_loading.load(client, fleet))


@contextmanager
def _serving(folder: Path, conf: Path, bind: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `berth serve` for the duration of the block, once it answers; with its address."""
    command = (sys.executable, "-m", "berth.cli", "serve", "--config-file", str(conf))
    with (folder / "serve.log").open("w") as log:
        service = subprocess.Popen(
            [*command, "--bind", bind, "--workers", "2"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield service, _echo_banner(service, folder)
    finally:
        # Ctrl-C in a terminal reaches it too; it then stops already.
        service.terminate()
        service.communicate()


def _echo_banner(service: subprocess.Popen[str], folder: Path) -> str:
    """Print what the service says at start; return its address."""
    assert service.stdout is not None
    url = ""
    for line in service.stdout:
        say(line.removesuffix("\n"))
        if match := re.search(r" serves (\S+),", line):
            url = match[1]
        if line.startswith("  try "):
            return url
    service.wait()
    _raise_end(service, folder)


def _change(url: str, fleet: DemoFleet, changes: float, service: subprocess.Popen[str]) -> None:
    """Change the fleet until the service ends."""
    source = ConfigurationSource((), (), False)
    with Access(url, "admin", None, source).client() as client:
        traffic = Traffic(client, fleet, Random())
        traffic.begin()
        say("Ctrl-C ends the service and removes the fleet")
        if not changes:
            service.wait()
        due = time.monotonic()
        while service.poll() is None:
            # A worker that is replaced takes its connections with it.
            with suppress(Unreachable):
                traffic.step()
            # After a pause of the machine, what was missed is not made up for.
            due = max(due + 1 / changes, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))


def _raise_end(service: subprocess.Popen[str], folder: Path) -> NoReturn:
    lines = (folder / "serve.log").read_text().splitlines()[-_LAST_LINES:]
    say(*lines, err=True)
    raise CommandFailed("the service ended; its log above says why", ExitCode(service.returncode))
