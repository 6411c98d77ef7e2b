# SPDX-License-Identifier: Apache-2.0
"""The page of what the tests have seen, and the table of routes that it is made from."""

from __future__ import annotations

import pytest

from tests.coverage_page import PAGE
from tests.routes import OPERATIONS, Route


@pytest.mark.parametrize(
    ("route", "method"),
    OPERATIONS,
    ids=[f"{method} {route.template}" for route, method in OPERATIONS],
)
def test_the_page_has_seen_every_route(route: Route, method: str) -> None:
    """The committed page has a row with answers for each method of each route."""
    begin = f"| `{route.template}` | {method} | {route.since_for(method)} |"
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(begin)]
    assert rows, "run pytest --write-api-coverage"
    assert not any("none seen" in row for row in rows)
