# SPDX-License-Identifier: Apache-2.0
"""What a write says about itself for the audit log (`berth.edge.audit_log`).

The router leaves a trail in the environ of every request for an operation that writes, if there is
an audit log, and gives the request a database that records: the store notes what is written, and
what was there before (`berth.store.engine.write_record`). So an unused audit log costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from berth.api.errors import Refused
from berth.api.operation import Operation, is_parameter
from berth.api.paths import consumer_uuid, is_dry_run, provider_uuid
from berth.api.request import Call
from berth.candidates.references import References
from berth.index.providers import HostedProvider, hosted_provider
from berth.index.snapshot import Snapshot
from berth.model.errors import Unavailable
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.store.engine.write_record import Holder, WriteRecord

#: The environ key of a request's trail.
TRAIL: Final = "berth.audit"

#: What a path parameter is that is called `uuid` or `reference`, by the segment before it.
_NOUNS: Final = {"resource_providers": "provider", "trees": "provider", "consumers": "consumer"}


class Trail(Struct):
    """What one request is about, beside the record of what it writes."""

    operation: str
    #: The path parameters, as the client wrote them.
    parameters: Mapping[str, str]
    #: The providers in the path, with what the index knew of them before the write.
    providers: dict[ProviderUUID, HostedProvider | None] = field(default_factory=dict)
    #: The consumers that the request names beside those that it claims for.
    consumers: list[ConsumerUUID] = field(default_factory=list)
    #: To whom they belong, as far as that was known before the write.
    owners: dict[ConsumerUUID, Holder] = field(default_factory=dict)
    record: WriteRecord = field(default_factory=WriteRecord)
    refusal: Refused | None = None
    #: Whether an earlier request has already written what this one asks for.
    is_repeated: bool = False
    #: Whether the commit may or may not have taken place.
    is_unknown: bool = False


def begin(call: Call, operation: Operation, template: str, values: Iterable[str]) -> None:
    """Leave a trail, and have the store record what it writes, unless the request only asks what
    it would do."""
    if operation.may_be_dry and is_dry_run(call.env):
        return
    parameters = dict(zip(_parameter_names(template), values, strict=True))
    trail = Trail(operation.name, parameters)
    for name, noun in nouns_of(template).items():
        if noun == "provider":
            uuid, named = _provider(call.services.index.latest, parameters[name])
            trail.providers[uuid] = named
        elif noun == "consumer":
            trail.consumers.append(consumer_uuid(parameters[name]))
    call.env[TRAIL] = trail
    database = call.services.database.recording(trail.record)
    call.services = replace(call.services, database=database)


def nouns_of(template: str) -> dict[str, str]:
    """What the parameters of a path stand for: `provider`, `consumer`, `project` and others."""
    segments = template.split("/")
    nouns: dict[str, str] = {}
    for before, segment in pairwise(segments):
        if is_parameter(segment):
            name = segment[1:-1]
            of_path = _NOUNS.get(before, name) if name in ("uuid", "reference") else name
            nouns[name] = of_path.removesuffix("_uuid").removesuffix("_id")
    return nouns


def note_deleted_provider(call: Call, uuid: ProviderUUID) -> None:
    """Note what a provider is called before it is deleted, which makes the index forget it."""
    if (trail := _trail(call)) and uuid in trail.providers and trail.providers[uuid] is None:
        # Perhaps another worker has just created it.
        with suppress(Unavailable):
            trail.providers[uuid] = hosted_provider(call.services.index.snapshot(), uuid)


def note_owner(call: Call, consumer: ConsumerUUID, owner: Holder) -> None:
    """Note a consumer that the request is about, and to whom it belongs, or is to belong."""
    if trail := _trail(call):
        trail.owners[consumer] = owner
        if consumer not in trail.consumers:
            trail.consumers.append(consumer)


def note_refusal(call: Call, refused: Refused) -> None:
    """Note that the request was refused."""
    if trail := _trail(call):
        trail.refusal = refused


def note_unknown(call: Call) -> None:
    """Note that it is not known whether the commit took place."""
    if trail := _trail(call):
        trail.is_unknown = True


def repeating(call: Call, consumers: Sequence[ConsumerUUID]) -> None:
    """Note that an earlier request has placed some consumers already, and this one writes
    nothing."""
    if trail := _trail(call):
        trail.record.claims, trail.consumers, trail.is_repeated = (), list(consumers), True


def _trail(call: Call) -> Trail | None:
    trail: Trail | None = call.env.get(TRAIL)
    return trail


def _provider(fleet: Snapshot | None, reference: str) -> tuple[ProviderUUID, HostedProvider | None]:
    """The provider that a path names by its uuid or its name, as far as it is known."""
    uuid = provider_uuid(reference)
    named = hosted_provider(fleet, uuid)
    if named is None and fleet is not None:
        text = References(fleet).provider(reference)
        if text is not None:
            named = hosted_provider(fleet, ProviderUUID(text))
    return (uuid if named is None else named.uuid), named


def _parameter_names(template: str) -> list[str]:
    return [segment[1:-1] for segment in template.split("/") if is_parameter(segment)]
