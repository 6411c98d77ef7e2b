# SPDX-License-Identifier: Apache-2.0
"""nova, installed once for a run."""

from __future__ import annotations

import pytest

from tests.engines import leave_out
from tests.nova.oracle import NotInstalled, install


@pytest.fixture(scope="session", autouse=True)
def nova() -> None:
    """If nova cannot be downloaded, the tests are skipped, unless the run requires its engines."""
    try:
        install()
    except NotInstalled as error:
        leave_out("nova", str(error))
