# SPDX-License-Identifier: Apache-2.0
"""What else a client may have meant by the name of a trait or a resource class that does not exist.

It costs a query and some comparing, and only those who are refused wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Final

from berth.model.errors import BerthError, Unavailable, UnknownClass, UnknownTraits
from berth.store import resource_classes, traits
from berth.store.engine.database import Database

#: Of so many unknown names it is said what may have been meant, and of so many that they are
#: unknown.
SUGGESTED_FOR_MAX: Final = 3
LISTED_MAX: Final = 20
#: To compare with one name takes some 20 microseconds, and longer for long names.
COMPARED_MAX: Final = 1000
NAME_LENGTH_MAX: Final = 64


def did_you_mean(error: BerthError, database: Database) -> str:
    """A sentence or two about the names that an error says are unknown; none about other errors."""
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
        known = _known(error, database)
        for name in unknown[:SUGGESTED_FOR_MAX]:
            if close := close_names(name, known):
                instead = f" instead of {name}" if len(unknown) > 1 else ""
                said.append(f"Did you mean {' or '.join(close)}{instead}?")
    return " ".join(said)


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like one, the closest first; letter case does not matter."""
    if len(name) > NAME_LENGTH_MAX:
        return []
    likely = (each for each in known if abs(len(each) - len(name)) <= len(name) // 2)
    return get_close_matches(name.upper(), islice(likely, COMPARED_MAX), n=3, cutoff=0.75)


def _known(error: BerthError, database: Database) -> Iterable[str]:
    if isinstance(error, UnknownTraits):
        return traits.list_traits(database, names=None, prefix=None, associated=None).names
    return resource_classes.list_resource_classes(database).names
