# SPDX-License-Identifier: Apache-2.0
"""The systemd units: systemd accepts them, and berth works under their restrictions."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from berth.edge.server.stopping import STOP_S_MAX
from tests.client import Client
from tests.contrib import unit
from tests.contrib.unit import Unit
from tests.docs.pages import ROOT
from tests.e2e.serving import PATIENCE, environment, stop, wait_until
from tests.exposed import scrape

FOLDER = ROOT / "contrib" / "systemd"
UNIT = Unit(FOLDER / "berth.service")
AGENT = Unit(FOLDER / "berth-agent.service")
BERTH = "/opt/berth/bin/berth"

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@contextmanager
def manager(home: Path) -> Iterator[socket.socket]:
    """A socket on which a service manager receives notifications."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(home / "notify"))
        listening.settimeout(PATIENCE)
        yield listening


def said(listening: socket.socket) -> dict[str, str]:
    """The next notification of a service."""
    return dict(line.split("=", 1) for line in listening.recv(4096).decode().splitlines())


def confined(
    home: Path, *command: str, of: Unit = UNIT, **variables: str
) -> subprocess.Popen[bytes]:
    """A command under the restrictions of a unit."""
    return subprocess.Popen(
        [sys.executable, "-m", unit.__name__, str(of.path), *command],
        env=environment(home, **variables),
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=(home / "stderr").open("w"),
        start_new_session=True,
    )


@needs_systemd
@pytest.mark.parametrize(
    ("which", "drop_in"),
    [
        (UNIT, None),
        (UNIT, "privileged-port.conf"),
        (AGENT, None),
        (AGENT, "berth-agent-libvirt.conf"),
        (AGENT, "berth-agent-nvidia.conf"),
    ],
    ids=str,
)
def test_systemd_takes_the_units(tmp_path: Path, which: Unit, drop_in: str | None) -> None:
    """Without any message, once their program and users exist."""
    here = tmp_path / which.path.name
    here.write_text(
        which.path.read_text()
        .replace(BERTH, shutil.which("true") or "")
        .replace(f"={which['User']}\n", "=root\n")
    )
    if drop_in:
        (tmp_path / f"{here.name}.d").mkdir()
        shutil.copy(FOLDER / drop_in, tmp_path / f"{here.name}.d")
    verified = subprocess.run(
        ["systemd-analyze", "verify", here], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("which", [UNIT, AGENT], ids=str)
def test_systemd_finds_little_exposed(which: Unit) -> None:
    """On its scale from 0 to 10; the rest is that berth uses the network and creates threads."""
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=15", which.path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="no systemd-sysusers")
@pytest.mark.parametrize(
    ("which", "sysusers"), [(UNIT, "berth.sysusers"), (AGENT, "berth-agent.sysusers")], ids=str
)
def test_the_users_can_be_made(tmp_path: Path, which: Unit, sysusers: str) -> None:
    """If no deployment has created them before."""
    (tmp_path / "etc").mkdir()
    made = subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", FOLDER / sysusers],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (user,) = [
        line.split(":")
        for line in (tmp_path / "etc/passwd").read_text().splitlines()
        if line.startswith(f"{which['User']}:")
    ]
    assert user[5] == f"/var/lib/{which['StateDirectory']}"


@needs_systemd
def test_berth_serves_in_the_confinement_of_the_unit(tmp_path: Path) -> None:
    """With the unit's own command; it notifies systemd when it answers and when it stops."""
    conf = tmp_path / "placement.conf"
    conf.write_text(
        f"[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n"
    )
    program, *arguments = UNIT.command(
        {"BERTH_BIND": "127.0.0.1:0", "BERTH_OPTIONS": f"--config-file {conf}"}
    )
    assert program == BERTH
    here = str(Path(sys.executable).with_name("berth"))
    with manager(tmp_path) as listening:
        service = confined(tmp_path, here, *arguments, NOTIFY_SOCKET=f"{tmp_path}/notify")
        try:
            ready = said(listening)
            match = re.search(r"serves (\S+), 2 workers", ready["STATUS"])
            assert ready["READY"] == "1" and match, (tmp_path / "stderr").read_text()
            client = Client.at(match[1])
            assert client.post("/resource_providers", json={"name": "cn1"}).status == 200
            asked = "/allocation_candidates?resources=VCPU:1"
            assert client.get(asked).json["allocation_requests"] == []
            wait_until(
                lambda: scrape(client).value("berth_workers") == 2, "both workers to be told of"
            )
            service.send_signal(signal.SIGTERM)
            assert said(listening)["STOPPING"] == "1"
            assert service.wait(PATIENCE) == ExitCode.OK
        finally:
            stop(service)


@needs_systemd
def test_the_agent_reads_its_host_in_the_confinement_of_its_unit(tmp_path: Path) -> None:
    """With the driver that reads everything from the kernel; the unit's command is `run`."""
    assert AGENT.command({})[:3] == [BERTH, "agent", "run"]
    here = str(Path(sys.executable).with_name("berth"))
    process = confined(tmp_path, here, "agent", "show", "--driver", "linux", of=AGENT)
    assert process.wait(PATIENCE) == ExitCode.OK, (tmp_path / "stderr").read_text()


@needs_systemd
@pytest.mark.parametrize(
    "forbidden",
    [
        "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)",
        "import os; os.chroot('.')",
        "import socket; socket.socket(socket.AF_NETLINK)",
    ],
)
def test_the_confinement_confines(tmp_path: Path, forbidden: str) -> None:
    """Shows that the test above can fail: even root may not do what the unit forbids."""
    process = confined(tmp_path, sys.executable, "-c", forbidden)
    assert process.wait(PATIENCE) == 1
    assert "PermissionError" in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize(
    ("which", "others"), [(UNIT, {ExitCode.SCHEMA, ExitCode.UNSAFE}), (AGENT, set())], ids=str
)
def test_what_does_not_go_away_by_itself_is_not_tried_again(
    which: Unit, others: set[ExitCode]
) -> None:
    """A restart cannot fix a configuration; a database or a service may come back."""
    prevented = {int(code) for code in which["RestartPreventExitStatus"].split()}
    assert which["Restart"] == "on-failure"
    assert prevented == {ExitCode.CONFIGURATION, ExitCode.USAGE, ExitCode.UNSUPPORTED, *others}


def test_requests_in_flight_have_the_time_that_berth_gives_them() -> None:
    """systemd kills only what berth would have given up, and lets berth stop its workers."""
    assert int(UNIT["TimeoutStopSec"]) > STOP_S_MAX
    assert UNIT["KillMode"] == "mixed"
