# SPDX-License-Identifier: Apache-2.0
"""Usages of providers that a host no longer has are followed, and idle passes stay cheap."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.hosts.drivers.static import make_driver
from berth.hosts.known_usages import KnownUsages
from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import node, tracker
from tests.hosts.stage import Stage

#: GPUs that leave the file, each with a holder.
LOST = 4


SERVICES = ["berth"]


class Agent:
    """A host whose file no longer lists some GPUs that have allocations."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.now = 0.0
        client = ReportClient(stage.transport, refresh_s=1e9, clock=lambda: self.now)
        self._requests = client.service.requests
        file = folder / "host.yaml"
        driver = make_driver({"file": str(file), "state": str(folder / "owned.json")})
        driver.used = KnownUsages(client, lambda: self.now).used
        self._tracker = tracker(client, driver)
        whole = "inventories: {VCPU: {total: 16}}\n"
        gpus = "".join(
            f"- {{name: $NODE_gpu{number}, inventories: {{VGPU: {{total: 4}}}}}}\n"
            for number in range(LOST)
        )
        file.write_text(f"{whole}children:\n{gpus}")
        self.passes(startup=True)
        for number in range(LOST):
            stage.hold(f"i{number}", f"cn1_gpu{number} VGPU=1")
        file.write_text(whole)
        self.passes()

    def passes(self, *, startup: bool = False) -> int:
        """The number of requests of each pass, a minute after the one before."""
        self.now += 60.0
        before = self._requests.total()
        self._tracker.report(node(), startup=startup)
        return self._requests.total() - before


def test_an_idle_pass_asks_for_the_use_of_one_of_them_at_most(stage: Stage, tmp_path: Path) -> None:
    """It used to ask for each of them in every pass."""
    agent = Agent(stage, tmp_path)
    agent.passes()  # their generations have moved when they were closed
    assert [agent.passes() for _ in range(3 * LOST)] == [2] * 3 * LOST


@pytest.mark.parametrize("let_go", [range(LOST), range(LOST)[::-1]], ids=["first", "last"])
def test_what_is_let_go_goes(stage: Stage, tmp_path: Path, let_go: range) -> None:
    """Each usage is read in its turn, also when others have been removed or stay: a release moves
    no generation."""
    agent = Agent(stage, tmp_path)
    agent.passes()
    for gone, number in enumerate(let_go, start=1):
        stage.release(f"i{number}")
        for _ in range(LOST):
            agent.passes()
        assert stage.picture().count("VGPU=4") == LOST - gone
