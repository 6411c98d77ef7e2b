# SPDX-License-Identifier: Apache-2.0
"""The layers of authentication, in front of an application that returns the caller."""

import pytest


@pytest.fixture(autouse=True)
def answers_are_described() -> None:
    """Switched off: the responses of this application are not described by berth's OpenAPI
    document."""
