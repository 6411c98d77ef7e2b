# SPDX-License-Identifier: Apache-2.0
"""The faults that a check finds, and the form of the rules that find them.

A rule finds the rows that violate one invariant, describes each in a sentence, and either can
repair them or says what a person can do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, Row, Select

from berth.store.engine.tables import resource_classes, resource_providers
from berth.store.engine.transaction import Tx

#: Rows that a check keeps in memory at a time.
_ROWS: Final = 1000

#: Rows of one transaction, if a migration completes what a repair would.
MIGRATED_PART: Final = 1000

#: The columns by which a rule recognises a fault.
Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A violation of an invariant."""

    #: The fault, in a sentence.
    sentence: str
    #: The action of a repair; None: it leaves the fault alone.
    action: str | None
    #: What a person can do; if a repair does nothing, also why.
    advice: str
    key: Key


Faults = Generator[Fault, None, None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant.

    Attributes:
        find: the faults, as they are found. No other query may run before the last of them has
            been taken or the generator has been closed: some drivers keep rows at the server.
        repair: repairs some of them, each only if it is still as it was found.
    """

    find: Callable[[Tx], Faults]
    repair: Callable[[Tx, Sequence[Key]], None] | None = None


#: What is said of a row: a text with its columns in braces, or a function of the row. The text may
#: also have `{provider_words}` and `{class_words}`, if the query is one of `with_provider` and
#: `with_class`, and `{place}`, if it is one of both.
Words = str | Callable[[Row[Any]], str]

#: Repairs the rows of some keys; a statement does so by parameters with the names of the columns,
#: and `now`.
Repair = Callable[[Tx, Sequence[Key]], None] | Executable


def rule(
    query: Select[Any],
    sentence: str | Callable[[Row[Any]], str | None],
    *,
    action: Words | None = None,
    repair: Repair | None = None,
    advice: str = "",
) -> Rule:
    """A rule whose violations are the rows of a query.

    Args:
        sentence: a function may return None: then the row is no violation.
        action, repair: what a repair does; without them, only a person can repair.
        advice: for a person.
    """

    def find(tx: Tx) -> Faults:
        with closing(tx.connection.execute(query, execution_options={"yield_per": _ROWS})) as rows:
            for row in rows:
                if (said := _said(sentence, row)) is not None:
                    done = None if action is None else _said(action, row)
                    yield Fault(said, done, _said(advice, row) or "", row._asdict())

    return Rule(find, partial(_run, repair) if isinstance(repair, Executable) else repair)


def _said(words: str | Callable[[Row[Any]], str | None], row: Row[Any]) -> str | None:
    if callable(words):
        return words(row)
    fields = row._asdict()
    if "provider_uuid" in fields:
        fields["provider_words"] = provider_of(row)
    if "class_id" in fields:
        fields["class_words"] = class_of(row)
    if "provider_uuid" in fields and "class_id" in fields:
        fields["place"] = place_of(row)
    said = words.format_map(fields)
    # The comma after "which does not exist" is for a sentence that goes on.
    return said.rstrip(",") if words.endswith(("{provider_words}", "{class_words}")) else said


def _run(statement: Executable, tx: Tx, keys: Sequence[Key]) -> None:
    tx.change(statement, [{**key, "now": tx.now} for key in keys])


# --- Names of things in sentences: by names and uuids, or by ids if there is nothing else ---------


def with_provider(query: Select[Any], provider: ColumnElement[int]) -> Select[Any]:
    """Add what `provider_of` needs to know about a provider that may not exist."""
    rp = resource_providers.alias("named_provider")
    return query.add_columns(
        provider.label("provider"),
        rp.c.uuid.label("provider_uuid"),
        rp.c.name.label("provider_name"),
    ).outerjoin(rp, rp.c.id == provider)


def with_class(query: Select[Any], class_id: ColumnElement[int]) -> Select[Any]:
    """Add what `class_of` needs to know about a resource class that may not exist."""
    rc = resource_classes.alias("named_class")
    return query.add_columns(class_id.label("class_id"), rc.c.name.label("class_name")).outerjoin(
        rc, rc.c.id == class_id
    )


def provider_of(row: Row[Any]) -> str:
    """A provider, in the words of a sentence."""
    return provider_words(row.provider, row.provider_uuid, row.provider_name)


def provider_words(number: int, uuid: str | None, name: str | None) -> str:
    """As `provider_of`; without a uuid, there is no such provider."""
    if uuid is None:
        return f"provider number {number}, which does not exist,"
    return f"provider {name} ({uuid})" if name else f"provider {uuid}"


def class_of(row: Row[Any]) -> str:
    """A resource class, in the words of a sentence."""
    return row.class_name or f"resource class number {row.class_id}, which does not exist,"


def place_of(row: Row[Any]) -> str:
    """A provider and a resource class, in the words of a sentence."""
    return f"{provider_of(row).rstrip(',')}, {class_of(row).rstrip(',')}"
