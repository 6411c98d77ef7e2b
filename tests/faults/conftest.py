# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

Keep = Callable[[Sequence[float]], None]


@pytest.fixture
def keep(record_property: Callable[[str, object], None]) -> Keep:
    """Prints and keeps the seconds from each fault to the first write acknowledged after it."""

    def keep_them(seconds: Sequence[float]) -> None:
        told = [round(one, 2) for one in seconds]
        print(f"seconds from each fault to the first write acknowledged after it: {told}")
        record_property("seconds_to_recover", told)

    return keep_them
