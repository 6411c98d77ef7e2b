# SPDX-License-Identifier: Apache-2.0
"""The schema of a database: detect its version, upgrade it, add the standard names, check it.

The parts: `versions` reads the version, `adoption` upgrades, and gives a database back to OpenStack
Placement, `usage_counts` computes the usages, `integrity` checks, `repair` fixes.
"""

from __future__ import annotations

from sqlalchemy import update

from berth.store.engine.database import Database
from berth.store.engine.tables import berth_writer
from berth.store.identity import renew_identity
from berth.store.project_counts import is_marked, recount_project_usages
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
    leases_to_end,
    not_honoured,
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
from berth.upkeep.left_state import leave, was_written
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
    "is_marked",
    "iter_faults",
    "iter_repaired",
    "leases_to_end",
    "leave",
    "make_consumers",
    "not_honoured",
    "recount_project_usages",
    "recount_usages",
    "refuse_while_others_write",
    "release",
    "renew_identity",
    "seconds_since_write",
    "stamp",
    "sync_standard_names",
    "upgrade",
    "versions_of",
    "was_written",
    "why_not_current",
]


def check(db: Database) -> list[str]:
    """A sentence for each fault of the database; empty if there is none.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    return [fault.sentence for fault in iter_faults(db)]


def ensure_writable(db: Database) -> None:
    """Begin and commit a write that changes nothing.

    Raises:
        DatabaseUnavailable: for example, because the database is read-only.
    """
    nobody = update(berth_writer).where(berth_writer.c.id < 0).values(seq=0)
    db.write(lambda tx: tx.connection.execute(nobody).rowcount)
