# SPDX-License-Identifier: Apache-2.0
"""What a write says about itself for the audit log (`berth.edge.audit_log`).

The router leaves a trail in the environ of every request for an operation that writes, if there is
an audit log. Handlers add what they are about to write, and pass the store an object that gets what
was there before; both only if there is a trail, so an unused audit log costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from berth.api.errors import Refused
from berth.api.operation import DRY_RUN, Operation
from berth.api.paths import consumer_uuid, is_dry_run, provider_uuid
from berth.api.request import Request, Services
from berth.api.routes import is_parameter
from berth.candidates.references import References
from berth.index.named import HostedProvider, hosted_provider
from berth.index.snapshot import Snapshot
from berth.model.consumer import ConsumerWrite
from berth.model.drain import Effect
from berth.model.errors import Unavailable
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET, Sentinel
from berth.store.inventories import ReplacedInventories
from berth.store.provider_trees import Edit
from berth.store.replaced import Holder, ReplacedAllocations, ReplacedDrain

#: The environ key of a request's trail.
TRAIL: Final = "berth.audit"

#: What a path parameter is that is called `uuid` or `reference`, by the segment before it.
_NOUNS: Final = {"resource_providers": "provider", "trees": "provider", "consumers": "consumer"}


class InventoryWrite(NamedTuple):
    """The inventories that a provider is to have.

    Attributes:
        inventories: by resource class name; None removes one.
        is_whole: whether the provider's other inventories are removed.
    """

    provider: ProviderUUID
    inventories: Mapping[str, Inventory | None]
    is_whole: bool


@dataclass(slots=True)
class Trail:
    """What one request is to write, and what it replaced."""

    operation: str
    #: The path parameters, as the client wrote them.
    parameters: Mapping[str, str]
    #: The providers that the request names, with what the index knew of them before the write.
    providers: dict[ProviderUUID, HostedProvider | None] = field(default_factory=dict)
    #: The consumers that the request names beside `writes`.
    consumers: list[ConsumerUUID] = field(default_factory=list)
    #: To whom they belong, as far as that was known before the write.
    owners: dict[ConsumerUUID, Holder] = field(default_factory=dict)
    writes: Sequence[ConsumerWrite] = ()
    replaced: ReplacedAllocations | None = None
    inventory_writes: Sequence[InventoryWrite] = ()
    replaced_inventories: ReplacedInventories | None = None
    #: Other state that is replaced as a whole: its name, and what the client wants.
    wanted: dict[str, object] = field(default_factory=dict)
    replaced_drain: ReplacedDrain | None = None
    refusal: Refused | None = None
    #: Whether an earlier request has already written what this one asks for.
    is_repeated: bool = False
    #: Whether the commit may or may not have taken place.
    is_unknown: bool = False


def begin(
    services: Services, request: Request, operation: Operation, template: str, values: Iterable[str]
) -> None:
    """Leave a trail, unless the request only asks what it would do."""
    if operation.query and DRY_RUN in operation.query.parameters and is_dry_run(request.env):
        return
    parameters = dict(zip(_parameter_names(template), values, strict=True))
    trail = Trail(operation.name, parameters)
    for name, noun in nouns_of(template).items():
        if noun == "provider":
            uuid, named = _provider(services.index.latest, parameters[name])
            trail.providers[uuid] = named
        elif noun == "consumer":
            trail.consumers.append(consumer_uuid(parameters[name]))
    request.env[TRAIL] = trail


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


def note_new_provider(
    services: Services,
    request: Request,
    uuid: ProviderUUID,
    name: str,
    parent: ProviderUUID | None,
) -> None:
    """Note a provider that is to be created."""
    if trail := _trail(request):
        above = hosted_provider(services.index.latest, parent) if parent else None
        # Without a host, it is looked up after the write.
        host = above.host if above else None
        trail.providers[uuid] = HostedProvider(uuid, name, host if parent else name)


def note_deleted_provider(services: Services, request: Request, uuid: ProviderUUID) -> None:
    """Note a provider that is to be deleted, which makes the index forget it."""
    trail = _trail(request)
    if trail and trail.providers.get(uuid) is None:
        # Perhaps another worker has just created it.
        with suppress(Unavailable):
            trail.providers[uuid] = hosted_provider(services.index.snapshot(), uuid)


def note_provider(
    request: Request, name: str, parent: ProviderUUID | Literal[Sentinel.UNSET] | None
) -> None:
    """Note what a provider is to be called, and below which one it is to be, if that is sent."""
    if trail := _trail(request):
        trail.wanted["name"] = name
        if parent is not UNSET:
            trail.wanted["parent_provider_uuid"] = parent
            if parent is not None:
                trail.providers.setdefault(parent, None)


def note_tree(request: Request, edit: Edit, changes: Sequence[object]) -> None:
    """Note what an edit of a tree has changed."""
    if trail := _trail(request):
        trail.wanted["changes"] = changes
        host = edit.names[edit.root]
        changed = {change.provider.uuid: change.provider.name for change in edit.changes}
        # Without the reference to a tree that was new.
        trail.providers = {uuid: each for uuid, each in trail.providers.items() if each}
        for uuid, name in ({edit.root: host} | changed).items():
            trail.providers[uuid] = HostedProvider(uuid, name, host)


def note_owner(request: Request, consumer: ConsumerUUID, owner: Holder) -> None:
    """Note a consumer that the request is about, and to whom it belongs, or is to belong."""
    if trail := _trail(request):
        trail.owners[consumer] = owner
        if consumer not in trail.consumers:
            trail.consumers.append(consumer)


def note_wanted(request: Request, **members: object) -> None:
    """Note what the client wants some state to be."""
    if trail := _trail(request):
        trail.wanted.update(members)


def note_refusal(request: Request, refused: Refused) -> None:
    """Note that the request was refused."""
    if trail := _trail(request):
        trail.refusal = refused


def note_unknown(request: Request) -> None:
    """Note that it is not known whether the commit took place."""
    if trail := _trail(request):
        trail.is_unknown = True


def claiming(request: Request, writes: Sequence[ConsumerWrite]) -> ReplacedAllocations | None:
    """Note allocations that are to be written.

    Returns:
        what the store is to fill in; None if nobody asks.
    """
    if not (trail := _trail(request)):
        return None
    trail.writes, trail.consumers = writes, []
    trail.replaced = ReplacedAllocations()
    return trail.replaced


def repeating(request: Request, consumers: Sequence[ConsumerUUID]) -> None:
    """Note that an earlier request has placed some consumers already, and this one writes
    nothing."""
    if trail := _trail(request):
        trail.writes, trail.consumers, trail.is_repeated = (), list(consumers), True


def releasing(request: Request, consumer: ConsumerUUID) -> ReplacedAllocations | None:
    """Note a consumer whose allocations are to be deleted; returns as `claiming`."""
    if not (trail := _trail(request)):
        return None
    if consumer not in trail.consumers:
        trail.consumers.append(consumer)
    trail.replaced = ReplacedAllocations()
    return trail.replaced


def sweeping(request: Request) -> ReplacedAllocations | None:
    """Note that consumers are to be released in several commits; returns as `claiming`, for
    `note_swept` after each."""
    if not (trail := _trail(request)):
        return None
    trail.replaced = ReplacedAllocations()
    return ReplacedAllocations()


def note_swept(request: Request, replaced: ReplacedAllocations | None) -> None:
    """Note what one of several commits has released, or may have released."""
    trail = _trail(request)
    if trail and trail.replaced is not None and replaced is not None:
        trail.replaced.add(replaced)
        trail.consumers += replaced.holders
        # It stays released if a later commit fails.
        trail.is_unknown = True


def replacing_drain(
    request: Request, providers: Sequence[ProviderUUID], effect: Effect, reason: str
) -> ReplacedDrain | None:
    """Note a drain that is to be written; returns as `claiming`."""
    if not (trail := _trail(request)):
        return None
    trail.wanted |= {"effect": effect.value, "reason": reason, "named": [*providers]}
    trail.providers |= dict.fromkeys(providers)
    return deleting_drain(request)


def deleting_drain(request: Request) -> ReplacedDrain | None:
    """Note that a drain is to be deleted; returns as `claiming`."""
    if not (trail := _trail(request)):
        return None
    trail.replaced_drain = ReplacedDrain()
    return trail.replaced_drain


def replacing_inventories(request: Request, *writes: InventoryWrite) -> ReplacedInventories | None:
    """Note inventories that are to be written; returns as `claiming`."""
    if not (trail := _trail(request)):
        return None
    trail.inventory_writes = writes
    trail.replaced_inventories = ReplacedInventories()
    return trail.replaced_inventories


def _trail(request: Request) -> Trail | None:
    trail: Trail | None = request.env.get(TRAIL)
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
