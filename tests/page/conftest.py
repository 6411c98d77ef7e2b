# SPDX-License-Identifier: Apache-2.0
"""What the tests of the page ask for: a browser, and services that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_loading import load
from berth.cli.sources import ConfigurationSource
from tests.client import Client
from tests.e2e.serving import Service
from tests.engines import leave_out
from tests.page.browser import Browser, browsing, why_no_browser
from tests.page.services import Serve, emptied, serving_page

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of the page in one process, which starts one browser and one service."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("page"))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The browser of all tests."""
    if (reason := why_no_browser()) is not None:
        leave_out("chromium", reason)
    with browsing(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def services() -> Iterator[ExitStack]:
    """What ends after the page that looks at it."""
    with ExitStack() as services:
        yield services


@pytest.fixture
def serve(tmp_path: Path, services: ExitStack) -> Serve:
    """Starts a service of the test's own."""
    return lambda **options: services.enter_context(serving_page(tmp_path, **options))


@pytest.fixture
def browser(chromium: Browser, services: ExitStack) -> Iterator[Browser]:
    """A new tab, whose log must be clean in the end."""
    yield chromium
    try:
        chromium.check()
    finally:
        chromium.forget()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with an empty fleet, for modules and tests that empty it again (`emptied`)."""
    with serving_page(tmp_path_factory.mktemp("shared")) as service:
        yield service


@pytest.fixture
def plain(shared: Service, services: ExitStack) -> Service:
    """The shared service, for one test."""
    return services.enter_context(emptied(shared))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with two workers and the demo fleet, for tests that leave it as it was."""
    with serving_page(tmp_path_factory.mktemp("demo")) as service:
        access = Access(service.url, "admin", None, ConfigurationSource((), (), False))
        with access.client() as client:
            load(client, demo_fleet())
        yield service


@pytest.fixture
def api(demo: Service) -> Client:
    """A client of the service with the demo fleet, with the rights of an administrator."""
    return Client.at(demo.url)
