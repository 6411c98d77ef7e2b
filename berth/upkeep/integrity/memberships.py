# SPDX-License-Identifier: Apache-2.0
"""Traits and aggregates of providers, and the definitions of traits, aggregates and classes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, bindparam, delete, exists, func, select

from berth.model.standard import CUSTOM_CLASS_ID_MIN, STANDARD_CLASS_IDS, STANDARD_CLASSES
from berth.store.aggregate_spellings import OddSpelling, odd_spellings, read_odd, respell
from berth.store.engine.tables import (
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule, left_alone, repairable
from berth.upkeep.integrity.words import provider_of, with_provider


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
        repairable(
            lost.group_by(member),
            lambda row: (
                f"provider number {row.provider} does not exist, but has {row.number} {noun}"
                f"{'s' if row.number > 1 else ''}"
            ),
            lambda row: f"remove the {noun}s of provider number {row.provider}",
            partial(_remove, table, has_provider),
        ),
        left_alone(
            undefined,
            lambda row: f"{provider_of(row)} has {noun} number {row.missing}, which is not defined",
            f"set the {noun}s of the provider again through the API",
        ),
    )


def _remove(table: Table, has_provider: ColumnElement[bool], tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(
        delete(table).where(table.c.resource_provider_id == bindparam("gone"), ~has_provider),
        [{"gone": key["provider"]} for key in keys],
    )


def _misnumbered_classes(tx: Tx) -> Faults:
    """Standard classes have the same ids everywhere, and custom ones have larger ids."""
    named = select(resource_classes.c.name, resource_classes.c.id)
    for name, number in tx.connection.execute(named).all():
        right: Any = STANDARD_CLASS_IDS.get(name)
        if right is not None and right != number:
            fault = f"resource class {name} has number {number} instead of {right}"
        elif name.startswith("CUSTOM_") and number < CUSTOM_CLASS_ID_MIN:
            fault = (
                f"resource class {name} has number {number}, which is reserved for standard "
                f"classes: custom classes begin at {CUSTOM_CLASS_ID_MIN}"
            )
        elif number < len(STANDARD_CLASSES) and right is None:
            fault = (
                f"resource class number {number} is {name!r} instead of {STANDARD_CLASSES[number]}"
            )
        else:
            continue
        yield Fault(
            fault, None, "inventories and allocations refer to this number: restore a backup", {}
        )


def _odd_aggregates(tx: Tx) -> Faults:
    """Rows that OpenStack Placement wrote in spellings that no lookup uses."""
    with closing(tx.connection.execute(odd_spellings())) as rows:
        for row in rows:
            if odd := read_odd(row.number, row.spelling):
                yield Fault(
                    f"aggregate number {odd.number} is spelled {odd.spelling}, and only this "
                    f"spelling finds it",
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
    left_alone(
        select(placement_aggregates.c.id).where(placement_aggregates.c.uuid.is_(None)),
        lambda row: f"aggregate number {row.id} has no uuid",
        "the API cannot name it: remove its row by hand",
    ),
    Rule(_odd_aggregates, _respell),
    Rule(_misnumbered_classes),
)
