# SPDX-License-Identifier: Apache-2.0
"""The answers to placements, and their refusals. Source: spec/beyond.md 5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from berth.api.berth_v1.own_requests import OwnRequest
from berth.api.berth_v1.place_body import NewConsumer, Wanted
from berth.api.berth_v1.times import shown_lease
from berth.api.errors import Refused
from berth.api.request import Services
from berth.candidates.choosing import Limits
from berth.index.named import named_provider
from berth.index.snapshot import Snapshot
from berth.model.ids import ConsumerUUID
from berth.store.placements import Placement, Standing

JSON = dict[str, Any]


def placement_of(standing: Standing, placement: Placement | OwnRequest) -> JSON:
    """Where a consumer is."""
    return {
        "host": placement.host,
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in standing.allocations.items()
        },
        "mappings": placement.mappings,
        "consumer_generation": standing.generation,
    }


def more_of(wanted: Wanted, consumer: NewConsumer, lease_until: datetime | None) -> JSON:
    """The members of a placement that only some calls have."""
    lease = {"lease": shown_lease(lease_until)} if wanted.lease_seconds else {}
    return lease | ({"name": consumer.name} if consumer.name else {})


def names_of(fleet: Snapshot, uuids: Iterable[str]) -> dict[str, str]:
    """The names of some providers, without those that are gone."""
    names = {}
    for uuid in dict.fromkeys(uuids):
        if (at := fleet.locate_uuid(uuid)) is not None:
            name = named_provider(fleet.block(at.block_id), at.node, at.row).name
            if name is not None:
                names[uuid] = name
    return names


def joined(head: JSON, placements: Iterable[tuple[ConsumerUUID, bytes]]) -> bytes:
    """An answer: its head, and the JSON of each placement."""
    shown = b", ".join(b'"%b": %b' % (uuid.encode(), text) for uuid, text in placements)
    return b'%b, "placements": {%b}}' % (written(head)[:-1], shown)


def written(members: Mapping[str, Any]) -> bytes:
    """JSON with the spaces that candidates have."""
    return json.dumps(members, ensure_ascii=False).encode()


def conflict(
    services: Services,
    code: str,
    message: str,
    hint: str = "",
    *,
    beside: Mapping[str, Any] | None = None,
    **facts: object,
) -> Refused:
    """409, counted in the metrics: the consumers are not placed."""
    services.observer.conflicted(code)
    return Refused(409, message, hint=hint, code=code, facts=facts, beside=beside or {})


def in_words(limits: Limits) -> str:
    """The limits in effect, as the end of a sentence; empty if there are none."""
    most = ", ".join(f"{key}={number}" for key, number in limits.max_per.items())
    parts = [f"max_per {most}"] if most else []
    if limits.within is not None:
        parts.append(f"within {limits.within}")
    return f" with {' and '.join(parts)}" if parts else ""
