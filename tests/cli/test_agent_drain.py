# SPDX-License-Identifier: Apache-2.0
"""`berth agent drain` and `undrain`: from the host that is serviced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.cli.failure import ExitCode
from berth.client import Client, NotThere
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails
from tests.e2e.serving import served

NODES = {
    "rack7-a": "6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a10",
    "rack7-b": "6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a11",
}
OTHER = "other1"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with the two nodes of the host, and a node of another."""
    with served(tmp_path_factory.mktemp("service")) as url:
        client = Client.at(url, "admin")
        for name, uuid in NODES.items():
            client.send("POST", "/resource_providers", {"name": name, "uuid": uuid})
        client.send("POST", "/resource_providers", {"name": OTHER})
        yield url


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    """An operator, who deletes all drains in the end."""
    operator = Client.at(service, "admin")
    yield operator
    for item in operator.read("/berth/v1/drains")["drains"]:
        operator.send("DELETE", f"/berth/v1/drains/{item['name']}")


@pytest.fixture
def config(service: str, tmp_path: Path) -> Path:
    """The configuration of the host's agent."""
    (tmp_path / "token").write_text("admin\n")
    nodes = ", ".join(f"{{name: {name}, uuid: {uuid}}}" for name, uuid in NODES.items())
    path = tmp_path / "agent.yaml"
    path.write_text(
        f"service: {{url: '{service}', token_file: {tmp_path}/token}}\n"
        f"driver: static\noptions: {{file: {tmp_path}/providers.yaml}}\n"
        f"nodes: [{nodes}]\nstate_dir: {tmp_path}/state\n"
    )
    return path


def drain_of(client: Client, name: str) -> tuple[list[str], str]:
    """The providers of a drain, and its reason."""
    shown: dict[str, Any] = client.read(f"/berth/v1/drains/{name}")
    return [provider["name"] for provider in shown["named"]], shown["reason"]


def test_the_nodes_of_the_host_are_drained_and_undrained(
    client: Client, config: Path, in_process: InProcess
) -> None:
    """The drain has the name of the first; a second call replaces it."""
    options = ("--config", str(config))
    dry = in_process("agent", "drain", "--reason", "new fans", "--dry-run", *options)
    assert (dry.returncode, dry.stdout) == (13, "2 hosts, 2 providers, 0 consumers\n")
    assert client.read("/berth/v1/drains")["drains"] == []
    done = in_process("agent", "drain", "--reason", "new fans", *options)
    said = "rack7-a: 2 hosts, 2 providers, 0 consumers\n"
    assert (done.returncode, done.stdout) == (0, f"created {said}")
    assert drain_of(client, "rack7-a") == ([*NODES], "new fans")
    again = in_process("agent", "drain", "--reason", "new disks", *options)
    assert (again.returncode, again.stdout) == (0, f"replaced {said}")
    assert drain_of(client, "rack7-a") == ([*NODES], "new disks")
    ended = in_process("agent", "undrain", *options)
    assert (ended.returncode, ended.stdout) == (0, "deleted rack7-a\n")
    with pytest.raises(NotThere):
        drain_of(client, "rack7-a")
    assert_fails(
        in_process("agent", "undrain", *options), ExitCode.SERVICE, "There is no drain rack7-a"
    )


def test_a_drain_has_the_name_that_is_given(
    client: Client, config: Path, in_process: InProcess
) -> None:
    """For `undrain`, too."""
    options = ("--name", "fans-2026", "--config", str(config))
    done = in_process("agent", "drain", "--json", *options)
    assert json.loads(done.stdout)["name"] == "fans-2026"
    assert drain_of(client, "fans-2026") == ([*NODES], "")
    assert in_process("agent", "undrain", *options).stdout == "deleted fans-2026\n"


@pytest.mark.parametrize("others", [[OTHER], [OTHER, "rack7-a"]])
@pytest.mark.parametrize("command", [("drain",), ("drain", "--dry-run"), ("undrain",)])
def test_the_drain_of_an_operator_stays(
    client: Client,
    config: Path,
    in_process: InProcess,
    command: tuple[str, ...],
    others: list[str],
) -> None:
    """Other hosts would get new work again, without anybody having said so."""
    body = {"providers": others, "reason": "the operator's"}
    client.send("PUT", "/berth/v1/drains/rack7-a", body)
    done = in_process("agent", *command, "--config", str(config))
    assert_fails(
        done,
        ExitCode.SERVICE,
        "the drain rack7-a has other providers than this host, such as other1: give another "
        "--name, or use berth drain",
    )
    assert drain_of(client, "rack7-a") == (others, "the operator's")


@pytest.mark.parametrize("name", ["x y/z", "", ".."])
@pytest.mark.parametrize("command", ["drain", "undrain"])
def test_a_name_that_no_drain_can_have_is_refused(
    client: Client, config: Path, in_process: InProcess, command: str, name: str
) -> None:
    """Before anything is sent."""
    done = in_process("agent", command, "--name", name, "--config", str(config))
    assert_fails(done, ExitCode.USAGE, f'a drain cannot be named "{name}": give another --name')
    assert client.read("/berth/v1/drains")["drains"] == []
