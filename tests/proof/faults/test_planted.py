# SPDX-License-Identifier: Apache-2.0
"""The tests detect a service that breaks the rules: each rule is broken on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from berth.store import claims
from berth.store.engine.database import Database
from berth.store.engine.transaction import Change, Tx
from tests.proof.faults import test_shared, test_writes
from tests.proof.faults.driver import FAULTS
from tests.proof.faults.stage import Play

CLAIM = test_shared.PARTS[0].write
DISK_ERROR, ANSWER_LOST = (
    next(fault for fault in FAULTS if fault.name == name) for name in ("disk error", "answer lost")
)


def answers(value: bool) -> Any:
    """A method that always returns this."""
    return lambda *_: value


def test_a_lost_answer_that_nobody_looks_up(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service treats a committed write as not done."""
    truth = test_writes.undisturbed(play, CLAIM)
    monkeypatch.setattr(Database, "_has_committed", answers(False))
    assert "503, and it happened" in "".join(
        test_writes.wrong_outcomes(play, CLAIM, ANSWER_LOST, truth)
    )


def test_a_failed_commit_that_is_taken_for_done(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service acknowledges a write that was never committed."""
    truth = test_writes.undisturbed(play, CLAIM)
    monkeypatch.setattr(Database, "_has_committed", answers(True))
    assert "and it did not happen" in "".join(
        test_writes.wrong_outcomes(play, CLAIM, DISK_ERROR, truth)
    )


def test_a_write_in_two_halves(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service commits the usage first and the allocations afterwards."""
    change_all = Tx.change_all

    def in_two_transactions(tx: Tx, changes: Iterable[Change], *, is_last: bool = False) -> None:
        before, after = list(changes), list[Change]()
        for place, change in enumerate(before):
            if change.statement is claims._INSERT:
                before, after = before[:place], before[place:]
        change_all(tx, before)
        if after:
            tx.connection.exec_driver_sql("COMMIT")
            tx.connection.exec_driver_sql("BEGIN IMMEDIATE")
            change_all(tx, after, is_last=is_last)

    truth = test_writes.undisturbed(play, CLAIM)
    monkeypatch.setattr(Tx, "change_all", in_two_transactions)
    assert "left something between" in "".join(
        test_writes.wrong_outcomes(play, CLAIM, DISK_ERROR, truth)
    )


def test_a_shared_commit_that_nobody_looks_up(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service repeats writes that were already committed."""
    monkeypatch.setattr(Database, "_has_committed", answers(False))
    assert "COMMIT" in "".join(test_shared.wrong_outcomes(play, ANSWER_LOST))
