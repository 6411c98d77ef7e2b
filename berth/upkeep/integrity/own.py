# SPDX-License-Identifier: Apache-2.0
"""What only berth keeps: the database's identity, labels of aggregates, flavors, placements,
names and leases of consumers, and drains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from sqlalchemy import bindparam, delete, exists, or_, select

from berth.model.drain import Effect
from berth.model.names import is_path_name
from berth.store.engine.tables import (
    LEASE_COUNTS,
    NAMED_BY_DRAIN,
    berth_consumer_names,
    berth_drained,
    berth_drains,
    berth_flavors,
    berth_labels,
    berth_leases,
    berth_placements,
    consumers,
)
from berth.store.engine.transaction import Tx
from berth.store.identity import NO_IDENTITY, read_identity, write_new_identity
from berth.store.labels import NAME
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule, repairable


def _lost_identity(tx: Tx) -> Faults:
    if read_identity(tx) == NO_IDENTITY:
        yield Fault("the database has no identity", "give the database a new identity", "", {})


def _make_identity(tx: Tx, keys: Sequence[Key]) -> None:
    """RACE: another process may have made one meanwhile; the newer one counts."""
    write_new_identity(tx)


def _odd_labels(tx: Tx) -> Faults:
    row = berth_labels.c
    query = select(row.aggregate_uuid, row.name, row.labels).order_by(row.id)
    with closing(tx.connection.execute(query)) as rows:
        for uuid, name, labels in rows:
            if not _is_right(labels, name):
                yield Fault(
                    f"the labels of aggregate {uuid} are damaged: name {name!r}, labels {labels}",
                    None,
                    f"set its labels again with PUT /berth/v1/aggregates/{uuid}",
                    {},
                )


def _odd_placements(tx: Tx) -> Faults:
    row = berth_placements.c
    query = select(row.id, row.consumer_uuid, row.mappings, row.request).order_by(row.id)
    with closing(tx.connection.execute(query)) as rows:
        for number, consumer, mappings, request in rows:
            are_right = _are_mappings(mappings)
            if not are_right or not (request is None or isinstance(_decoded(request), dict)):
                damaged = f"request {request}" if are_right else f"mappings {mappings}"
                yield Fault(
                    f"the placement of consumer {consumer} is damaged: {damaged}",
                    f"forget where consumer {consumer} was placed; it keeps its allocations",
                    "",
                    {"id": number},
                )


def _forget_placements(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(
        delete(berth_placements).where(berth_placements.c.id.in_([key["id"] for key in keys]))
    )


def _are_mappings(text: str) -> bool:
    """Whether a text is an object of lists of texts."""
    decoded = _decoded(text)
    return isinstance(decoded, dict) and all(
        isinstance(providers, list) and all(isinstance(each, str) for each in providers)
        for providers in decoded.values()
    )


def _is_right(labels: str, name: str | None) -> bool:
    """Whether labels are an object of texts, of which one is the name."""
    decoded = _decoded(labels)
    return (
        isinstance(decoded, dict)
        and all(isinstance(value, str) for value in decoded.values())
        and decoded.get(NAME) == name
    )


def _odd_flavors(tx: Tx) -> Faults:
    row = berth_flavors.c
    query = select(row.name, row.request).order_by(row.id)
    with closing(tx.connection.execute(query)) as rows:
        for name, request in rows:
            if not is_path_name(name) or not isinstance(_decoded(request), dict):
                yield Fault(
                    f"flavor {name} is damaged: its request is {request}",
                    None,
                    "set it again with PUT /berth/v1/flavors, or delete it",
                    {},
                )


def _decoded(text: str) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


_named: Final = berth_consumer_names.c
#: Names that another program has left when it released the consumer.
_LEFT_BEHIND: Final = ~exists().where(consumers.c.uuid == _named.consumer_uuid)
_FORGET_NAME: Final = delete(berth_consumer_names).where(
    _named.id == bindparam("name_id"), _LEFT_BEHIND
)


def _forget_names(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(_FORGET_NAME, [{"name_id": key["id"]} for key in keys])


def _odd_drains(tx: Tx) -> Faults:
    row = berth_drains.c
    query = select(row.name, row.effect).order_by(row.id)
    with closing(tx.connection.execute(query)) as rows:
        for name, effect in rows:
            if not is_path_name(name) or effect not in _EFFECTS:
                yield Fault(
                    f"drain {name} is damaged: its effect is {effect}",
                    None,
                    "set it again with PUT /berth/v1/drains, or delete it",
                    {},
                )


_EFFECTS: Final = frozenset(effect.value for effect in Effect)
_member: Final = berth_drained.c
#: Rows of which the drain, or the provider, is gone; another program leaves them when it deletes
#: the provider, whose id a new one may get.
_STRAY: Final = or_(
    ~exists().where(berth_drains.c.id == _member.drain_id),
    ~exists().where(NAMED_BY_DRAIN),
)
_FORGET_DRAINED: Final = delete(berth_drained).where(
    _member.drain_id == bindparam("of_drain"),
    _member.provider_id == bindparam("of_provider"),
    _STRAY,
)


def _forget_drained(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(
        _FORGET_DRAINED,
        [{"of_drain": key["drain_id"], "of_provider": key["provider_id"]} for key in keys],
    )


_leased: Final = berth_leases.c
#: Leases that another program has left when it released the consumer, or changed what it holds.
_COUNTS_FOR_NOBODY: Final = ~exists().where(LEASE_COUNTS)
_FORGET_LEASE: Final = delete(berth_leases).where(
    _leased.id == bindparam("lease_id"), _COUNTS_FOR_NOBODY
)


def _forget_leases(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(_FORGET_LEASE, [{"lease_id": key["id"]} for key in keys])


RULES: Final = (
    Rule(_lost_identity, _make_identity),
    Rule(_odd_labels),
    Rule(_odd_flavors),
    Rule(_odd_placements, _forget_placements),
    repairable(
        select(_named.id, _named.name, _named.consumer_uuid).where(_LEFT_BEHIND),
        lambda row: f"the name {row.name} is of consumer {row.consumer_uuid}, which is gone",
        lambda row: f"forget the name {row.name}",
        _forget_names,
    ),
    Rule(_odd_drains),
    repairable(
        select(_member.drain_id, _member.provider_id, _member.provider_uuid).where(_STRAY),
        lambda row: (
            f"drain {row.drain_id} names provider {row.provider_uuid}, and one of the two is gone"
        ),
        lambda row: f"forget provider {row.provider_uuid} in drain {row.drain_id}",
        _forget_drained,
    ),
    repairable(
        select(_leased.id, _leased.consumer_uuid).where(_COUNTS_FOR_NOBODY),
        lambda row: f"the lease of consumer {row.consumer_uuid} is of an earlier state of it",
        lambda row: f"forget the lease; consumer {row.consumer_uuid} keeps what it holds",
        _forget_leases,
    ),
)
