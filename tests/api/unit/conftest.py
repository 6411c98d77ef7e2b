# SPDX-License-Identifier: Apache-2.0
"""Parts of the application by themselves."""

import pytest


@pytest.fixture(autouse=True)
def answers_are_described() -> None:
    """Not here: a part does not answer as the whole does."""
