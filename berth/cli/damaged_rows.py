# SPDX-License-Identifier: Apache-2.0
"""Says that a database has damaged rows, in a sentence for commands that do other work."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import Final

from berth.store.engine.database import Database
from berth.upkeep import schema

#: More faults are not named.
_NAMED_MAX: Final = 3


def damage_of(database: Database) -> str | None:
    """The first faults of `berth db check`, and what to do; None if there are none."""
    with closing(schema.iter_faults(database)) as faults:
        named = [fault.sentence for fault in islice(faults, _NAMED_MAX)]
        more = ", and more" if next(faults, None) else ""
    if not named:
        return None
    return f"{'; '.join(named)}{more}. Run `berth db check`, which says what to do."
