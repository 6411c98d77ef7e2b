# SPDX-License-Identifier: Apache-2.0
"""What only berth keeps: the writers' clock and the journal, the database's identity, labels of
aggregates, flavors, placements, names and leases of consumers, and drains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, bindparam, delete, exists, func, or_, select

from berth.model.names import is_path_name
from berth.store.engine.tables import (
    LEASE_COUNTS,
    NAMED_BY_DRAIN,
    berth_consumer_names,
    berth_drained,
    berth_drains,
    berth_journal,
    berth_labels,
    berth_leases,
    berth_placements,
    berth_writer,
    consumers,
)
from berth.store.engine.transaction import Tx
from berth.store.identity import NO_IDENTITY, read_identity, write_new_identity
from berth.store.named import NAME, PATH_KINDS, Kind
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule, rule

_note, _writer = berth_journal.c, berth_writer.c

_IS_COUNTED: Final = exists().where(_writer.id == _note.writer_id, _writer.seq >= _note.seq)


#: PERF the last note of a writer is the end of its part of the primary key.
_noted: Final = (
    select(_note.writer_id, func.max(_note.seq).label("noted"))
    .group_by(_note.writer_id)
    .subquery("notes")
)


def _beyond(row: Row[Any]) -> str:
    fault = "which does not exist" if row.seq is None else f"whose last commit is {row.seq}"
    return f"the journal has commit {row.noted} of writer {row.writer}, {fault}"


#: RACE: entries that the writer has counted by now are not deleted.
_FORGET_NOTES: Final = delete(berth_journal).where(
    _note.writer_id == bindparam("writer"), ~_IS_COUNTED
)

CLOCK: Final = (
    rule(
        select(_writer.id, _writer.seq, _writer.trimmed_seq).where(
            or_(_writer.id < 0, _writer.seq < 0, _writer.trimmed_seq < 0)
        ),
        "writer {id} has made {seq} commits and trimmed {trimmed_seq}",
        advice="stop every berth that uses the database, and delete this row of berth_writer by "
        "hand",
    ),
    rule(
        # Where the journal is ahead of the clock.
        select(_noted.c.writer_id.label("writer"), _writer.seq, _noted.c.noted)
        .outerjoin(berth_writer, _writer.id == _noted.c.writer_id)
        .where(or_(_writer.seq.is_(None), _writer.seq < _noted.c.noted)),
        _beyond,
        action="remove the later journal entries of writer {writer}",
        repair=_FORGET_NOTES,
    ),
)


# --- The others ----------------------------------------------------------------------------------


def _lost_identity(tx: Tx) -> Faults:
    if read_identity(tx) == NO_IDENTITY:
        yield Fault("the database has no identity", "give the database a new identity", "", {})


def _make_identity(tx: Tx, keys: Sequence[Key]) -> None:
    """RACE: another process may have made one meanwhile; the newer one counts."""
    write_new_identity(tx)


def _damaged_labels(row: Row[Any]) -> str | None:
    """Whether labels are an object of texts, of which one is the name."""
    decoded = _decoded(row.labels)
    if (
        isinstance(decoded, dict)
        and all(isinstance(value, str) for value in decoded.values())
        and decoded.get(NAME) == row.name
    ):
        return None
    return (
        f"the labels of aggregate {row.aggregate_uuid} are damaged: name {row.name!r}, labels "
        f"{row.labels}"
    )


def _damaged_placement(row: Row[Any]) -> str | None:
    are_right = _are_mappings(row.mappings)
    if are_right and (row.request is None or isinstance(_decoded(row.request), dict)):
        return None
    damaged = f"request {row.request}" if are_right else f"mappings {row.mappings}"
    return f"the placement of consumer {row.consumer_uuid} is damaged: {damaged}"


def _are_mappings(text: str) -> bool:
    """Whether a text is an object of lists of texts."""
    decoded = _decoded(text)
    return isinstance(decoded, dict) and all(
        isinstance(providers, list) and all(isinstance(each, str) for each in providers)
        for providers in decoded.values()
    )


def _damaged(kind: Kind[Any, Any]) -> Rule:
    """Named records that no request can have written."""
    column = kind.checked
    row = column.table.c

    def sentence(row: Row[Any]) -> str | None:
        if is_path_name(row.name) and kind.is_sound(row.checked):
            return None
        return f"{kind.of(row.name)} is damaged: its {column.name} is {row.checked}"

    return rule(
        select(row.name, column.label("checked")).order_by(row.id),
        sentence,
        advice=f"set it again with PUT /berth/v1/{kind.noun}s, or delete it",
    )


def _decoded(text: str) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


_label, _placement, _named = berth_labels.c, berth_placements.c, berth_consumer_names.c
_member, _leased = berth_drained.c, berth_leases.c

_FORGET_PLACEMENT: Final = delete(berth_placements).where(_placement.id == bindparam("number"))

#: Names that another program has left when it released the consumer.
_LEFT_BEHIND: Final = ~exists().where(consumers.c.uuid == _named.consumer_uuid)
_FORGET_NAME: Final = delete(berth_consumer_names).where(
    _named.id == bindparam("name_id"), _LEFT_BEHIND
)

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

#: Leases that another program has left when it released the consumer, or changed what it holds.
_COUNTS_FOR_NOBODY: Final = ~exists().where(LEASE_COUNTS)
_FORGET_LEASE: Final = delete(berth_leases).where(
    _leased.id == bindparam("lease_id"), _COUNTS_FOR_NOBODY
)

RULES: Final = (
    Rule(_lost_identity, _make_identity),
    rule(
        select(_label.aggregate_uuid, _label.name, _label.labels).order_by(_label.id),
        _damaged_labels,
        advice="set its labels again with PUT /berth/v1/aggregates/{aggregate_uuid}",
    ),
    *map(_damaged, PATH_KINDS),
    rule(
        select(
            _placement.id.label("number"),
            _placement.consumer_uuid,
            _placement.mappings,
            _placement.request,
        ).order_by(_placement.id),
        _damaged_placement,
        action="forget where consumer {consumer_uuid} was placed; it keeps its allocations",
        repair=_FORGET_PLACEMENT,
    ),
    rule(
        select(_named.id.label("name_id"), _named.name, _named.consumer_uuid).where(_LEFT_BEHIND),
        "the name {name} is of consumer {consumer_uuid}, which is gone",
        action="forget the name {name}",
        repair=_FORGET_NAME,
    ),
    rule(
        select(
            _member.drain_id.label("of_drain"),
            _member.provider_id.label("of_provider"),
            _member.provider_uuid.label("uuid"),
        ).where(_STRAY),
        "drain {of_drain} names provider {uuid}, and one of the two is gone",
        action="forget provider {uuid} in drain {of_drain}",
        repair=_FORGET_DRAINED,
    ),
    rule(
        select(_leased.id.label("lease_id"), _leased.consumer_uuid).where(_COUNTS_FOR_NOBODY),
        "the lease of consumer {consumer_uuid} is of an earlier state of it",
        action="forget the lease; consumer {consumer_uuid} keeps what it holds",
        repair=_FORGET_LEASE,
    ),
)
