# SPDX-License-Identifier: Apache-2.0
"""A host that is interrupted while it changes its tree: scenario H of spec/compute-side.md 8.

The inventories and allocations are either all old or all new, whatever fails when, and the next
start completes the change.
"""

from __future__ import annotations

import pytest

from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import (
    AFTER,
    BEFORE,
    AsPlacement,
    Falling,
    Interrupted,
    gpu_host,
    lost_connection,
    node,
    start,
    three_guests,
    tracker,
)
from tests.hosts.stage import Stage, drawn

#: Two children, a trait for each, and then the reshape.
WRITES = 5


def consumers_in(picture: str) -> list[str]:
    """The lines of a drawing with allocations."""
    return [line.strip() for line in picture.splitlines() if line.strip()[2:3] == ":"]


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at", range(WRITES))
def test_a_start_that_is_killed_is_finished_by_the_next(
    stage: Stage, at: int, is_done: bool
) -> None:
    """H2 and H3, at every write, before and after the service has performed it."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=is_done, fault=Interrupted())
    with pytest.raises(Interrupted):
        start(ReportClient(falling), three_guests())
    between = consumers_in(stage.picture())
    is_last = at == WRITES - 1 and is_done
    assert between == consumers_in(drawn(AFTER if is_last else BEFORE))
    start(ReportClient(stage.transport), three_guests())
    assert stage.picture() == drawn(AFTER)
    assert not start(ReportClient(stage.transport), three_guests())


@pytest.mark.parametrize("at", range(6))
def test_nothing_is_offered_without_its_traits(stage: Stage, at: int) -> None:
    """Where two new children take six writes, as at OpenStack Placement: after each of them."""
    stage.show("cn1  VCPU=16")
    falling = Falling(stage.transport, at=at, is_done=True, fault=Interrupted())
    with pytest.raises(Interrupted):
        start(ReportClient(AsPlacement(falling)), gpu_host())
    offers = [line for line in stage.picture().splitlines() if "VGPU" in line]
    assert all("CUSTOM_OWNER_BERTH" in line for line in offers)


@pytest.mark.parametrize("at", range(WRITES))
def test_an_answer_that_is_lost_is_no_failure(stage: Stage, at: int) -> None:
    """H4: the client reads the tree again, sees its change, and continues."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=True, fault=lost_connection())
    reporter = tracker(ReportClient(falling), three_guests(), attempts_max=2)
    reporter.report(node(), startup=True)
    assert stage.picture() == drawn(AFTER)


def test_these_are_all_writes(stage: Stage) -> None:
    """So that the tests above leave none out."""
    stage.show(BEFORE)
    counting = Falling(stage.transport, at=WRITES, is_done=True, fault=Interrupted())
    start(ReportClient(counting), three_guests())
    assert counting.writes == WRITES
