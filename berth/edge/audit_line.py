# SPDX-License-Identifier: Apache-2.0
"""A line of the audit log, from what a request left in its environ, or from an expired lease.

docs/how-to/audit-log.md describes its members. A line has at most `LINE_BYTES_MAX` bytes: lists are
cut, and `omitted` says how many entries are missing of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, TypeVar
from wsgiref.types import WSGIEnvironment

import msgspec
from msgspec import structs

from berth.api.audit import Trail
from berth.api.berth_v1.trees import shown_changes
from berth.api.environ import CONTEXT, ROUTE
from berth.api.errors import MICROVERSION
from berth.edge.auth.identity import Context
from berth.edge.secrets import masked
from berth.index import Index
from berth.index.providers import HostedProvider, hosted_provider
from berth.index.snapshot import Snapshot
from berth.model.consumer import ConsumerWrite
from berth.model.errors import Unavailable
from berth.model.ids import ClassId, ConsumerUUID, ProviderId, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.printable import printable_json
from berth.store.engine.write_record import (
    DrainBefore,
    Holder,
    Holdings,
    InventoryWrite,
    NewProvider,
    WriteRecord,
)

T = TypeVar("T")

LINE_BYTES_MAX: Final = 65_536

#: The operation of lines without a request.
LEASE_EXPIRED: Final = "lease_expired"

#: Characters of a text that a client chose.
_TEXT_MAX: Final = 500
_ROLES_MAX: Final = 50

#: Entries of a list and characters of a text, after each time that a line has too many bytes. The
#: last are always short enough, however the texts are encoded.
_BOUNDS: Final = (
    *((entries_max, _TEXT_MAX) for entries_max in (1000, 250, 60, 15, 4, 1)),
    (0, 100),
)
#: Objects in which a request has as many members as it likes, beside lists.
_MAPPINGS: Final = frozenset({"inventories"})

#: The consumer, the provider and the resource class of an allocation.
_Key = tuple[ConsumerUUID, ProviderUUID, str]


def line_of(
    trail: Trail, environ: WSGIEnvironment, status: int, index: Index, seconds: float
) -> bytes:
    """The line of a request, with its newline.

    Args:
        seconds: the time since 1970.
    """
    outcome = _outcome_of(trail, status)
    names = _Names(trail, index, may_read=outcome == "done")
    record = {
        "time": _time(seconds),
        "outcome": outcome,
        "status": status,
        **_refusal(trail),
        **_request(environ),
        "operation": trail.operation,
        "parameters": {name: _short(value) for name, value in trail.parameters.items()},
        **_effects(trail, outcome, names),
    }
    return _safe(_bounded(record), environ[CONTEXT])


def line_of_expiry(former: Holdings, index: Index, seconds: float, *, is_unknown: bool) -> bytes:
    """The line of a consumer whose lease had expired, with its newline.

    Args:
        former: what the consumer had.
        seconds: the time since 1970.
        is_unknown: whether it may have kept that.
    """
    outcome = "unknown" if is_unknown else "done"
    trail = Trail(LEASE_EXPIRED, {}, record=WriteRecord(former=former))
    names = _Names(trail, index, may_read=not is_unknown)
    record = {
        "time": _time(seconds),
        "outcome": outcome,
        "operation": trail.operation,
        **_effects(trail, outcome, names),
    }
    return _safe(_bounded(record), None)


def _outcome_of(trail: Trail, status: int) -> str:
    if status < 400:
        return "repeated" if trail.is_repeated else "done"
    if status < 500:
        return "refused"
    is_unknown = trail.is_unknown or trail.record.is_begun
    return "unknown" if is_unknown or status == 500 else "failed"


def _refusal(trail: Trail) -> dict[str, Any]:
    if trail.refusal is None:
        return {}
    detail = f"{trail.refusal.message} {trail.refusal.hint}".strip()
    return {"code": trail.refusal.code, "detail": _short(detail)}


# --- The request ---------------------------------------------------------------------------------


def _request(environ: WSGIEnvironment) -> dict[str, Any]:
    minor = environ.get(MICROVERSION)
    path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
    return {
        **_caller(environ),
        "method": environ["REQUEST_METHOD"],
        "route": environ[ROUTE],
        "path": _short(path.encode("latin-1", "replace").decode("utf-8", "replace")),
        "microversion": None if minor is None else f"1.{minor}",
    }


def _caller(environ: WSGIEnvironment) -> dict[str, Any]:
    context: Context = environ[CONTEXT]
    members = {
        "request_id": context.request_id,
        "global_request_id": context.global_request_id,
        "trace_id": context.trace_id,
        "remote_addr": environ.get("REMOTE_ADDR"),
        "user_id": context.user_id,
        "user_name": context.user_name,
        "project_id": context.project_id,
        "project_name": context.project_name,
        "system_scope": context.system_scope,
        "service_user_id": context.service_user_id,
    }
    return {
        **{name: _short(value) for name, value in members.items() if value},
        "roles": [_short(role) for role in context.roles[:_ROLES_MAX]],
    }


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _short(text: str, characters_max: int = _TEXT_MAX) -> str:
    return text if len(text) <= characters_max else f"{text[:characters_max]}..."


# --- What it wrote -------------------------------------------------------------------------------


class _Names:
    """Names of providers and resource classes, as the index knows them.

    Args:
        may_read: whether to bring the index up to date for a provider that it does not know.
    """

    def __init__(self, trail: Trail, index: Index, *, may_read: bool) -> None:
        self._index = index
        self._may_read = may_read
        self._snapshot = index.latest
        #: Every provider of the line, by uuid.
        self.providers: dict[ProviderUUID, HostedProvider | None] = dict(trail.providers)
        record = trail.record
        for uuid, new in record.providers.items():
            self.providers.setdefault(uuid, new and self._planned(uuid, new))
        if (edit := record.edit) is not None:
            # Without the reference to a tree that was new.
            self.providers = {uuid: each for uuid, each in self.providers.items() if each}
            host = edit.names[edit.root]
            changed = {each.provider.uuid: each.provider.name for each in edit.changes}
            for uuid, name in ({edit.root: host} | changed).items():
                self.providers[uuid] = HostedProvider(uuid, name, host)

    def _planned(self, uuid: ProviderUUID, new: NewProvider) -> HostedProvider:
        """A provider that is to be created; without a host, it is looked up after the write."""
        if new.parent is None:
            return HostedProvider(uuid, new.name, host=new.name)
        above = hosted_provider(self._snapshot, new.parent)
        return HostedProvider(uuid, new.name, host=above and above.host)

    def provider(self, uuid: ProviderUUID) -> ProviderUUID:
        """Note a provider."""
        named = self.providers.get(uuid)
        if named is None or named.host is None:
            indexed = self._looked_up(lambda fleet: hosted_provider(fleet, uuid))
            self.providers[uuid] = indexed or named
        return uuid

    def provider_of(self, number: ProviderId) -> ProviderUUID:
        """The uuid of a provider, which is noted; its number if the index does not know it."""
        named = self._looked_up(lambda fleet: hosted_provider(fleet, number))
        if named is None:
            return ProviderUUID(f"#{number}")
        self.providers[named.uuid] = named
        return named.uuid

    def resource_class(self, number: ClassId) -> str:
        """The name of a resource class; its number if the index does not know it."""
        name = self._looked_up(lambda fleet: fleet.names.class_names.get(number))
        return f"#{number}" if name is None else name

    def _looked_up(self, look_up: Callable[[Snapshot], T | None]) -> T | None:
        value = None if self._snapshot is None else look_up(self._snapshot)
        if value is None and self._may_read:
            self._may_read = False
            try:
                self._snapshot = self._index.snapshot()
            except Unavailable:
                return None
            return look_up(self._snapshot)
        return value


def _effects(trail: Trail, outcome: str, names: _Names) -> dict[str, Any]:
    """What was written, or was to be written: the lists of a line."""
    record = trail.record
    # What a refused request would have replaced may never have been read.
    is_read = outcome in ("done", "unknown")
    former = record.former if is_read else Holdings()
    after = "after" if outcome == "done" else "asked"
    named = [*names.providers]
    allocations = _allocations(record.claims, former, names)
    inventories = _inventories(
        record.inventory_writes, record.inventories if is_read else {}, names
    )
    other = _other(record, after, names, is_read=is_read)
    for uuid in named:
        names.provider(uuid)
    lists: dict[str, list[Any]] = {
        "consumers": list(_consumers(trail, former)),
        "allocations": [
            _without_none(
                consumer=consumer,
                provider=provider,
                resource_class=resource_class,
                before=before if is_read else None,
                **{after: amount},
            )
            for (consumer, provider, resource_class), (before, amount) in allocations.items()
        ],
        "inventories": [
            {"provider": provider, "resource_class": resource_class}
            | ({"before": _fields(before)} if is_read else {})
            | {after: _fields(inventory)}
            for (provider, resource_class), (before, inventory) in inventories.items()
        ],
        # Last: the others have noted their providers.
        "providers": [_shown_provider(uuid, named) for uuid, named in names.providers.items()],
    }
    return {name: entries for name, entries in lists.items() if entries} | other


def _shown_provider(reference: str, named: HostedProvider | None) -> dict[str, str]:
    if named is None:
        # A path may have a name that no provider has.
        return {"uuid" if parse_uuid_lax(reference) else "name": reference}
    return _without_none(**named._asdict())


def _other(record: WriteRecord, after: str, names: _Names, *, is_read: bool) -> dict[str, Any]:
    """The state before and after of what is neither an allocation nor an inventory."""
    shown: dict[str, Any] = {}
    if is_read and record.drain is not None:
        shown = {"before": _drain(record.drain, names), after: None}
    if record.edit is not None:
        return {after: {"changes": shown_changes(record.edit, None)}}
    return shown | ({after: record.wanted} if record.wanted else {})


def _drain(before: DrainBefore, names: _Names) -> dict[str, Any] | None:
    if before.drain is None:
        return None
    return {
        "effect": before.drain.effect.value,
        "reason": before.drain.reason,
        "named": [names.provider_of(number) for number in sorted(before.providers)],
    }


def _allocations(
    writes: Iterable[ConsumerWrite], former: Holdings, names: _Names
) -> dict[_Key, tuple[int, int]]:
    """The amounts before and after, of everything that the consumers had or are to have."""
    amounts: dict[_Key, tuple[int, int]] = {
        (write.uuid, names.provider(provider), resource_class): (0, amount)
        for write in writes
        for provider, resources in write.allocations.items()
        for resource_class, amount in resources.items()
    }
    for consumer, (number, class_id), used in former.allocations:
        provider = names.provider_of(number)
        place = consumer, provider, names.resource_class(class_id)
        amounts[place] = used, amounts.get(place, (0, 0))[1]
    return amounts


def _inventories(
    writes: Iterable[InventoryWrite],
    before: Mapping[tuple[ProviderId, ClassId], Inventory],
    names: _Names,
) -> dict[tuple[ProviderUUID, str], tuple[Inventory | None, Inventory | None]]:
    """The inventories before and after, of every class that was or is to be written."""
    stored = {
        (names.provider_of(number), names.resource_class(class_id)): inventory
        for (number, class_id), inventory in before.items()
    }
    changes = {}
    for provider, inventories, is_whole in writes:
        names.provider(provider)
        classes = dict.fromkeys(inventories)
        if is_whole:
            classes |= dict.fromkeys(name for uuid, name in stored if uuid == provider)
        for name in classes:
            changes[provider, name] = stored.get((provider, name)), inventories.get(name)
    return changes


def _consumers(trail: Trail, former: Holdings) -> Iterator[dict[str, str]]:
    """The consumers, each with its owner, and with the former one if that has changed."""
    for write in trail.record.claims:
        before = former.holders.get(write.uuid)
        entry = _without_none(
            uuid=write.uuid,
            name=write.name or (before and before.name),
            project_id=write.project_id,
            user_id=write.user_id,
        )
        if before and before[:2] != (write.project_id, write.user_id):
            entry |= _without_none(
                project_id_before=before.project_id, user_id_before=before.user_id
            )
        yield entry
    if not trail.record.claims:
        for uuid in dict.fromkeys((*trail.consumers, *former.holders)):
            unknown = trail.owners.get(uuid, Holder(None, None, None))
            holder = former.holders.get(uuid, unknown)
            yield _without_none(uuid=uuid, **holder._asdict())


def _fields(inventory: Inventory | None) -> dict[str, Any] | None:
    return None if inventory is None else structs.asdict(inventory)


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


# --- Bounds --------------------------------------------------------------------------------------


def _bounded(record: Mapping[str, Any]) -> bytes:
    """The JSON of a record, with its lists cut until it is short enough."""
    text = _encoded(record)
    for bounds in _BOUNDS:
        if len(text) < LINE_BYTES_MAX:
            break
        omitted: dict[str, int] = {}
        shown = {name: _cut(name, value, bounds, omitted) for name, value in record.items()}
        text = _encoded(shown | ({"omitted": omitted} if omitted else {}))
    return text


def _cut(name: str, value: Any, bounds: tuple[int, int], omitted: dict[str, int]) -> Any:
    """A value within bounds: without the entries of lists and mappings beyond the first ones, of
    which it counts those that it leaves out."""
    entries_max, characters_max = bounds
    if isinstance(value, str):
        return _short(value, characters_max)
    if isinstance(value, list) or (isinstance(value, dict) and name in _MAPPINGS):
        if len(value) > entries_max:
            omitted[name] = omitted.get(name, 0) + len(value) - entries_max
        if isinstance(value, list):
            return [_cut("", each, bounds, omitted) for each in value[:entries_max]]
        value = dict(islice(value.items(), entries_max))
    if isinstance(value, dict):
        return {member: _cut(member, each, bounds, omitted) for member, each in value.items()}
    return value


def _encoded(record: object) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # half a surrogate pair, which a body may contain as an escape
        return json.dumps(record, separators=(",", ":")).encode()


def _safe(text: bytes, context: Context | None) -> bytes:
    """The line without the request's own credentials, which a client may have put anywhere, and
    with escapes for what cannot be seen."""
    return printable_json(masked(text.decode(), context)).encode() + b"\n"
