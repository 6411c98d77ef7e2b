# SPDX-License-Identifier: Apache-2.0
"""The marker for "not given", for values where None has another meaning."""

from enum import Enum
from typing import Final


class Sentinel(Enum):
    """Has one member, so that a type checker can narrow on `is UNSET`."""

    UNSET = "unset"


#: Not given: each parameter documents what that means.
UNSET: Final = Sentinel.UNSET
