# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NewType

DrainName = NewType("DrainName", str)
DrainId = NewType("DrainId", int)


class Effect(Enum):
    """What a drain does to its providers."""

    #: They get nothing new.
    EXCLUDE = "exclude"
    #: Nothing: the drain is only announced.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain without its providers.

    Attributes:
        generation: counts its changes.
        reason: for people.
        created_at: naive UTC.
        created_by: the user id of whoever created it; "" if unknown.
    """

    id: DrainId
    generation: int
    effect: Effect
    reason: str
    created_at: datetime
    created_by: str

    @property
    def excludes(self) -> bool:
        """Whether its providers get nothing new."""
        return self.effect is Effect.EXCLUDE
