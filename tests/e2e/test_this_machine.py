# SPDX-License-Identifier: Apache-2.0
"""This machine, reported by `berth agent` over HTTP, and asked about from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from berth.cli.failure import ExitCode
from tests.e2e.serving import run_berth, served

NAME = "this-machine"
#: No machine has as many.
TOO_MANY = 100_000


@pytest.mark.parametrize("model", ["flat", "numa"])
def test_what_the_agent_found_can_be_asked_for(tmp_path: Path, model: str) -> None:
    """One VCPU and 64 MB fit here and can be claimed; too many VCPUs are explained by this host."""
    (tmp_path / "token").write_text("admin\n")
    (tmp_path / "agent.yaml").write_text(
        f"driver: linux\noptions: {{model: {model}}}\nnode: {{name: {NAME}}}\n"
        f"state_dir: {tmp_path}/state\nservice: {{token_file: {tmp_path}/token, url: 'URL'}}\n"
    )
    service = tmp_path / "service"
    service.mkdir()
    with served(service) as url:

        def answer(arguments: Sequence[str], code: ExitCode = ExitCode.OK) -> Any:
            options = ("--url", url, "--token", "admin", "--json")
            done = run_berth(tmp_path, *arguments, *options)
            assert done.returncode == code, done.stderr
            return json.loads(done.stdout) if done.stdout else None

        config = tmp_path / "agent.yaml"
        config.write_text(config.read_text().replace("URL", url))
        reported = run_berth(tmp_path, "agent", "run", "--once", "--config", str(config))
        assert reported.returncode == ExitCode.OK, reported.stderr
        host = {"name": NAME, "uuid": answer(["provider", "show", NAME])["uuid"]}

        found = answer(["candidates", "VCPU=1", "MEMORY_MB=64", "--order", "spread"])
        assert {candidate["host"] for candidate in found["candidates"]} == {host["uuid"]}
        chosen = tmp_path / "candidates.json"
        chosen.write_text(json.dumps(found))
        consumer = "11111111-2222-4333-8444-555555555555"
        owner = ("--project", "web", "--user", "alice")
        answer(["claim", consumer, "--candidate", str(chosen), *owner])
        assert answer(["consumer", "show", consumer])["project_id"] == "web"

        amount = f"VCPU={TOO_MANY}"
        answer(["candidates", amount], ExitCode.NOTHING_FITS)
        why = answer(["why", amount])
        assert (why["verdict"], why["hosts"]["total"]) == ("never", 1)
        (nearest,) = why["nearest"]
        assert nearest["host"] == host
        (lacking,) = nearest["lacks"]
        assert (lacking["asked"], lacking["reason"]) == (TOO_MANY, "capacity")
        assert 0 < lacking["possible"] < TOO_MANY
