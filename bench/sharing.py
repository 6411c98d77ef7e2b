# SPDX-License-Identifier: Apache-2.0
"""Scenario sharing: hosts that get their disk from a provider shared by the rack."""

from __future__ import annotations

from bench.case import Case
from bench.flat import EVERY_HOST, LIMITS, candidates_case


def sharing_cases() -> list[Case]:
    """The query at each limit."""
    return [candidates_case("sharing", "disk of the rack", EVERY_HOST, limit) for limit in LIMITS]
