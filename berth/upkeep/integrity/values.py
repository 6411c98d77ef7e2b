# SPDX-License-Identifier: Apache-2.0
"""Values that no request can write: ids that are no UUIDs, and names that are not allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final

from sqlalchemy import Column, Table, func, not_, select

from berth.model.ids import parse_uuid_lax
from berth.model.names import is_class_name
from berth.store.engine.tables import (
    berth_labels,
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_classes,
    resource_providers,
    traits,
    users,
)
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Rule
from berth.upkeep.integrity.spellings import CANONICAL_FORM

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


def _no_uuids(table: Table, column: Column[str], noun: str, advice: str) -> Rule:
    """UUIDs in other spellings are none of these faults."""
    # The database tells the usual ones, so that few rows come here.
    odd = not_(column.like(CANONICAL_FORM)), func.length(column) != _UNDASHED_LENGTH
    return _rule(
        select(table.c.id, column).where(*odd),
        lambda number, text: (
            None
            if parse_uuid_lax(text)
            else f"{noun} number {number} has the uuid {text!r}, which is no UUID"
        ),
        advice,
    )


def _bad_names(table: Table, noun: str, advice: str) -> Rule:
    return _rule(
        select(table.c.id, table.c.name),
        lambda number, text: (
            None
            # COMPAT OpenStack Placement lets a name end in a newline.
            if is_class_name(text.removesuffix("\n"))
            else f"{noun} number {number} has the name {text!r}, which no request can write"
        ),
        advice,
    )


def _without_name(table: Table, column: Column[str], noun: str, advice: str) -> Rule:
    return _rule(
        select(table.c.id, column).where(column == ""),
        lambda number, text: f"{noun} number {number} has an empty name",
        advice,
    )


def _rule(query: Any, words: Callable[[int, str], str | None], advice: str) -> Rule:
    def find(tx: Tx) -> Faults:
        with closing(tx.connection.execute(query)) as rows:
            for number, text in rows:
                if sentence := words(number, text):
                    yield Fault(sentence, None, advice, {})

    return Rule(find)


def _rules() -> Iterator[Rule]:
    for uuids in _UUIDS:
        yield _no_uuids(*uuids)
    for names in _NAMES:
        yield _bad_names(*names)
    set_again = "set the allocations of its consumers again through the API"
    yield _without_name(projects, projects.c.external_id, "project", set_again)
    yield _without_name(users, users.c.external_id, "user", set_again)


RULES: Final = tuple(_rules())
