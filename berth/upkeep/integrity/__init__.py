# SPDX-License-Identifier: Apache-2.0
"""The check and the repair: every invariant of the database, as rules that find violations.

Each rule is one query, and its rows are processed one by one. So a check's memory does not grow
with the fleet, except for the trees (`trees`). A check reads one state of the database and changes
nothing.

A repair fixes a fault if the rest of the database says what is right, and if the fault is still as
it was found. It writes in parts, and into the journal, so that the indexes of running services
follow. It never removes anything that a client could have created, or that has allocations.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Final

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity import consumers, names, own, spellings, stock, storage, trees
from berth.upkeep.integrity.consumers import NOBODY_IN_PARTICULAR, Owner
from berth.upkeep.integrity.fault import Fault, Faults, Rule


def all_rules(owner: Owner = NOBODY_IN_PARTICULAR) -> tuple[Rule, ...]:
    """Every rule, in the order in which they are repaired.

    Collations come first, because the others compare texts; then sequences and the clock, because
    the others add rows and write to the journal. No repair changes what an earlier rule checks.

    Args:
        owner: gets the consumers whose owner is unknown.
    """
    return (
        *storage.RULES,
        *own.CLOCK,
        *spellings.RULES,
        *trees.RULES,
        *names.RULES,
        *stock.RULES,
        *consumers.rules(owner),
        *own.RULES,
        *names.VALUES,
    )


def iter_faults(db: Database, owner: Owner = NOBODY_IN_PARTICULAR) -> Faults:
    """All faults of the database, as they are found.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    with db.read() as tx:
        for rule in all_rules(owner):
            with closing(rule.find(tx)) as faults:
                yield from faults


# --- Repair --------------------------------------------------------------------------------------


#: Faults that are repaired in one transaction.
_PART: Final = 10_000


def iter_repaired(db: Database, owner: Owner, *, part: int = _PART) -> Faults:
    """Repair what can be repaired; yield every fault, including those that remain.

    A fault is yielded after its repair. A dry run lists the same faults with `iter_faults`.

    Args:
        part: faults that are repaired in one transaction.
    """
    for rule in all_rules(owner):
        yield from _repaired(db, rule, part)


def _repaired(db: Database, rule: Rule, part: int) -> Faults:
    if rule.repair is None:
        with db.read() as tx, closing(rule.find(tx)) as faults:
            yield from faults
        return
    seen: set[str] = set()
    while some := _next(db, rule, seen, part):
        db.write(partial(_repair, rule, some))
        seen.update(fault.sentence for fault in some)
        yield from some


def _next(db: Database, rule: Rule, seen: set[str], part: int) -> list[Fault]:
    """The next faults of a rule; one that could not be repaired is not tried again."""
    with db.read() as tx, closing(rule.find(tx)) as faults:
        return list(islice((fault for fault in faults if fault.sentence not in seen), part))


def _repair(rule: Rule, faults: Sequence[Fault], tx: Tx) -> None:
    assert rule.repair is not None, "only these are repaired"
    rule.repair(tx, [fault.key for fault in faults])
