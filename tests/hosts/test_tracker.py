# SPDX-License-Identifier: Apache-2.0
"""A report that fails temporarily is repeated; the pauses in between."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from berth.hosts.errors import Unreachable
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Tracker
from tests.hosts.hosts import node
from tests.hosts.stage import Stage

#: Seconds: the longest that each pause may be.
LONGEST: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)


class Away:
    """A driver whose host does not answer."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Fail."""
        raise Unreachable("no answer")


def test_the_pauses_of_a_report_double_up_to_a_quarter_of_a_minute(stage: Stage) -> None:
    """Each is in the upper half of its range, so that hosts that collided once do not collide
    again."""
    pauses: list[float] = []
    tracker = Tracker(
        ReportClient(stage.transport),
        Away(),
        attempts_max=len(LONGEST) + 1,
        pause=pauses.append,
        rng=Random(1),
    )
    with pytest.raises(Unreachable):
        tracker.report(node(), startup=True)
    assert len(pauses) == len(LONGEST)
    for pause, longest in zip(pauses, LONGEST, strict=True):
        assert longest / 2 <= pause <= longest
