# SPDX-License-Identifier: Apache-2.0
"""A service for hosts to report to: over a socket, and in this process."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from keystoneauth1 import adapter
from oslo_config import cfg

from berth.config import options
from berth.direct import PlacementDirect
from berth.hosts.transports import with_token
from tests.e2e.serving import served
from tests.hosts.hosts import AsPlacement
from tests.hosts.stage import Stage


@contextmanager
def _over_http(folder: Path) -> Iterator[adapter.Adapter]:
    with served(folder) as url:
        yield with_token(url, "admin", {"X-Roles": "admin,service"})


@contextmanager
def _in_process(folder: Path) -> Iterator[adapter.Adapter]:
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", f"sqlite:///{folder}/berth.db", "placement_database")
    with PlacementDirect(conf) as client:
        yield client


@contextmanager
def _as_placement(folder: Path) -> Iterator[adapter.Adapter]:
    with _in_process(folder) as transport:
        old_routes = AsPlacement(copy.copy(transport))
        setattr(transport, "request", old_routes.request)  # noqa: B010 - mypy refuses the other form
        yield transport


@pytest.fixture(scope="module", params=["over HTTP", "as Placement"])
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """A service that the tests of a module share, one after another: berth over a socket, and, in
    this process, one that has the old routes only."""
    opened = {"over HTTP": _over_http, "as Placement": _as_placement}[request.param]
    with opened(tmp_path_factory.mktemp("service")) as transport:
        yield Stage(transport)


@pytest.fixture
def stage(service: Stage) -> Iterator[Stage]:
    """An empty service."""
    yield service
    service.clear()


@pytest.fixture(scope="module")
def service_in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service in this process, for modules that do not depend on the transport."""
    with _in_process(tmp_path_factory.mktemp("service")) as transport:
        yield Stage(transport)
