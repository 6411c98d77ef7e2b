# SPDX-License-Identifier: Apache-2.0
"""A consumer with everything that it holds, and the allocations that a request writes for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.shown import (
    TIME_OR_NULL,
    UNSET,
    Amounts,
    ExternalId,
    LeaseOrNull,
    ProviderKey,
    ProviderName,
    Shown,
    Sometimes,
)

#: The type that responses show for a consumer without one.
UNKNOWN_TYPE = "unknown"


class ConsumerWrite(Struct, frozen=True):
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
    generation: Sometimes[Generation | None] = UNSET
    consumer_type: Sometimes[str | None] = UNSET
    name: str | None = None
    lease_until: datetime | None = None


class HeldOfProvider(Shown):
    """What a consumer holds of one provider."""

    name: ProviderName
    resources: Amounts


class Consumer(Shown):
    """A consumer that holds something."""

    component = "Consumer"

    uuid: ConsumerUUID
    name: Annotated[str | None, "Its name within its project."]
    project_id: ExternalId
    user_id: ExternalId
    consumer_type: Annotated[str, "`unknown` if it has none."]
    generation: Generation
    created_at: Annotated[str | None, TIME_OR_NULL, "When its record was created; null if unknown."]
    allocations: Annotated[
        Mapping[ProviderKey, HeldOfProvider],
        Meta(min_length=1),
        "What it holds, by the UUID of the provider.",
    ]
    lease: LeaseOrNull
