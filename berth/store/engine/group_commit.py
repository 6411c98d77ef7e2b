# SPDX-License-Identifier: Apache-2.0
"""Group commit: writes that arrive while another is under way share the next transaction.

One thread at a time leads: it takes the waiting writes, its own included, and commits them
together. Then it makes the oldest write that arrived meanwhile the leader, and returns. No write
waits for others to join: a single write is committed alone, and the more writes wait, the more
share the cost of a commit (spec/commit-rules.md, "What batching is worth").

Where several processes write at once, only writes of one kind share a transaction: each kind locks
its rows in a fixed order, but two kinds in one transaction do not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from sqlalchemy import exc, text

from berth.store.engine.dialect import Dialect
from berth.store.engine.prepared import Runner
from berth.store.engine.transaction import Apart, Change, NoWriter, Tx

#: Writes in one transaction. Beyond this number the fixed costs hardly matter, and later writes
#: would only wait longer.
WRITES_MAX: Final = 64


class Batchable(NamedTuple):
    """How to run several writes of one kind at once, at a lower cost than one by one.

    Attributes:
        run: runs as many of the writes at once as it can, in a transaction, and returns for each
            whether it did. The others run one by one; so do all if it raises. The effect must be
            the same as running the units in some order.
        item: the argument of `run` for this write.
    """

    run: Callable[[Any, Sequence[Any]], Sequence[bool]]
    item: Any


#: Told, before each attempt to commit a write, the writer and its count of commits.
Committing = Callable[[int, int], None]


class Write:
    """One write that waits for its outcome. Belongs to the thread that submitted it.

    Args:
        batch: only for units that return None.
    """

    def __init__(
        self,
        unit: Callable[[Any], Any],
        batch: Batchable | None = None,
        committing: Committing | None = None,
    ) -> None:
        self.unit: Final = unit
        self.batch: Final = batch
        self.committing: Final = committing
        self._result: Any = None
        self._error: BaseException | None = None
        self._is_settled = False
        self._turn = threading.Lock()
        self._turn.acquire()
        #: Set as soon as this write is chosen to lead.
        self.is_leader = False

    @property
    def batch_key(self) -> object:
        """Writes with the same key can run at once."""
        return None if self.batch is None else self.batch.run

    @property
    def is_settled(self) -> bool:
        """Whether its outcome is known."""
        return self._is_settled

    def succeed(self, result: Any) -> None:
        """It has been committed."""
        self._result, self._is_settled = result, True

    def fail(self, error: BaseException) -> None:
        """It has not been committed, or that is unknown; the error says which."""
        self._error, self._is_settled = error, True

    def outcome(self) -> Any:
        """The result of the unit.

        Raises:
            what the unit or the database raised.
        """
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # a reference to itself, through the traceback
        return self._result

    def wake(self) -> None:
        """Let its thread go on: it is settled, or it is its turn to lead."""
        self._turn.release()

    def wait(self) -> None:
        """Wait until `wake`."""
        self._turn.acquire()


class GroupCommit:
    """The queue of one process before one database.

    Args:
        commit: settles each of the writes that its argument returns, all in one transaction if
            possible; called by one thread at a time. It calls its argument once, as late as it can:
            writes that arrive while it waits for the database's lock share the commit.
        mixes_batches: whether writes with different batch keys may share a transaction: true if the
            database has one writer at a time, so that no transaction waits for rows.
        writes_max: the most writes in one transaction.
    """

    def __init__(
        self,
        commit: Callable[[Callable[[], list[Write]]], None],
        *,
        mixes_batches: bool = True,
        writes_max: int = WRITES_MAX,
    ) -> None:
        self._commit = commit
        self._mixes_batches = mixes_batches
        self._writes_max = writes_max
        self._lock = threading.Lock()
        self._waiting: deque[Write] = deque()
        self._is_led = False

    def settle(self, write: Write) -> None:
        """Return once the outcome of a write is known."""
        try:
            with self._lock:
                self._waiting.append(write)
                write.is_leader, self._is_led = not self._is_led, True
            if not write.is_leader:
                write.wait()
            if not write.is_settled:
                self._lead()
        except BaseException:
            # A signal interrupted the wait: without this, no other thread would lead.
            self._abandon(write)
            raise
        assert write.is_settled, "whoever leads takes the oldest, and that is its own"

    def _lead(self) -> None:
        group: list[Write] = []

        def take() -> list[Write]:
            with self._lock:
                group.extend(self._taken())
            return group

        try:
            self._commit(take)
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait for it
            for write in group or take():
                if not write.is_settled:
                    write.fail(error)
        finally:
            with self._lock:
                self._hand_over()
            for write in group[1:]:
                write.wake()

    def _abandon(self, write: Write) -> None:
        """Forget a write whose thread no longer waits. If a leader has taken it already, it is
        still committed."""
        with self._lock:
            if write in self._waiting:
                self._waiting.remove(write)
                if write.is_leader:
                    self._hand_over()

    def _hand_over(self) -> None:
        """Make the oldest waiting write the leader, if there is one. Needs the lock."""
        self._is_led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].is_leader = True
            self._waiting[0].wake()

    def _taken(self) -> list[Write]:
        """The writes that share the next transaction with the oldest, in order of arrival.

        RACE bench.databases, spread, 16 clients: in two processes, transactions with claims and
        then releases deadlocked on usages; PostgreSQL detects a deadlock only after a second.
        """
        if not self._waiting:
            return []
        oldest = self._waiting[0].batch_key
        taken: list[Write] = []
        left: deque[Write] = deque()
        for write in self._waiting:
            fits = self._mixes_batches or write.batch_key == oldest
            (taken if fits and len(taken) < self._writes_max else left).append(write)
        self._waiting = left
        return taken


# --- Several writes in one transaction: each fails or succeeds by itself -------------------------


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
        ending: of a unit that has no others beside it: `Tx.ending`.
    """

    def __init__(
        self,
        run: Runner,
        dialect: Dialect,
        begun: Callable[[Runner], Tx],
        ending: Callable[[Tx], list[Change]] | None,
    ) -> None:
        self._run = run
        self._dialect = dialect
        self._begun = begun
        self._ending = ending

    def _begun_alone(self) -> Tx:
        tx = self._begun(self._run)
        tx.ending = self._ending
        return tx

    def run_alone(self, write: Write) -> dict[Write, Outcome]:
        """Run the only write of a transaction, which must not be committed if it fails."""
        return {write: _attempted(write.unit, self._begun_alone())}

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
                unit = partial(run_all, items=items)
                is_all = len(alike) == len(writes)
                outcome = self._run_in_savepoint(unit) if done else self._run_first(unit, is_all)
                if outcome.error is None:
                    each = outcome._replace(result=None)
                    done.update(dict.fromkeys(compress(alike, outcome.result), each))
                elif not isinstance(outcome.error, Exception):
                    raise outcome.error
        return done

    def _run_first(self, unit: Callable[[Tx], Any], is_all: bool) -> Outcome:
        """The outcome of the first unit of a transaction. If it failed, begins a new transaction.

        This saves the two round trips of a savepoint, and a refusal is rare.

        Raises:
            DBAPIError: the database failed; what it wrote is unknown.
        """
        outcome = _attempted(unit, self._begun_alone() if is_all else self._begun(self._run))
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
        Apart, NoWriter: it has to run once more, in another way.
    """
    try:
        return Outcome(tx, unit(tx), None)
    except (exc.DBAPIError, Apart, NoWriter):
        raise
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
        return Outcome(tx, None, error)
