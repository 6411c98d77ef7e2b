# SPDX-License-Identifier: Apache-2.0
"""Names things in the sentences of a check: by names and uuids, or by ids if there is nothing else.

The functions take rows of queries that were built with `with_provider` and `with_class`, with the
columns `provider` and `class_id`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Select

from berth.store.engine.tables import resource_classes, resource_providers


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
