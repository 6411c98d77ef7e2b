# SPDX-License-Identifier: Apache-2.0
"""A consumer, and the allocations that a request writes for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.sentinels import Sentinel

#: The type that responses show for a consumer without one.
UNKNOWN_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class ConsumerWrite:
    """All allocations that a consumer gets, and its owner.

    `allocations`: amounts of at least 1 by resource class name by provider; empty removes all.
    `generation`: the one that the client read; None if the client expects a new consumer; UNSET
    (below 1.28) if the client did not send one. `consumer_type`: None for no type; UNSET (below
    1.38) keeps the type of an existing consumer. `name`: unique within the project; None keeps the
    name that the consumer has. `lease_until`: when berth takes back what the consumer gets, naive
    UTC and a whole second; None if never.
    """

    uuid: ConsumerUUID
    allocations: Mapping[ProviderUUID, Mapping[str, int]]
    project_id: str
    user_id: str
    generation: Generation | Literal[Sentinel.UNSET] | None = Sentinel.UNSET
    consumer_type: str | Literal[Sentinel.UNSET] | None = Sentinel.UNSET
    name: str | None = None
    lease_until: datetime | None = None
