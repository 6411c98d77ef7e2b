# SPDX-License-Identifier: Apache-2.0
"""The schema of a database: detect its version, upgrade it, add the standard names, check it.

The parts: `versions` reads the version, `adoption` upgrades, and gives a database back to OpenStack
Placement, `usage_counts` computes the usages, `integrity` checks, `repair` fixes.
"""

from __future__ import annotations

from berth.store.engine.database import Database
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
from berth.upkeep.integrity.collations import odd_texts
from berth.upkeep.integrity.counters import used_up
from berth.upkeep.integrity.sequences import count_on, tables_behind
from berth.upkeep.integrity.spellings import respell_all
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
    "count_on",
    "count_unmigrated",
    "current_version",
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
    "odd_texts",
    "recount_project_usages",
    "recount_usages",
    "refuse_while_others_write",
    "release",
    "renew_identity",
    "respell_all",
    "seconds_since_write",
    "stamp",
    "sync_standard_names",
    "tables_behind",
    "upgrade",
    "used_up",
    "versions_of",
    "was_written",
    "why_not_current",
]


def check(db: Database) -> list[str]:
    """A sentence for each fault of the database; empty if there is none.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    return [fault.sentence for fault in iter_faults(db)]
