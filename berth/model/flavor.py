# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

FlavorName = NewType("FlavorName", str)


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
