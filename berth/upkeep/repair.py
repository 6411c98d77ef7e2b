# SPDX-License-Identifier: Apache-2.0
"""The repair: what a check finds is put right where the rest of the database says how.

It is a write like any other: in the journal, so that the indexes of live services follow, in parts,
and each fault only if it is still what it was when it was found. Nothing that a client could have
asked for, and nothing that holds something, is ever removed.
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

#: Faults that are put right in one transaction.
_PART: Final = 10_000


def iter_repaired(db: Database, owner: Owner, *, part: int = _PART) -> Faults:
    """Put right what can be; every fault that there was, those left alone included.

    A fault is given when it has been put right. What a dry run says beforehand are the same faults:
    those of `iter_faults`.

    Args:
        part: faults that are put right in one transaction.
    """
    for rule in all_rules(owner):
        yield from _repaired(db, rule, part)


def _repaired(db: Database, rule: Rule, part: int) -> Faults:
    if rule.mend is None:
        with db.read() as tx, closing(rule.find(tx)) as found:
            yield from found
        return
    seen: set[str] = set()
    while some := _next(db, rule, seen, part):
        db.write(partial(_mend, rule, some))
        seen.update(fault.sentence for fault in some)
        yield from some


def _next(db: Database, rule: Rule, seen: set[str], part: int) -> list[Fault]:
    """The next faults of a rule; one that could not be put right is not tried again."""
    with db.read() as tx, closing(rule.find(tx)) as found:
        return list(islice((one for one in found if one.sentence not in seen), part))


def _mend(rule: Rule, faults: Sequence[Fault], tx: Tx) -> None:
    assert rule.mend is not None, "only these are repaired"
    rule.mend(tx, [fault.key for fault in faults])
