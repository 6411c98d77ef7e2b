# SPDX-License-Identifier: Apache-2.0
"""The page of what the tests have seen, and the table of routes that it is made from."""

from __future__ import annotations

import pytest

from tests.client import Exchange, Headers, Response
from tests.coverage_page import PAGE, ranges, render, version_of
from tests.routes import OPERATIONS, ROUTES, Route, minor, route_of


def answered(status: int, version: str | None) -> Response:
    """An answer that names a microversion, or none."""
    headers = [("openstack-api-version", f"placement {version}")] if version else []
    return Response(status, Headers(headers), b"")


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


def test_a_path_belongs_to_one_route() -> None:
    """Parameters are segments that are not empty."""
    for route in ROUTES:
        assert route_of(route.path()) is route
        assert 0 <= minor(route.since) <= 39
    assert route_of("") is ROUTES[0]
    assert route_of("/resource_providers/") is None
    assert route_of("/resource_providers/a/inventories/b/c") is None


def test_versions_are_told_as_ranges() -> None:
    """In numeric order, with a dash for answers before a version was agreed."""
    assert ranges(["1.10", "1.9", "1.2", "1.11", ""]) == "-, 1.2, 1.9-1.11"
    assert ranges([]) == ""


@pytest.mark.parametrize("version", ["1.0", "1.39", None])
def test_the_version_of_an_exchange_is_the_one_answered(version: str | None) -> None:
    """Not the one asked for: a refused token is answered before versions are looked at."""
    exchange = Exchange("GET", "/", "1.7", answered(200, version))
    assert version_of(exchange) == (version or "")


def test_the_page_is_a_table() -> None:
    """One row for each status; routes without an answer say so."""
    page = render({("/traits", "GET"): {404: ["1.0", "1.1"], 200: ["1.6"]}})
    rows = [line for line in page.splitlines() if "`/traits`" in line]
    assert rows == [
        "| `/traits` | GET | 1.6 | 200 | 1.6 |",
        "| `/traits` | GET | 1.6 | 404 | 1.0-1.1 |",
    ]
    assert "| `/usages` | GET | 1.9 | none seen | |" in page
