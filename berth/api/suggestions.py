# SPDX-License-Identifier: Apache-2.0
"""Suggest names for a trait or a resource class that does not exist.

It costs a query and some comparisons, but only for refused requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from berth.model.errors import BerthError, Unavailable, UnknownClass, UnknownTraits
from berth.model.similar_names import similar
from berth.store import resource_classes, traits
from berth.store.engine.database import Database

#: How many unknown names get suggestions, and how many are listed as unknown.
SUGGESTED_FOR_MAX: Final = 3
LISTED_MAX: Final = 20
COMPARED_MAX: Final = 1000


def did_you_mean(error: BerthError, database: Database) -> str:
    """A sentence or two about the unknown names in an error; empty for other errors."""
    if isinstance(error, UnknownTraits):
        unknown: Sequence[str] = error.traits
    elif isinstance(error, UnknownClass):
        unknown = [error.resource_class]
    else:
        return ""
    said = []
    if len(unknown) > 1:
        more = len(unknown) - LISTED_MAX
        end = f" and {more} more" if more > 0 else ""
        said.append(f"Unknown are {', '.join(unknown[:LISTED_MAX])}{end}.")
    with suppress(Unavailable):
        existing = _existing_names(error, database)
        for name in unknown[:SUGGESTED_FOR_MAX]:
            if close := close_names(name, existing):
                instead = f" instead of {name}" if len(unknown) > 1 else ""
                said.append(f"Did you mean {' or '.join(close)}{instead}?")
    return " ".join(said)


def close_names(name: str, existing: Iterable[str]) -> tuple[str, ...]:
    """The known names that are most similar, the closest first, ignoring case."""
    likely = (each for each in existing if abs(len(each) - len(name)) <= len(name) // 2)
    return similar(name.upper(), islice(likely, COMPARED_MAX))


def _existing_names(error: BerthError, database: Database) -> Iterable[str]:
    if isinstance(error, UnknownTraits):
        return traits.list_traits(database, names=None, prefix=None, associated=None).names
    return resource_classes.list_resource_classes(database).names
