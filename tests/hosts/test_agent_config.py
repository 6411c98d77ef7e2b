# SPDX-License-Identifier: Apache-2.0
"""The content of agent.yaml: its faults, each with its place, and the nodes that it defines."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest

from berth.cli.agent_sample import SAMPLE
from berth.hosts.agent_config import AgentConfig, AgentFile, read_agent_config
from berth.hosts.errors import BadConfiguration
from berth.hosts.tracker import Node

UUID = "6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a10"


def said(folder: Path, text: str) -> AgentConfig:
    """The message for a file."""
    path = folder / "agent.yaml"
    path.write_text(f"{text}\nstate_dir: {folder}/state\n")
    return read_agent_config(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("drivr: linux", "drivr: unknown key; did you mean driver?"),
        ("service: {}", "service: needs either token_file, or auth_type and auth"),
        ("service: {token_file: t}", "service: needs the url of the service"),
        (
            "service: {url: 'placement:8778', token_file: t}",
            "service.url: expected http:// or https:// and a host",
        ),
        ("service: {url: http://x, token_file: t, auth_type: password}", "service: needs either"),
        ("interval_s: 0", "interval_s: expected a number of seconds >= 1, got 0"),
        ("interval_s: .inf", "interval_s: expected a number of seconds >= 1, got inf"),
        (
            "start_patience_s: long",
            "start_patience_s: expected a number of seconds >= 0, or forever, got 'long'",
        ),
        (
            "metrics: {bind: here}",
            "metrics.bind: expected HOST:PORT, as in 127.0.0.1:9109 or [::1]:9109, got 'here'",
        ),
        ("metrics: {bind: '127.0.0.1:70000'}", "expected HOST:PORT"),
        ("node: {uuid: host-1}", "node.uuid: expected a uuid, got 'host-1'"),
        ("node: {name: a}\nnodes: [{name: b}]", "has both node and nodes; use one of them"),
        ("nodes: []", "nodes: expected a list of length >= 1, got []"),
        ("nodes: [{}]", "nodes[0].name: is missing"),
        ("nodes: [{name: a}, {name: a}]", "2 nodes have the name a"),
        (
            f"nodes: [{{name: a, uuid: {UUID}}}, {{name: b, uuid: {UUID}}}]",
            "2 nodes have the uuid 6f1c",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """The message says what would be valid."""
    with pytest.raises(BadConfiguration) as refused:
        said(tmp_path, text)
    assert says in str(refused.value)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """So that the operator can repair them in one go."""
    with pytest.raises(BadConfiguration) as refused:
        said(tmp_path, "interval_s: 0\nstart_patience_s: -1\nnode: {name: ''}")
    assert len(refused.value.faults) == 3


def test_a_service_is_needed_where_it_is_asked(tmp_path: Path) -> None:
    """Not earlier: some commands use the database directly, or contact no service."""
    config = said(tmp_path, "node: {name: cn1}")
    with pytest.raises(BadConfiguration, match="service: is missing; it needs url"):
        config.access()


@pytest.mark.parametrize(("text", "seconds"), [("forever", inf), ("0", 0), ("0.5", 0.5)])
def test_patience_has_no_end_or_any(tmp_path: Path, text: str, seconds: float) -> None:
    """For hosts that no one watches, and for those where somebody waits."""
    assert said(tmp_path, f"start_patience_s: {text}").start_patience_s == seconds


@pytest.mark.parametrize(
    ("bind", "address"),
    [("127.0.0.1:9109", ("127.0.0.1", 9109)), ("[::1]:9109", ("::1", 9109))],
)
def test_metrics_have_an_address(tmp_path: Path, bind: str, address: tuple[str, int]) -> None:
    """IPv4 or IPv6."""
    assert said(tmp_path, f"metrics: {{bind: '{bind}'}}").metrics_bind == address


def test_several_nodes_keep_their_uuids_by_their_names(tmp_path: Path) -> None:
    """For nodes whose uuid is not in the configuration."""
    given = Node(UUID, "b")
    first = said(tmp_path, f"nodes: [{{name: a}}, {{name: b, uuid: {UUID}}}]").nodes()
    then = said(tmp_path, f"nodes: [{{name: c}}, {{name: b, uuid: {UUID}}}, {{name: a}}]").nodes()
    assert (first[1], then[1], then[2]) == (given, given, first[0])
    assert len({node.uuid for node in then}) == 3
    said(tmp_path, "nodes: [{name: d}]").nodes()
    assert said(tmp_path, "nodes: [{name: c}, {name: a}]").nodes() == (then[0], then[2])


@pytest.mark.parametrize("text", ["node: {name: a}", "nodes: [{name: a}]"])
def test_who_only_looks_leaves_no_uuid_behind(tmp_path: Path, text: str) -> None:
    """The agent itself, as its own user, makes the directory later."""
    said(tmp_path, text).nodes(read_only=True)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("text", "file"), [("node", "node-uuid"), ("nodes", "node-uuids.json")])
def test_a_broken_file_of_uuids_is_not_replaced(tmp_path: Path, text: str, file: str) -> None:
    """New uuids would be new hosts, and the allocations on the old ones would be lost."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / file).write_text("oops")
    config = said(tmp_path, "node: {name: a}" if text == "node" else "nodes: [{name: a}]")
    with pytest.raises(BadConfiguration, match=f"{file} does not contain"):
        config.nodes()
    assert (tmp_path / "state" / file).read_text() == "oops"


def test_several_nodes_are_not_one_host(tmp_path: Path) -> None:
    """Otherwise each would report all resources of the host."""
    config = said(tmp_path, "driver: linux\nnodes: [{name: a}, {name: b}]")
    with pytest.raises(BadConfiguration, match="nodes: the driver linux reports one host"):
        config.make_driver(lambda uuid: {})


def test_the_sample_is_a_configuration(tmp_path: Path) -> None:
    """It has every key, and the lines that are commented out are valid as well."""
    assert said(tmp_path, SAMPLE).access().token_file == Path("/etc/berth/agent.token")
    whole = re.sub(r"^# (?=[a-z_]+:)", "", SAMPLE, flags=re.MULTILINE).replace("\nstate_dir", "\n#")
    assert said(tmp_path, whole).metrics_bind == ("127.0.0.1", 9109)
    for key in set(AgentFile.__struct_fields__) - {"nodes"}:
        assert re.search(rf"^(# )?{key}:", SAMPLE, re.MULTILINE), key


def test_a_file_in_a_folder_of_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error explains it to whoever starts the agent as another user."""

    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(BadConfiguration, match=r"cannot read .*agent\.yaml: Permission denied"):
        read_agent_config(tmp_path / "agent.yaml")
