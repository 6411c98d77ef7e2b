# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NewType

FlavorName = NewType("FlavorName", str)

#: HTTP clients resolve `.` and `..` in a path, so no URL could name these two.
NAME_PATTERN: Final = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}$"

_name = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class Flavor:
    """A stored request.

    Attributes:
        request: its JSON text. Only who asks with it decodes it, so that damage to one flavor
            harms nothing else.
        expose: whether metrics show its capacity.
        description: for people.
    """

    request: str
    expose: bool = True
    description: str = ""


def is_flavor_name(text: str) -> bool:
    """Whether a flavor may have this name."""
    return _name.fullmatch(text) is not None
