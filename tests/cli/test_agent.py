# SPDX-License-Identifier: Apache-2.0
"""`berth agent run`: a host that reports what it offers, as its operator starts it."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth.cli.exit_codes import ExitCode
from berth.compute.service import Service
from berth.compute.transports import with_token
from tests.cli.test_commands import assert_fails
from tests.e2e.serving import BERTH, PATIENCE, environment, run_berth, serving, wait_until

HOST = "host-1"

NODE_UUID = "6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a10"


@pytest.fixture(scope="module")
def placement(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A service with tokens of its own: its URL, and the token of a host."""
    home = tmp_path_factory.mktemp("service")
    conf = home / "placement.conf"
    conf.write_text(
        "[api]\nauth_strategy = token\n[placement_database]\n"
        f"connection = sqlite:///{home}/berth.db\n"
    )
    made = run_berth(
        home, "token", "create", "--user", "hosts", "--role", "service", "--config-file", str(conf)
    )
    with serving(home, "--config-file", str(conf)) as service:
        yield service.url, made.stdout.strip()


class Host:
    """A host that a file describes, and its agent's configuration."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder = folder
        self.service = Service(with_token(url, token))
        self.config = folder / "agent.yaml"
        self._providers = folder / "providers.yaml"
        (folder / "token").write_text(f"{token}\n")
        self.config.write_text(
            f"service: {{url: '{url}', token_file: {folder}/token}}\n"
            f"driver: static\n"
            f"options: {{file: {folder}/providers.yaml, state: {folder}/owned.json}}\n"
            f"node: {{name: {HOST}, uuid: {NODE_UUID}}}\n"
            f"interval_s: 3600\n"
            f"state_dir: {folder}/state\n"
        )

    def offers(self, **classes: int) -> None:
        """Write down what the host has."""
        records = ", ".join(f"{name}: {{total: {total}}}" for name, total in classes.items())
        self._providers.write_text(f"inventories: {{{records}}}\n")

    def reported(self) -> dict[str, int]:
        """What the service knows of it."""
        path = f"/resource_providers/{NODE_UUID}/inventories"
        inventories = self.service.get(path)["inventories"]
        return {name: record["total"] for name, record in inventories.items()}

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """`berth agent run ...`, to its end."""
        return run_berth(self.folder, "agent", "run", "--config", str(self.config), *options)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """An agent that is ready, and stopped in the end."""
        path = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE)
            process = subprocess.Popen(
                [*BERTH, "agent", "run", "--config", str(self.config)],
                env=environment(self.folder, NOTIFY_SOCKET=path),
            )
            try:
                assert manager.recv(1000).startswith(b"READY=1")
                yield process
            finally:
                process.kill()
                process.wait()


@pytest.fixture
def host(tmp_path: Path, placement: tuple[str, str]) -> Host:
    """A host with eight processors."""
    made = Host(tmp_path, *placement)
    made.offers(VCPU=8)
    return made


def test_it_reports_once(host: Host) -> None:
    """And says whom."""
    done = host.run("--once")
    assert (done.returncode, done.stdout) == (ExitCode.OK, f"{HOST} ({NODE_UUID}) is reported\n")
    assert host.reported() == {"VCPU": 8}


def test_it_goes_on_until_it_is_stopped(host: Host) -> None:
    """Told by SIGHUP, it looks at once; SIGTERM ends it well."""
    with host.running() as process:
        host.offers(VCPU=6, MEMORY_MB=1024)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: host.reported() == {"VCPU": 6, "MEMORY_MB": 1024}, "the second report")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == ExitCode.OK


def test_a_start_that_cannot_be_ends_it(host: Host) -> None:
    """With what is wrong, and nothing sent."""
    host.offers(VCPU=-1)
    assert_fails(host.run("--once"), ExitCode.CONFIGURATION, "inventories.VCPU.total", "-1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("driver: [", "line 1"),
        ("drivr: linux\nservice: {url: http://x, token_file: t}\n", "drivr"),
        ("driver: linux\n", "service: must say either token_file, or auth_type and auth"),
        ("service: {token_file: t}\n", "must have the url"),
        ("service: {url: http://x, token_file: t, auth_type: password}\n", "must say either"),
        ("service: {url: http://x, token_file: /nowhere}\n", "/nowhere cannot be read"),
        ("service: {auth_type: secret-handshake}\n", "no auth_type secret-handshake"),
        ("service: {auth_type: password, auth: {colour: red}}\n", "auth_type password"),
        ("service: {url: http://x, token_file: t}\ninterval_s: 0\n", "interval_s: must be"),
        ("service: {url: http://x, token_file: t}\nnode: {uuid: host-1}\n", "node.uuid"),
        ("service: {url: http://x, token_file: TOKEN}\ndriver: vmware\n", "no driver 'vmware'"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_one_line(
    tmp_path: Path, text: str, says: str
) -> None:
    """With the place, and what would be right."""
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "agent.yaml").write_text(
        text.replace("TOKEN", str(tmp_path / "token")) + f"state_dir: {tmp_path}/state\n"
        if "[" not in text
        else text
    )
    done = run_berth(tmp_path, "agent", "run", "--once", "--config", str(tmp_path / "agent.yaml"))
    assert_fails(done, ExitCode.CONFIGURATION, says)
    assert "secret\n" not in done.stderr
