# SPDX-License-Identifier: Apache-2.0
"""The life of the schema, for those who open a database: is it there, is it this release's, bring
it up to date, fill in the standard names, check it.

The parts: `versions` looks, `adoption` brings up to date and hands back, `usage_counts` counts the
sums of usage, `faults` checks, `repair` puts right.
"""

from __future__ import annotations

from sqlalchemy import update

from berth.store.engine.database import Database
from berth.store.engine.tables import berth_writer
from berth.store.usage_counts import Report, recount_usages
from berth.store.versions import (
    BERTH_HEAD,
    CURRENT,
    PLACEMENT_HEAD,
    current_version,
    is_current,
    is_empty,
    versions_of,
    why_not_current,
)
from berth.upkeep.adoption import (
    StillWritten,
    refuse_while_others_write,
    release,
    seconds_since_write,
    stamp,
    upgrade,
)
from berth.upkeep.data_migrations import (
    Owner,
    Unmigrated,
    count_unmigrated,
    give_roots,
    make_consumers,
)
from berth.upkeep.integrity import iter_faults
from berth.upkeep.repair import iter_repaired
from berth.upkeep.standard_names import sync_standard_names

__all__ = [
    "BERTH_HEAD",
    "CURRENT",
    "PLACEMENT_HEAD",
    "Owner",
    "Report",
    "StillWritten",
    "Unmigrated",
    "check",
    "count_unmigrated",
    "current_version",
    "ensure_writable",
    "give_roots",
    "is_current",
    "is_empty",
    "iter_faults",
    "iter_repaired",
    "make_consumers",
    "recount_usages",
    "refuse_while_others_write",
    "release",
    "seconds_since_write",
    "stamp",
    "sync_standard_names",
    "upgrade",
    "versions_of",
    "why_not_current",
]


def check(db: Database) -> list[str]:
    """Everything in the database that should not be, a sentence for each; empty when all is well.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    return [fault.sentence for fault in iter_faults(db)]


def ensure_writable(db: Database) -> None:
    """Write nothing, as whoever may write could.

    Raises:
        DatabaseUnavailable: the database may be read only.
    """
    nobody = update(berth_writer).where(berth_writer.c.id < 0).values(seq=0)
    db.write(lambda tx: tx.connection.execute(nobody).rowcount)
