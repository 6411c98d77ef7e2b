# SPDX-License-Identifier: Apache-2.0
"""The original's releases, installed once for a run."""

from __future__ import annotations

import pytest

from tests.adoption.originals import NotInstalled, install_all
from tests.engines import leave_out


@pytest.fixture(scope="session", autouse=True)
def originals() -> None:
    """Every release that these tests use. Where one cannot be fetched, they are left out, unless
    the run is one that must test its engines."""
    try:
        install_all()
    except NotInstalled as error:
        leave_out("the original", str(error))
