# SPDX-License-Identifier: Apache-2.0
"""Traits, aggregates and classes: their definitions, and which providers have them; and ids and
names that no request can write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Table, bindparam, delete, exists, func, not_, select

from berth.model.ids import parse_uuid_lax
from berth.model.names import is_class_name
from berth.model.standard import CUSTOM_CLASS_ID_MIN, STANDARD_CLASS_IDS, STANDARD_CLASSES
from berth.store.aggregates import OddSpelling, odd_spellings, respell
from berth.store.engine.tables import (
    berth_labels,
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule, rule, with_provider
from berth.upkeep.integrity.spellings import CANONICAL_FORM


def _rules(
    table: Table, defined: ColumnElement[int], noun: str, definitions: Table
) -> tuple[Rule, ...]:
    """The rules about the providers' memberships in something that has a definition."""
    member = table.c.resource_provider_id
    has_provider = exists().where(resource_providers.c.id == member)
    # One row for each provider: a deleted provider may have left many.
    lost = select(member.label("provider"), func.count().label("number")).where(~has_provider)
    has_definition = exists().where(definitions.c.id == defined)
    undefined = with_provider(select(defined.label("missing")), member).where(~has_definition)
    return (
        rule(
            lost.group_by(member),
            lambda row: (
                f"provider number {row.provider} does not exist, but has {row.number} {noun}"
                f"{'s' if row.number > 1 else ''}"
            ),
            action=f"remove the {noun}s of provider number {{provider}}",
            repair=delete(table).where(member == bindparam("provider"), ~has_provider),
        ),
        rule(
            undefined,
            f"{{provider_words}} has {noun} number {{missing}}, which is not defined",
            advice=f"set the {noun}s of the provider again through the API",
        ),
    )


def _misnumbered(row: Row[Any]) -> str | None:
    """Standard classes have the same ids everywhere, and custom ones have larger ids."""
    number, right = row.id, STANDARD_CLASS_IDS.get(row.name)
    if right is not None and right != number:
        return f"resource class {row.name} has number {number} instead of {right}"
    if row.name.startswith("CUSTOM_") and number < CUSTOM_CLASS_ID_MIN:
        return (
            f"resource class {row.name} has number {number}, which is reserved for standard "
            f"classes: custom classes begin at {CUSTOM_CLASS_ID_MIN}"
        )
    if number < len(STANDARD_CLASSES) and right is None:
        return (
            f"resource class number {number} is {row.name!r} instead of {STANDARD_CLASSES[number]}"
        )
    return None


def _odd_aggregates(tx: Tx) -> Faults:
    """Rows that OpenStack Placement wrote in spellings that no lookup uses."""
    for odd in odd_spellings(tx):
        yield Fault(
            f"aggregate number {odd.number} is spelled {odd.spelling}, and only this spelling "
            f"finds it",
            f"give aggregate number {odd.number} a common spelling of {odd.uuid}",
            "",
            odd._asdict(),
        )


def _respell(tx: Tx, keys: Sequence[Key]) -> None:
    respell(tx, [OddSpelling(**key) for key in keys])


RULES: Final = (
    *_rules(resource_provider_traits, resource_provider_traits.c.trait_id, "trait", traits),
    *_rules(
        resource_provider_aggregates,
        resource_provider_aggregates.c.aggregate_id,
        "aggregate",
        placement_aggregates,
    ),
    rule(
        select(placement_aggregates.c.id).where(placement_aggregates.c.uuid.is_(None)),
        "aggregate number {id} has no uuid",
        advice="the API cannot name it: remove its row by hand",
    ),
    Rule(_odd_aggregates, _respell),
    rule(
        select(resource_classes.c.name, resource_classes.c.id),
        _misnumbered,
        advice="inventories and allocations refer to this number: restore a backup",
    ),
)


# --- Values --------------------------------------------------------------------------------------

_UNDASHED_LENGTH: Final = 32

_UUIDS: Final = (
    (
        resource_providers,
        resource_providers.c.uuid,
        "provider",
        "no request can name the provider: set its uuid by hand, or remove its rows",
    ),
    (
        consumers,
        consumers.c.uuid,
        "consumer",
        "no request can name the consumer: remove its row and its allocations by hand",
    ),
    (
        placement_aggregates,
        placement_aggregates.c.uuid,
        "aggregate",
        "no request can name the aggregate: set the aggregates of its providers again",
    ),
    (
        berth_labels,
        berth_labels.c.aggregate_uuid,
        "label",
        "no request can name the aggregate of these labels: remove their row by hand",
    ),
)

_NAMES: Final = (
    (resource_classes, "resource class", "set the name of its row by hand"),
    (traits, "trait", "set the name of its row by hand, or set the traits of its providers again"),
    (
        consumer_types,
        "consumer type",
        "set the allocations of its consumers again through the API, with another type",
    ),
)


def _no_uuid(noun: str) -> Callable[[Row[Any]], str | None]:
    """UUIDs in other spellings are none of these faults."""
    return lambda row: (
        None
        if parse_uuid_lax(row.text)
        else f"{noun} number {row.id} has the uuid {row.text!r}, which is no UUID"
    )


def _bad_name(noun: str) -> Callable[[Row[Any]], str | None]:
    return lambda row: (
        None
        # COMPAT OpenStack Placement lets a name end in a newline.
        if is_class_name(row.name.removesuffix("\n"))
        else f"{noun} number {row.id} has the name {row.name!r}, which no request can write"
    )


VALUES: Final = (
    *(
        rule(
            select(table.c.id, column.label("text")).where(
                # The database tells the usual ones, so that few rows come here.
                not_(column.like(CANONICAL_FORM)),
                func.length(column) != _UNDASHED_LENGTH,
            ),
            _no_uuid(noun),
            advice=advice,
        )
        for table, column, noun, advice in _UUIDS
    ),
    *(
        rule(select(table.c.id, table.c.name), _bad_name(noun), advice=advice)
        for table, noun, advice in _NAMES
    ),
    *(
        rule(
            select(table.c.id).where(table.c.external_id == ""),
            f"{noun} number {{id}} has an empty name",
            advice="set the allocations of its consumers again through the API",
        )
        for table, noun in ((projects, "project"), (users, "user"))
    ),
)
