# SPDX-License-Identifier: Apache-2.0
"""The README's first example works as it is printed, against a server on a socket."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, section
from tests.e2e.serving import served

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and Path("/sys/devices/system/node/node0").exists()),
    reason="needs curl, and a kernel that shows its NUMA nodes",
)


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the example prints, command after command, on a fresh server."""
    directory = tmp_path_factory.mktemp("readme")
    example = section((ROOT / "README.md").read_text(), "A first example")
    script = "set -eu\n" + "\n".join(block.text for block in blocks(example, "sh"))
    with served(directory) as url:
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=directory,
            env={"PATH": "/usr/bin:/bin", "URL": url},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [line for line in ran.stdout.splitlines() if line.strip()]


def test_the_example_finds_room_on_this_machine(transcript: list[str]) -> None:
    """The one candidate takes the disk from the root, CPU and memory from one NUMA node."""
    (found,) = [json.loads(line) for line in transcript if "allocation_requests" in line]
    (candidate,) = found["allocation_requests"]
    taken = sorted(sorted(part["resources"]) for part in candidate["allocations"].values())
    assert taken == [["DISK_GB"], ["MEMORY_MB", "VCPU"]]
    assert len(candidate["mappings"]["_NUMA"]) == 1


def test_the_example_shows_what_it_claimed(transcript: list[str]) -> None:
    """The project's usages are the claim, under the consumer's type."""
    (used,) = [json.loads(line)["usages"] for line in transcript if "consumer_count" in line]
    assert used == {"INSTANCE": {"DISK_GB": 1, "VCPU": 1, "MEMORY_MB": 64, "consumer_count": 1}}


def test_the_example_leaves_something_to_look_at(transcript: list[str]) -> None:
    """The last block shows it: the machine's tree, what the consumer holds, the fleet in use."""
    tree, claim, *metrics = transcript[-2 - sum("berth_fleet_" in line for line in transcript) :]
    assert len(json.loads(tree)["resource_providers"]) >= 2
    assert len(json.loads(claim)["allocations"]) == 2
    assert 'berth_fleet_used{resource_class="VCPU"} 1.0' in metrics


def test_the_example_shows_no_error(transcript: list[str]) -> None:
    """`--fail-with-body` would have printed it."""
    assert not [line for line in transcript if '"errors"' in line]
