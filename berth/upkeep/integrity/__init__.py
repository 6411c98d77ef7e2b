# SPDX-License-Identifier: Apache-2.0
"""The check: every invariant of the database, as rules that find violations.

Each rule is a query over whole sets, and its rows are processed one by one: memory does not grow
with the fleet, except for the trees (`berth.upkeep.trees`). A check reads one state of the database
and changes nothing; `berth.upkeep.repair` repairs what can be repaired.
"""

from __future__ import annotations

from contextlib import closing

from berth.store.engine.database import Database
from berth.upkeep.data_migrations import NOBODY_IN_PARTICULAR, Owner
from berth.upkeep.integrity import (
    clock,
    collations,
    consumers,
    counters,
    memberships,
    own,
    projects,
    sequences,
    spellings,
    stock,
    trees,
    values,
)
from berth.upkeep.integrity.fault import Faults, Rule


def all_rules(owner: Owner = NOBODY_IN_PARTICULAR) -> tuple[Rule, ...]:
    """Every rule, in the order in which they are repaired.

    Collations come first, because the others compare texts; then sequences and the clock, because
    the others add rows and write to the journal. No repair changes what an earlier rule checks.

    Args:
        owner: gets the consumers whose owner is unknown.
    """
    return (
        *collations.RULES,
        *counters.RULES,
        *sequences.RULES,
        *clock.RULES,
        *spellings.RULES,
        *trees.RULES,
        *memberships.RULES,
        *stock.RULES,
        *consumers.rules(owner),
        *projects.RULES,
        *own.RULES,
        *values.RULES,
    )


def iter_faults(db: Database, owner: Owner = NOBODY_IN_PARTICULAR) -> Faults:
    """All faults of the database, as they are found.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    with db.read() as tx:
        for rule in all_rules(owner):
            with closing(rule.find(tx)) as faults:
                yield from faults
