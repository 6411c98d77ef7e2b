# SPDX-License-Identifier: Apache-2.0
"""Releases of OpenStack Placement, installed once for a run."""

from __future__ import annotations

import pytest

from tests.adoption.originals import NotInstalled, install_all
from tests.effort import LEFT_OUT, is_left_out
from tests.engines import engine_of, leave_out


@pytest.fixture(scope="session", autouse=True)
def originals() -> None:
    """Every release that these tests use. If one cannot be downloaded, the tests are skipped,
    unless the run requires its engines."""
    try:
        install_all()
    except NotInstalled as error:
        leave_out("the original", str(error))


@pytest.fixture(autouse=True)
def only_some_engines(request: pytest.FixtureRequest) -> None:
    """A run of little effort tries each test on one of its engines."""
    engines = request.node.get_closest_marker("engines")
    engine = engine_of(request.node)
    if engines and engine and is_left_out(engines.args, engine, request.node.originalname):
        pytest.skip(LEFT_OUT)
