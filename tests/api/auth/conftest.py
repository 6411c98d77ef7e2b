# SPDX-License-Identifier: Apache-2.0
"""Layers of authentication by themselves, before an application that says who calls."""

import pytest


@pytest.fixture(autouse=True)
def answers_are_described() -> None:
    """Not here: that application does not answer as berth does."""
