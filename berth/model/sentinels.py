# SPDX-License-Identifier: Apache-2.0
"""The one marker for "not given", where None already means something else."""

from enum import Enum
from typing import Final


class Sentinel(Enum):
    """Has a single member, so that a type checker can narrow on `is UNSET`."""

    UNSET = "unset"


#: "Unchecked", "unchanged" or "absent", as the place that takes it says.
UNSET: Final = Sentinel.UNSET
