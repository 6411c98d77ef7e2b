# SPDX-License-Identifier: Apache-2.0
"""`berth demo serve`: a service of its own with the demo fleet, in which something goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import UUID

from berth import deploy
from berth.cli.columns import counted
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.fleet import demo_loading
from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import PROJECTS, DemoFleet, demo_fleet
from berth.cli.output import say
from berth.cli.sources import ConfigurationSource
from berth.client import NewConsumer, Unreachable
from berth.config import read_settings
from berth.model.paths import DRAINS, FLAVORS, path_of
from berth.model.refusals import Refused

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


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


def serve_demo(*, bind: str, hosts: int, changes: float) -> None:
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


#: How often a change is the begin or the end of a drain.
_DRAIN_SHARE: Final = 0.005
#: Drains at once; fewer where there are fewer racks.
_DRAINS_MAX: Final = 3
#: How often a virtual machine gets a lease.
_LEASE_SHARE: Final = 0.05
_REASONS: Final = ("firmware 4.2", "new power supply", "memory errors", "kernel update")


def _machine(vcpu: int, memory_mb: int, disk_gb: int) -> dict[str, Any]:
    """A request for a virtual machine on one NUMA node."""
    return {
        "groups": {
            "_CPU": {"resources": {"VCPU": vcpu, "MEMORY_MB": memory_mb}},
            "_DISK": {"resources": {"DISK_GB": disk_gb}},
        }
    }


def _with_gpu(machine: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The same, with a GPU of a model near its processors."""
    gpu = {"resources": {"VGPU": 1}, "required": [model]}
    return {
        "groups": {**machine["groups"], "_GPU": gpu},
        "together": [{"groups": ["_CPU", "_GPU"], "at": "HW_NUMA_ROOT"}],
    }


#: Flavors by name, with their share of new virtual machines.
_FLAVORS: Final[Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "small": (4, _machine(2, 4_096, 20)),
    "medium": (6, _machine(4, 8_192, 40)),
    "large": (8, _machine(8, 32_768, 80)),
    "xlarge": (2, _machine(16, 65_536, 160)),
    "gpu.t4": (1, _with_gpu(_machine(4, 16_384, 80), "CUSTOM_T4")),
    "gpu.a100": (1, _with_gpu(_machine(8, 32_768, 160), "CUSTOM_A100")),
}


class Traffic:
    """Changes the fleet, one step after the other."""

    def __init__(self, client: Client, fleet: DemoFleet, rng: Random) -> None:
        self._client = client
        self._rng = rng
        self._consumers = [consumer.uuid for consumer in fleet.consumers]
        self._wanted = len(self._consumers)
        self._racks = [labels["rack"] for labels in fleet.labels.values() if "rack" in labels]
        #: The racks that are drained now.
        self._drained: list[str] = []

    def begin(self) -> None:
        """Store the flavors, drain a rack, and announce the drain of another."""
        for name, (_, request) in _FLAVORS.items():
            self._client.send("PUT", f"{FLAVORS}/{name}", {"request": request})
        self._drain("exclude")
        self._drain("none")

    def step(self) -> None:
        """Make one change, or none if the service refuses it."""
        try:
            if self._rng.random() < _DRAIN_SHARE:
                self._begin_or_end_drain()
            elif self._rng.random() < self._chance_of_claim():
                self._claim()
            else:
                self._release()
        except Refused:
            # It does not fit, or its lease has ended before.
            pass

    def _chance_of_claim(self) -> float:
        """One half, and more the emptier the fleet is than at first."""
        lacking = (self._wanted - len(self._consumers)) / max(1, self._wanted)
        return 0.5 + 5 * lacking

    def _claim(self) -> None:
        shares = [share for share, _ in _FLAVORS.values()]
        (flavor,) = self._rng.choices(list(_FLAVORS), shares)
        project = self._rng.choice(PROJECTS)
        uuid = str(UUID(int=self._rng.getrandbits(128)))
        order = {"by": "random", "seed": self._rng.randrange(2**31)}
        is_leased = self._rng.random() < _LEASE_SHARE
        name = f"{flavor}-{uuid[:8]}"
        self._client.place(
            {"flavor": flavor},
            [NewConsumer(project_id=project, user_id="demo", name=name, uuid=uuid)],
            order=order,
            lease_seconds=self._rng.randrange(60, 3_600) if is_leased else None,
            explain=False,
        )
        self._consumers.append(uuid)

    def _release(self) -> None:
        at = self._rng.randrange(len(self._consumers))
        self._consumers[at], self._consumers[-1] = self._consumers[-1], self._consumers[at]
        self._client.send("DELETE", path_of("allocations", self._consumers.pop()))

    def _begin_or_end_drain(self) -> None:
        if len(self._drained) == min(_DRAINS_MAX, len(self._racks)):
            self._client.send("DELETE", f"{DRAINS}/rack-{self._drained.pop(0)}")
        else:
            self._drain("exclude")

    def _drain(self, effect: str) -> None:
        rack = self._rng.choice([rack for rack in self._racks if rack not in self._drained])
        reason = self._rng.choice(_REASONS)
        select = {"member_of": [f"rack={rack}"]}
        body = {"select": select, "reason": reason, "effect": effect}
        self._client.send("PUT", f"{DRAINS}/rack-{rack}", body)
        self._drained.append(rack)
