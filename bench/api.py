# SPDX-License-Identifier: Apache-2.0
"""What all requests of measurements and comparisons have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: What JSON text can say.
Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool | None

#: The newest microversion.
LATEST: Final = "1.39"
