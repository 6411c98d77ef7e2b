# SPDX-License-Identifier: Apache-2.0
"""Releases of OpenStack Placement, installed once for a run."""

from __future__ import annotations

import pytest

from tests.adoption.originals import NotInstalled, install_all
from tests.engines import leave_out


@pytest.fixture(scope="session", autouse=True)
def originals() -> None:
    """Every release that these tests use. If one cannot be downloaded, the tests are skipped,
    unless the run requires its engines."""
    try:
        install_all()
    except NotInstalled as error:
        leave_out("the original", str(error))
