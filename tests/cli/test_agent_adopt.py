# SPDX-License-Identifier: Apache-2.0
"""`berth agent adopt`: a machine takes the place of the one that its state directory is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a machine with the state of another one."""
    for folder in ("etc", "state"):
        (tmp_path / folder).mkdir()
    (tmp_path / "token").write_text("admin\n")
    (tmp_path / "etc/machine-id").write_text("id-2\n")
    (tmp_path / "state/machine.json").write_text('{"identity": "of id-1", "name": "gpu01"}')
    path = tmp_path / "agent.yaml"
    path.write_text(
        f"service: {{url: 'http://127.0.0.1:1', token_file: {tmp_path}/token}}\n"
        f"options: {{root: {tmp_path}}}\nnode: {{name: gpu02}}\nstate_dir: {tmp_path}/state\n"
    )
    return path


@pytest.mark.parametrize("command", [["run", "--once"], ["plan"], ["drain"]])
def test_a_clone_does_nothing_until_it_takes_over(
    config: Path, in_process: InProcess, command: list[str]
) -> None:
    """Whatever would act for the host ends with the sentence; then only the service is missing."""
    arguments = ("agent", *command, "--config", str(config))
    refused = in_process(*arguments)
    assert_fails(refused, ExitCode.IN_USE, "belongs to the machine that reports the host gpu01")
    adopted = in_process("agent", "adopt", "--take-over", "--config", str(config))
    assert (adopted.returncode, adopted.stdout) == (
        0,
        f"{config.parent}/state belongs to this machine now, which reports gpu02.\n",
    )
    assert in_process(*arguments).returncode == ExitCode.SERVICE


def test_it_is_done_on_purpose(config: Path, in_process: InProcess) -> None:
    """The option says what its user confirms."""
    refused = in_process("agent", "adopt", "--config", str(config))
    assert refused.returncode == ExitCode.USAGE
    assert "Missing option '--take-over'" in refused.stderr


def test_a_list_of_nodes_has_nothing_to_take_over(config: Path, in_process: InProcess) -> None:
    """It belongs to no machine."""
    config.write_text(f"nodes: [{{name: a}}]\nstate_dir: {config.parent}/state\n")
    refused = in_process("agent", "adopt", "--take-over", "--config", str(config))
    assert_fails(refused, ExitCode.CONFIGURATION, "has a list of nodes")
