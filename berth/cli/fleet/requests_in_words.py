# SPDX-License-Identifier: Apache-2.0
"""Requests in a few words, for tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.cli.columns import amount

Json = Mapping[str, Any]


def in_words(request: Json) -> str:
    """What a request asks for, without its conditions; a query as it is."""
    if "query" in request:
        return str(request["query"])
    groups = (
        f"{name}: {_amounts(group)}" if name else _amounts(group)
        for name, group in request.get("groups", {}).items()
    )
    return "; ".join(groups) or "-"


def _amounts(group: Json) -> str:
    pairs = group.get("resources", {}).items()
    return ", ".join(f"{name} {amount(number)}" for name, number in pairs) or "no resources"
