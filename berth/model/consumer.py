# SPDX-License-Identifier: Apache-2.0
"""Who holds: a consumer, and what a request wants it to hold from now on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.sentinels import Sentinel

#: How a consumer without a type is shown.
UNKNOWN_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class ConsumerWrite:
    """The whole of what one consumer shall hold, and whose it is.

    `allocations`: amount by resource class name by provider, amounts at least 1; empty takes
    everything away. `generation`: what the client has seen, None when it says that the consumer
    is new, UNSET (below 1.28) when it did not say. `consumer_type`: None is no type, UNSET
    (below 1.38) leaves the type of an existing consumer alone.
    """

    uuid: ConsumerUUID
    allocations: Mapping[ProviderUUID, Mapping[str, int]]
    project_id: str
    user_id: str
    generation: Generation | Literal[Sentinel.UNSET] | None = Sentinel.UNSET
    consumer_type: str | Literal[Sentinel.UNSET] | None = Sentinel.UNSET
