# SPDX-License-Identifier: Apache-2.0
"""The repair: fixes the faults of a check where the rest of the database says how.

It writes like any other write: in parts, with a journal, so that the indexes of running services
follow, and each fault only if it is still as it was found. It never removes anything that a client
could have created, or that has allocations.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Final

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.upkeep.data_migrations import Owner
from berth.upkeep.integrity import all_rules
from berth.upkeep.integrity.fault import Fault, Faults, Rule

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
