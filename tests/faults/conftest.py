# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

Keep = Callable[[Sequence[float]], None]


@pytest.fixture
def keep(record_property: Callable[[str, object], None]) -> Keep:
    """Prints and records the seconds from each fault to the first write acknowledged after it."""

    def keep_them(seconds: Sequence[float]) -> None:
        rounded = [round(duration, 2) for duration in seconds]
        print(f"seconds from each fault to the first write acknowledged after it: {rounded}")
        record_property("seconds_to_recover", rounded)

    return keep_them
