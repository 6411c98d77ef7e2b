# SPDX-License-Identifier: Apache-2.0
"""`berth agent run`: a host that reports what it offers, as its operator starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from berth.cli.agent_running import Alarm
from berth.cli.failure import ExitCode
from berth.hosts import drivers
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.service import Service
from berth.hosts.state_dir import StateLock
from berth.hosts.transports import with_token
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails
from tests.e2e.serving import BERTH, PATIENCE, environment, run_berth, serving, wait_until
from tests.hosts.drivers import PCIHost
from tests.hosts.stage import consumer_uuid
from tests.worlds import provider_uuid

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
        self.url = url
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
    assert (done.returncode, done.stdout) == (ExitCode.OK, f"reported {HOST} ({NODE_UUID})\n")
    assert host.reported() == {"VCPU": 8}


def test_what_its_start_has_moved_can_be_taken_back(
    host: Host, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the file in its state directory, at the running service."""
    host.offers(VCPU=8, VGPU=4)
    assert host.run("--once").returncode == ExitCode.OK
    guest = "5b0f9f0e-5c0e-4c0e-8a51-0d6f0e9b7a11"
    host.service.put(
        f"/allocations/{guest}",
        {
            "allocations": {NODE_UUID: {"resources": {"VGPU": 2}}},
            "project_id": "web",
            "user_id": "alice",
            "consumer_generation": None,
        },
    )
    (host.folder / "providers.yaml").write_text(
        "inventories: {VCPU: {total: 8}}\n"
        "children: [{name: gpu, inventories: {VGPU: {total: 4}}}]\n"
        "moves: [{class: VGPU, from: $NODE, to: [gpu]}]\n"
    )
    planned = in_process("agent", "plan", "--config", str(host.config))
    assert planned.returncode == ExitCode.PENDING
    assert f"{guest}: {HOST} VGPU=2 -> gpu VGPU=2" in planned.stdout
    assert host.reported() == {"VCPU": 8, "VGPU": 4}
    assert host.run("--once").returncode == ExitCode.OK
    assert host.reported() == {"VCPU": 8}
    planned = in_process("agent", "plan", "--config", str(host.config))
    assert (planned.returncode, planned.stdout) == (ExitCode.OK, f"{HOST}: nothing to do\n")
    (undo,) = (host.folder / "state/undo").iterdir()
    monkeypatch.setenv("OS_TOKEN", (host.folder / "token").read_text().strip())
    done = in_process("migrate-inventory", "--undo", str(undo), "--url", host.url)
    assert done.returncode == ExitCode.OK, done.stderr
    assert host.reported() == {"VCPU": 8, "VGPU": 4}
    held = host.service.get(f"/allocations/{guest}")["allocations"]
    assert held[NODE_UUID]["resources"] == {"VGPU": 2} and len(held) == 1
    host.service.delete(f"/allocations/{guest}")
    host.service.delete(f"/resource_providers/{NODE_UUID}")


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


def test_what_is_wrong_with_one_node_is_not_the_others_end(host: Host) -> None:
    """They are reported; the end's code and words are that one's."""
    host.config.write_text(
        host.config.read_text().replace(
            f"node: {{name: {HOST}, uuid: {NODE_UUID}}}",
            f"nodes: [{{name: {HOST}, uuid: {NODE_UUID}}}, {{name: rack-1}}]",
        )
    )
    (host.folder / "providers.yaml").write_text(
        "inventories: {VCPU: {total: 8}}\nchildren: [{name: rack-1}]\n"
    )
    done = host.run("--once")
    assert done.stdout == f"reported {HOST} ({NODE_UUID})\n"
    assert done.returncode == ExitCode.SERVICE
    assert "rack-1" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("driver: [", "line 1"),
        ("driver: linux\n", "service: is missing"),
        (
            "service: {url: http://x, token_file: /nowhere}\n",
            "service.token_file: cannot read /nowhere: No such file or directory",
        ),
        ("service: {auth_type: secret-handshake}\n", "Unknown auth_type secret-handshake"),
        ("service: {auth_type: password, auth: {colour: red}}\n", "auth_type password"),
        (
            "service: {url: http://x, token_file: TOKEN}\ndriver: vmware\n",
            "Unknown driver 'vmware'",
        ),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_one_line(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    """With the place, and what would be right."""
    monkeypatch.setattr("berth.cli.agent_running.set_up_logging", lambda *, debug: None)
    (tmp_path / "token").write_text("secret\n")
    config = tmp_path / "agent.yaml"
    config.write_text(text.replace("TOKEN", str(tmp_path / "token")))
    done = in_process("agent", "run", "--once", "--config", str(config))
    assert_fails(done, ExitCode.CONFIGURATION, says)
    assert "secret\n" not in done.stderr


def test_a_report_that_is_broken_off_is_not_done(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that asked for one must not take it for reported."""

    class Stopped(Alarm):
        def set(self) -> None:
            self._stop(signal.SIGTERM, None)

    monkeypatch.setattr("berth.cli.agent_running.set_up_logging", lambda *, debug: None)
    monkeypatch.setattr("berth.cli.agent_running.Alarm", Stopped)
    (tmp_path / "token").write_text("secret\n")
    config = tmp_path / "agent.yaml"
    config.write_text(
        f"service: {{url: 'http://127.0.0.1:1', token_file: {tmp_path}/token}}\n"
        f"driver: static\noptions: {{file: {tmp_path}/providers.yaml}}\n"
        f"node: {{name: {HOST}, uuid: {NODE_UUID}}}\nstate_dir: {tmp_path}/state\n"
    )
    done = in_process("agent", "run", "--once", "--config", str(config))
    assert_fails(done, ExitCode.INTERRUPTED, "interrupted before everything was reported")
    assert not done.stdout


class Mistaken:
    """A driver of another package, with a mistake in it."""

    def __init__(self, options: Mapping[str, object]) -> None:
        pass

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Fail as a program does."""
        raise ValueError("no such slot")


@pytest.mark.parametrize("command", [["run", "--once"], ["show"]])
def test_a_drivers_own_mistake_is_told_as_the_drivers(
    host: Host,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    command: list[str],
) -> None:
    """Its author is who can help, and finds in an agent's log where it arose."""
    point = EntryPoint("mistaken", f"{__name__}:Mistaken", drivers.GROUP)
    monkeypatch.setattr(drivers, "entry_points", lambda **params: EntryPoints([point]))
    monkeypatch.setattr("berth.cli.agent_running.set_up_logging", lambda *, debug: None)
    monkeypatch.setattr(Alarm, "set", lambda alarm: None)
    text = host.config.read_text().replace("driver: static", "driver: mistaken")
    host.config.write_text(text)
    done = in_process("agent", *command, "--config", str(host.config))
    assert_fails(
        done, ExitCode.HOST, "berth: the driver mistaken failed: ValueError: no such slot\n"
    )
    assert ('raise ValueError("no such slot")' in caplog.text) == (command[0] == "run")


def test_two_agents_do_not_share_a_state_dir(
    host: Host, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second ends, having sent nothing; who only looks is let through."""
    monkeypatch.setattr("berth.cli.agent_running.set_up_logging", lambda *, debug: None)
    monkeypatch.setattr(Alarm, "set", lambda alarm: None)
    with closing(StateLock()) as first:
        first.hold(host.folder / "state")
        first.hold(host.folder / "state")
        done = in_process("agent", "run", "--once", "--config", str(host.config))
        told = f"another berth agent (process {os.getpid()}) uses {host.folder}/state: stop it, or"
        assert_fails(done, ExitCode.IN_USE, told)
        for command in "show", "plan":
            looked = in_process("agent", command, "--config", str(host.config))
            assert looked.returncode in {ExitCode.OK, ExitCode.PENDING}, looked.stderr
    for _ in range(2):
        done = in_process("agent", "run", "--once", "--config", str(host.config))
        assert done.returncode == ExitCode.OK, done.stderr


def test_what_would_be_reported_is_shown(tmp_path: Path, in_process: InProcess) -> None:
    """Of every node, as the driver makes it; without a service, and nothing is written."""
    (tmp_path / "providers.yaml").write_text(
        "inventories: {VCPU: {total: 8, reserved: 1}}\n"
        "traits: [CUSTOM_RACK_7]\n"
        "children: [{name: $NODE_gpu0, inventories: {PGPU: {total: 1}}}]\n"
    )
    config = tmp_path / "agent.yaml"
    config.write_text(
        f"driver: static\noptions: {{file: {tmp_path}/providers.yaml}}\n"
        f"nodes: [{{name: a}}, {{name: b}}]\nstate_dir: {tmp_path}/state\n"
    )
    shown = in_process("agent", "show", "--config", str(config))
    assert shown.returncode == ExitCode.OK, shown.stderr
    assert shown.stdout == "".join(
        f"{name}  VCPU=8(reserved:1)  +CUSTOM_RACK_7\n"
        f"  {name}_gpu0  PGPU=1  +CUSTOM_OWNER_BERTH_STATIC\n"
        for name in "ab"
    )
    shown = in_process("agent", "show", "--config", str(config), "--json")
    assert [
        (one["name"], one["inventories"]["PGPU"]["total"]) for _, one in json.loads(shown.stdout)
    ] == [("a_gpu0", 1), ("b_gpu0", 1)]
    assert not (tmp_path / "state").exists()


def card_with_guest(options: Mapping[str, object]) -> PCIHost:
    """A driver of a host whose guest has a PCI function."""
    return PCIHost("CUSTOM_NIC", {"0000:81:00.0": 2}, {consumer_uuid("i1"): {"0000:81:00.0": 1}})


@pytest.mark.parametrize("command", ["show", "plan"])
def test_a_new_host_with_guests_is_shown(
    host: Host, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Its driver asks what the guests hold: nothing, of a host that the service does not know."""
    point = EntryPoint("card", f"{__name__}:card_with_guest", drivers.GROUP)
    monkeypatch.setattr(drivers, "entry_points", lambda **params: EntryPoints([point]))
    text = host.config.read_text().replace("driver: static", "driver: card")
    new = f"{{name: new-host, uuid: {provider_uuid('new-host')}}}"
    host.config.write_text(text.replace(f"{{name: {HOST}, uuid: {NODE_UUID}}}", new))
    shown = in_process("agent", command, "--config", str(host.config))
    assert shown.returncode in {ExitCode.OK, ExitCode.PENDING}, shown.stderr
    mark = "+" if command == "plan" else ""
    assert f"new-host_0000:81:00.0  {mark}CUSTOM_NIC=2" in shown.stdout


def test_this_host_is_shown_without_a_configuration(in_process: InProcess) -> None:
    """What a newcomer types first."""
    shown = in_process("agent", "show", "--driver", "linux")
    assert shown.returncode == ExitCode.OK, shown.stderr
    assert re.search(r" VCPU=\d+", shown.stdout)


def test_a_tree_that_could_not_be_sent_is_told(tmp_path: Path, in_process: InProcess) -> None:
    """Before there is a service; and a configuration that is not there, with how to get one."""
    config = tmp_path / "agent.yaml"
    done = in_process("agent", "show", "--config", str(config))
    assert_fails(
        done,
        ExitCode.CONFIGURATION,
        "agent.yaml; `berth agent sample` prints one to start from",
    )
    config.write_text(
        f"driver: static\noptions: {{file: {tmp_path}/p.yaml}}\n"
        f"node: {{name: {'x' * 200}}}\nstate_dir: {tmp_path}\n"
    )
    (tmp_path / "p.yaml").write_text("children: [{name: $NODE_gpu0}]\n")
    done = in_process("agent", "show", "--config", str(config))
    assert_fails(done, ExitCode.HOST, "has 205 characters; 1 to 200 are allowed")
