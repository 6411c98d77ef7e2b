# SPDX-License-Identifier: Apache-2.0
"""The check: every invariant of the database, as rules that find what breaks it.

Each rule is a query that works set by set, and its rows are taken as they come: memory does not
grow with the fleet, but for the trees (`berth.upkeep.trees`). A check sees one state of the
database and changes nothing; `berth.upkeep.repair` puts right what can be.
"""

from __future__ import annotations

from contextlib import closing

from berth.store.engine.database import Database
from berth.upkeep.data_migrations import NOBODY_IN_PARTICULAR, Owner
from berth.upkeep.integrity import clock, consumers, memberships, stock, trees
from berth.upkeep.integrity.fault import Faults, Rule


def all_rules(owner: Owner = NOBODY_IN_PARTICULAR) -> tuple[Rule, ...]:
    """Every rule, in the order in which they are put right.

    The clock comes first, because the others note what they do in its journal. None puts right
    what a later one finds.

    Args:
        owner: gets the consumers of which nobody knows whose they are.
    """
    return (
        *clock.RULES,
        *trees.RULES,
        *memberships.RULES,
        *stock.RULES,
        *consumers.rules(owner),
    )


def iter_faults(db: Database, owner: Owner = NOBODY_IN_PARTICULAR) -> Faults:
    """Everything in the database that should not be, as it is found.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    with db.read() as tx:
        for rule in all_rules(owner):
            with closing(rule.find(tx)) as found:
                yield from found
