# SPDX-License-Identifier: Apache-2.0
"""Parts of the application, tested directly."""

import pytest


@pytest.fixture(autouse=True)
def answers_are_described() -> None:
    """Switched off: these parts do not give complete responses."""
