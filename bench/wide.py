# SPDX-License-Identifier: Apache-2.0
"""Scenario wide: many equal devices below a host, and many groups that request one each."""

from __future__ import annotations

from typing import Final

from bench.case import Case
from bench.flat import candidates_case

DEVICES: Final = (8, 16, 64)
GROUPS: Final = (4, 8, 16)
POLICIES: Final = ("isolate", "none")
LIMIT: Final = 1000


def wide_query(groups_count: int, policy: str) -> str:
    """One device for each of several groups."""
    groups = "&".join(f"resources{number}=PGPU:1" for number in range(1, groups_count + 1))
    return f"{groups}&group_policy={policy}"


def wide_cases() -> list[Case]:
    """A growing number of groups, for different devices or any."""
    return [
        candidates_case(
            "wide", f"{groups} groups, {policy}", wide_query(groups, policy), LIMIT, ladder="wide"
        )
        for groups in GROUPS
        for policy in POLICIES
    ]
