# SPDX-License-Identifier: Apache-2.0
"""The scripts that claim GPUs for jobs, on a host whose GPUs a stand-in for nvidia-smi has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.contrib.test_monitoring import CONTRIB
from tests.e2e.serving import serving, wait_until

# One process has the host.
pytestmark = pytest.mark.xdist_group("gpus")

GPUS = CONTRIB / "gpus"

#: Of two GPUs: by index or PCI address, the address or the UUID.
NVIDIA_SMI = """#!/bin/sh
case "$1 $2" in
"--id=0 --query-gpu=pci.bus_id") echo 00000000:4A:00.0 ;;
"--id=1 --query-gpu=pci.bus_id") echo 00000000:4B:00.0 ;;
"--id=0000:4a:00.0 --query-gpu=uuid") echo GPU-aaaa ;;
"--id=0000:4b:00.0 --query-gpu=uuid") echo GPU-bbbb ;;
*) exit 9 ;;
esac
"""


class Host:
    """The host gpu01, with two GPUs, and its scripts."""

    def __init__(self, folder: Path, url: str) -> None:
        tools = folder / "tools"
        tools.mkdir()
        (tools / "nvidia-smi").write_text(NVIDIA_SMI)
        (tools / "nvidia-smi").chmod(0o755)
        for script in GPUS.iterdir():
            # Slurm's scripts read a file of the machine.
            text = script.read_text().replace("/etc/berth/gpus.env", f"{folder}/gpus.env")
            (tools / script.name).write_text(text)
            (tools / script.name).chmod(0o755)
        self._tools = tools
        self.environment = {
            "PATH": f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "BERTH_URL": url,
            "OS_TOKEN": "admin",
            "BERTH_HOST": "gpu01",
        }
        settings = "\n".join(f"{name}={value}" for name, value in self.environment.items())
        (folder / "gpus.env").write_text(f"{settings}\n")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return _run(command, self.environment)

    def slurm(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script as Slurm does: with the variables of the job, and no others."""
        return _run([str(self._tools / script)], variables)

    def held(self) -> str:
        """The last line of who holds something here."""
        return self.run("berth", "who", "gpu01").stdout.splitlines()[-1]


def _run(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host in a service."""
    folder = tmp_path_factory.mktemp("gpus")
    home = folder / "service"
    home.mkdir()
    # Only the scripts under test sweep leases.
    with serving(home, variables={"OS_BERTH__LEASE_SWEEP_SECONDS": "0"}) as service:
        host = Host(folder, service.url)
        assert host.run("berth", "provider", "create", "gpu01").returncode == 0
        for bus in ("4a", "4b"):
            name = f"gpu01_pci_0000_{bus}_00_0"
            host.run("berth", "provider", "create", name, "--parent", "gpu01")
            assert host.run("berth", "inventory", "set", name, "PGPU=1").returncode == 0
        yield host


def test_a_job_sees_its_gpus_alone(host: Host) -> None:
    """While it runs they are its own; afterwards they are free, and its exit code is that of the
    command."""
    script = 'echo "$CUDA_VISIBLE_DEVICES"; berth who gpu01; gpu-run bob/late 1 true; exit 7'
    ran = host.run("gpu-run", "alice/job-17", "2", "sh", "-c", script)
    assert ran.returncode == 7, ran.stderr
    devices, _, row, count = ran.stdout.splitlines()
    assert sorted(devices.split(",")) == ["GPU-aaaa", "GPU-bbbb"]
    assert row.startswith("alice/job-17") and count == "1 consumer"
    # Meanwhile nobody else gets one, and is told why.
    assert "No host fits" in ran.stderr and "bob/late" not in host.held()
    assert host.held() == "0 consumers"


def test_an_interrupted_job_gives_its_gpus_back(host: Host) -> None:
    """The shell ends by SIGTERM as it does by itself."""
    ran = host.run("gpu-run", "alice/job-18", "1", "sh", "-c", "kill -TERM $PPID; sleep 0.1")
    assert ran.returncode == 143
    assert host.held() == "0 consumers"


def test_what_slurm_gives_is_recorded(host: Host) -> None:
    """And a GPU that somebody holds in berth is not given out a second time."""
    job = {"SLURM_JOB_ID": "42", "SLURM_JOB_USER": "alice", "SLURM_JOB_GPUS": "1"}
    claimed = host.slurm("slurm-prolog", **job)
    assert claimed.returncode == 0, claimed.stderr
    assert "gpu01_pci_0000_4b_00_0: PGPU 1" in claimed.stdout
    other = {**job, "SLURM_JOB_ID": "43"}
    assert host.slurm("slurm-prolog", **other).returncode == 11
    assert host.slurm("slurm-epilog", **job).returncode == 0
    assert host.held() == "0 consumers"
    assert host.slurm("slurm-prolog", SLURM_JOB_ID="44", SLURM_JOB_USER="bob").returncode == 0
    assert host.held() == "0 consumers"


def test_a_job_renews_its_lease_while_it_runs(host: Host) -> None:
    """It outlasts the lease; what it claimed is free afterwards."""
    script = "sleep 4; berth lease sweep; exit 7"
    ran = host.run("gpu-run", "--lease", "3s", "alice/job-19", "2", "sh", "-c", script)
    assert ran.returncode == 7, ran.stderr
    assert "leased until" in ran.stderr and "released" in ran.stderr
    assert ran.stdout == "released 0 consumers\n"


def test_what_a_crashed_job_leaves_behind_is_given_back(host: Host) -> None:
    """Everything of the job is killed, and nobody renews any more."""
    command = ["gpu-run", "--lease", "2s", "alice/job-20", "1", "sleep", "60"]
    with subprocess.Popen(
        command,
        env=host.environment,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None and "leased until" in running.stderr.readline()
        os.killpg(running.pid, signal.SIGKILL)

    def is_free() -> bool:
        host.run("berth", "lease", "sweep")
        return host.held() == "0 consumers"

    wait_until(is_free, "the lease to end")


def test_a_job_whose_gpus_are_gone_is_ended(host: Host) -> None:
    """They may be someone else's."""
    script = "berth release alice/job-21 > /dev/null; exec sleep 60"
    ran = host.run("gpu-run", "--lease", "2s", "alice/job-21", "1", "sh", "-c", script)
    assert ran.returncode == 128 + signal.SIGTERM, ran.stderr
