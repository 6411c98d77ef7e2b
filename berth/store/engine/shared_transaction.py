# SPDX-License-Identifier: Apache-2.0
"""Runs several writes in one transaction; each fails or succeeds by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from sqlalchemy import exc, text

from berth.store.engine.dialect import Dialect
from berth.store.engine.group_commit import Write
from berth.store.engine.prepared import Runner
from berth.store.engine.transaction import Tx

#: One name is enough: a unit that fails leaves no changes behind its savepoint.
_SAVEPOINT: Final = text("SAVEPOINT berth_unit")
_RELEASE: Final = text("RELEASE SAVEPOINT berth_unit")
_ROLLBACK: Final = text("ROLLBACK TO SAVEPOINT berth_unit")


class PartlyApplied(Exception):
    """A shared transaction contains part of a write that failed."""


class Outcome(NamedTuple):
    """The result of a unit in a shared transaction that is not committed yet."""

    tx: Tx
    result: Any
    error: BaseException | None


class SharedTransaction:
    """Runs writes in a transaction that has begun. The caller commits it.

    Args:
        begun: makes the argument of a unit of work from the runner.
    """

    def __init__(self, run: Runner, dialect: Dialect, begun: Callable[[Runner], Tx]) -> None:
        self._run = run
        self._dialect = dialect
        self._begun = begun

    def run_alone(self, write: Write) -> dict[Write, Outcome]:
        """Run the only write of a transaction, which must not be committed if it fails."""
        return {write: _attempted(write.unit, self._begun(self._run))}

    def run_all(self, writes: Sequence[Write]) -> dict[Write, Outcome]:
        """Run several writes in one transaction; each fails or succeeds by itself.

        Raises:
            PartlyApplied: one failed, and its changes cannot be rolled back separately.
        """
        done = self._run_batches(writes)
        run_it = self._run_unsaved if self._run.is_clustered else self._run_in_savepoint
        left = [write for write in writes if write not in done]
        if left:
            self._dialect.wait_briefly(self._run)
        for write in left:
            done[write] = run_it(write.unit)
        return done

    def _run_batches(self, writes: Sequence[Write]) -> dict[Write, Outcome]:
        """Run the writes of each batch key at once; return those that succeeded.

        If a batch fails, its writes run one by one, to find out which of them fail.
        """
        kinds: dict[Callable[..., Any], list[Write]] = {}
        for write in writes:
            if write.batch is not None:
                kinds.setdefault(write.batch.run, []).append(write)
        done: dict[Write, Outcome] = {}
        for run_all, alike in kinds.items():
            if len(alike) > 1:
                items = [write.batch.item for write in alike if write.batch is not None]
                run_it = self._run_in_savepoint if done else self._run_first
                outcome = run_it(partial(run_all, items=items))
                if outcome.error is None:
                    each = outcome._replace(result=None)
                    done.update(dict.fromkeys(compress(alike, outcome.result), each))
                elif not isinstance(outcome.error, Exception):
                    raise outcome.error
        return done

    def _run_first(self, unit: Callable[[Tx], Any]) -> Outcome:
        """The outcome of the first unit of a transaction. If it failed, begins a new transaction.

        This saves the two round trips of a savepoint, and a refusal is rare.

        Raises:
            DBAPIError: the database failed; what it wrote is unknown.
        """
        outcome = _attempted(unit, self._begun(self._run))
        if outcome.error is not None:
            self._run.rollback()
            self._dialect.begin_writing(self._run)
        return outcome

    def _run_unsaved(self, unit: Callable[[Tx], Any]) -> Outcome:
        """The outcome of a unit that succeeded, or failed before it wrote anything.

        RACE tests/store/test_cluster.py: a cluster may replicate changes that were rolled back to a
        savepoint.

        Raises:
            PartlyApplied: it failed after it wrote.
            DBAPIError: the database failed; what it wrote is unknown.
        """
        before = self._run.written
        outcome = _attempted(unit, self._begun(self._run))
        if isinstance(outcome.error, Exception):
            # Statements that SQLAlchemy ran are not counted.
            if self._run.written > before or self._run.connection.in_transaction():
                raise PartlyApplied from outcome.error
        elif outcome.error is not None:
            raise outcome.error
        return outcome

    def _run_in_savepoint(self, unit: Callable[[Tx], Any]) -> Outcome:
        """The outcome of a unit. If it failed, its changes are rolled back.

        Raises:
            DBAPIError: the database failed; what it wrote is unknown.
        """
        tx = self._begun(self._run)
        tx.change(_SAVEPOINT, {})
        outcome = _attempted(unit, tx)
        tx.change(_RELEASE if outcome.error is None else _ROLLBACK, {})
        return outcome


def _attempted(unit: Callable[[Tx], Any], tx: Tx) -> Outcome:
    """The outcome of a unit. If it failed, its changes are still in the transaction.

    Raises:
        DBAPIError: the database failed; what it wrote is unknown.
    """
    try:
        return Outcome(tx, unit(tx), None)
    except exc.DBAPIError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
        return Outcome(tx, None, error)
