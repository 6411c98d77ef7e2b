# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--write-api-coverage` writes which responses of the API the tests cover.

Every exchange of every `tests.client.Client` counts, by route, method, status and microversion.
The page is `docs/api-coverage.md`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.client import Client, Exchange
from tests.routes import OPERATIONS, Route, minor, route_of

PAGE = Path(__file__).parent.parent / "docs" / "api-coverage.md"

#: Route template and method, to status, to the microversions at which that status was seen.
#: The empty string stands for an answer from before a microversion was agreed.
Seen = dict[tuple[str, str], dict[int, set[str]]]

seen: Seen = defaultdict(lambda: defaultdict(set))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("berth").addoption(
        "--write-api-coverage", action="store_true", help=f"write docs/{PAGE.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch every client."""
    Client.observers.append(note)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop watching."""
    Client.observers.remove(note)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page, if asked to."""
    if session.config.getoption("--write-api-coverage"):
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(render(seen))


def note(exchange: Exchange) -> None:
    """Count one exchange, if its path and method are those of a route."""
    route = route_of(exchange.path)
    if route is not None and exchange.method in route.methods:
        answers = seen[route.template, exchange.method]
        answers[exchange.response.status].add(version_of(exchange))


def version_of(exchange: Exchange) -> str:
    """The microversion that the answer names; empty if none was agreed."""
    answered = exchange.response.headers.get("OpenStack-API-Version") or ""
    return answered.removeprefix("placement ")


def render(answers: Mapping[tuple[str, str], Mapping[int, Iterable[str]]]) -> str:
    """The page as Markdown: one table, a row for each status of each method of each route."""
    rows = [
        row
        for route, method in OPERATIONS
        for row in rows_of(route, method, answers.get((route.template, method), {}))
    ]
    return "\n".join(
        [
            "# API test coverage",
            "",
            "Which responses of each route the tests cover, and at which microversions.",
            "The tests write this page: `pytest --write-api-coverage`.",
            "A dash means a response without a microversion, such as 401 and 406.",
            "",
            "| Route | Method | Since | Status | Microversions |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def rows_of(route: Route, method: str, statuses: Mapping[int, Iterable[str]]) -> list[str]:
    """The rows of one method of one route."""
    begin = f"| `{route.template}` | {method} | {route.since_for(method)} |"
    if not statuses:
        return [f"{begin} none seen | |"]
    return [
        f"{begin} {status} | {ranges(versions)} |" for status, versions in sorted(statuses.items())
    ]


def ranges(versions: Iterable[str]) -> str:
    """Microversions as ranges, such as `1.0-1.4, 1.7`, with a dash for none."""
    known = sorted(minor(version) for version in versions if version)
    spans: list[list[int]] = []
    for number in known:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"1.{a}" if a == b else f"1.{a}-1.{b}" for a, b in spans]
    return ", ".join((["-"] if "" in set(versions) else []) + texts)
