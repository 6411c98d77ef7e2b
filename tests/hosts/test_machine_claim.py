# SPDX-License-Identifier: Apache-2.0
"""The state of an agent belongs to one machine: a clone of its image is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from berth.hosts.agent_config import AgentConfig, read_agent_config
from berth.hosts.errors import BadConfiguration, OtherMachine
from berth.hosts.machine_claim import take_over_state
from berth.hosts.tracker import Node


def machine(folder: Path, name: str, machine_id: str | None, *, node: str = "node") -> AgentConfig:
    """The configuration of an agent on a machine, with its state in a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "etc").mkdir(exist_ok=True)
    (folder / "etc/machine-id").unlink(missing_ok=True)
    if machine_id is not None:
        (folder / "etc/machine-id").write_text(f"{machine_id}\n")
    entry = {"name": name}
    body = {
        "driver": "linux" if node == "node" else "static",
        node: entry if node == "node" else [entry],
        "options": {"root": str(folder)},
        "state_dir": str(folder / "state"),
    }
    path = folder / "agent.yaml"
    path.write_text(json.dumps(body))
    return read_agent_config(path)


def cloned(folder: Path, name: str, machine_id: str | None) -> AgentConfig:
    """A machine that was made from the image of `first`, which has reported."""
    shutil.copytree(folder / "first", folder / "clone")
    return machine(folder / "clone", name, machine_id)


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        (("a", "id-1"), ("a", "id-1"), False),  # it starts again
        (("a", "id-1"), ("b", "id-1"), True),  # a clone with its machine ID, or it was renamed
        (("a", "id-1"), ("a", "id-2"), True),  # a clone that has not got its name yet
        (("a", "id-1"), ("b", "id-2"), True),
        (("a", "id-1"), ("b", None), True),
        (("a", None), ("b", "id-2"), True),
        (("a", None), ("b", None), True),
        (("a", "id-1"), ("b", "uninitialized"), True),
        (("a", "uninitialized"), ("b", "uninitialized"), True),
        (("a", "id-1"), ("a", None), False),  # as far as anybody can tell
        (("a", None), ("a", "id-1"), False),  # it has got an id
    ],
)
def test_the_state_of_another_machine_is_refused(
    tmp_path: Path,
    first: tuple[str, str | None],
    second: tuple[str, str | None],
    is_refused: bool,
) -> None:
    """By the machine's id or the node's name; before anything is sent, and whatever command
    asks."""
    (original,) = machine(tmp_path / "first", *first).nodes()
    clone = cloned(tmp_path, *second)
    for read_only in (True, False):
        if is_refused:
            with pytest.raises(OtherMachine, match="that reports the host a: if this machine was"):
                clone.nodes(read_only=read_only)
        else:
            assert clone.nodes(read_only=read_only)[0].uuid == original.uuid
    assert machine(tmp_path / "first", *first).nodes() == (original,)


def test_a_clone_without_the_state_is_a_host_of_its_own(tmp_path: Path) -> None:
    """What the message says."""
    (original,) = machine(tmp_path / "first", "a", "id-1").nodes()
    clone = cloned(tmp_path, "b", "id-2")
    shutil.rmtree(clone.state_dir)
    assert clone.nodes()[0].uuid != original.uuid


def test_a_machine_takes_the_place_of_another(tmp_path: Path) -> None:
    """On purpose; then it is the other that is refused, if it still has this state."""
    (original,) = machine(tmp_path / "first", "a", "id-1").nodes()
    clone = cloned(tmp_path, "b", "id-2")
    take_over_state(clone.state_dir, clone.machine)
    assert clone.nodes()[0].uuid == original.uuid
    shutil.rmtree(tmp_path / "first/state")
    shutil.copytree(clone.state_dir, tmp_path / "first/state")
    with pytest.raises(OtherMachine, match="reports the host b"):
        machine(tmp_path / "first", "a", "id-1").nodes()


def test_a_machine_is_renamed_on_purpose(tmp_path: Path) -> None:
    """A clone with the machine's own id looks the same."""
    (original,) = machine(tmp_path / "first", "a", "id-1").nodes()
    renamed = machine(tmp_path / "first", "b", "id-1")
    take_over_state(renamed.state_dir, renamed.machine)
    assert renamed.nodes() == (Node(original.uuid, "b"),)


def test_the_id_itself_is_not_kept(tmp_path: Path) -> None:
    """It is confidential, and the state may be shown to others."""
    config = machine(tmp_path / "first", "a", "4d6f6e6f")
    config.nodes()
    assert "4d6f6e6f" not in (config.state_dir / "machine.json").read_text()


def test_a_list_of_nodes_belongs_to_no_machine(tmp_path: Path) -> None:
    """It reports others, from wherever it runs."""
    first = machine(tmp_path / "first", "a", "id-1", node="nodes").nodes()
    shutil.copytree(tmp_path / "first", tmp_path / "clone")
    assert machine(tmp_path / "clone", "a", "id-2", node="nodes").nodes() == first


def test_what_nobody_can_read_is_not_replaced(tmp_path: Path) -> None:
    """The message says what would be right."""
    config = machine(tmp_path / "first", "a", "id-1")
    config.state_dir.mkdir()
    (config.state_dir / "machine.json").write_text("{}")
    with pytest.raises(BadConfiguration, match=r"machine\.json does not say .* --take-over"):
        config.nodes()
    assert (config.state_dir / "machine.json").read_text() == "{}"


def test_state_that_cannot_be_written_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent with a UUID in its configuration reports without it."""
    config = machine(tmp_path / "first", "a", "id-1")
    config.nodes()
    (config.state_dir / "machine.json").unlink()
    (config.state_dir / "machine.json.new").mkdir()
    assert len(config.nodes()) == 1
    assert "A copy of this host's image would report as this host" in caplog.text
