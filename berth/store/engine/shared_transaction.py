# SPDX-License-Identifier: Apache-2.0
"""Several writes in one transaction, each to fail or to succeed by itself."""

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

#: One level is enough: a unit that fails in a shared transaction leaves nothing of itself.
_SAVEPOINT: Final = text("SAVEPOINT berth_unit")
_RELEASE: Final = text("RELEASE SAVEPOINT berth_unit")
_ROLLBACK: Final = text("ROLLBACK TO SAVEPOINT berth_unit")


class Stained(Exception):
    """A transaction in which several share holds something of one that has failed."""


class Outcome(NamedTuple):
    """What a unit gave in a shared transaction that has not been committed yet."""

    tx: Tx
    result: Any
    error: BaseException | None


class SharedTransaction:
    """Runs writes in a transaction that has begun; to commit it is its owner's business.

    Args:
        begun: makes of the transaction what a unit of work gets.
    """

    def __init__(self, run: Runner, dialect: Dialect, begun: Callable[[Runner], Tx]) -> None:
        self._run = run
        self._dialect = dialect
        self._begun = begun

    def run_alone(self, write: Write) -> dict[Write, Outcome]:
        """Run the only write of a transaction, which must not be committed if it fails."""
        return {write: _attempted(write.unit, self._begun(self._run))}

    def run_all(self, writes: Sequence[Write]) -> dict[Write, Outcome]:
        """Run several writes in one transaction, each to fail or to succeed by itself.

        Raises:
            Stained: one has failed, and what it has written cannot be taken back by itself.
        """
        done = self._run_jointly(writes)
        run_it = self._run_unsaved if self._run.is_clustered else self._run_in_savepoint
        left = [write for write in writes if write not in done]
        if left:
            self._dialect.wait_briefly(self._run)
        for write in left:
            done[write] = run_it(write.unit)
        return done

    def _run_jointly(self, writes: Sequence[Write]) -> dict[Write, Outcome]:
        """Do at once what can be done at once; those for which that was done.

        What is refused together is left: of which of them that is true is found out one by one.
        """
        kinds: dict[Callable[..., Any], list[Write]] = {}
        for write in writes:
            if write.joint is not None:
                kinds.setdefault(write.joint.run, []).append(write)
        done: dict[Write, Outcome] = {}
        for run_all, alike in kinds.items():
            if len(alike) > 1:
                items = [write.joint.item for write in alike if write.joint is not None]
                run_it = self._run_in_savepoint if done else self._run_first
                outcome = run_it(partial(run_all, items=items))
                if outcome.error is None:
                    each = outcome._replace(result=None)
                    done.update(dict.fromkeys(compress(alike, outcome.result), each))
                elif not isinstance(outcome.error, Exception):
                    raise outcome.error
        return done

    def _run_first(self, unit: Callable[[Tx], Any]) -> Outcome:
        """What the first unit of a transaction gave, or raised: then the transaction is a new one.

        Two round trips less than a savepoint, and a refusal is rare.

        Raises:
            DBAPIError: the database failed, and nobody knows what it left.
        """
        outcome = _attempted(unit, self._begun(self._run))
        if outcome.error is not None:
            self._run.rollback()
            self._dialect.begin_writing(self._run)
        return outcome

    def _run_unsaved(self, unit: Callable[[Tx], Any]) -> Outcome:
        """What a unit gave, or raised before it had written anything.

        RACE tests/store/test_cluster.py: what is rolled back to a savepoint may reach other nodes.

        Raises:
            Stained: it failed later.
            DBAPIError: the database failed, and nobody knows what it left.
        """
        before = self._run.written
        outcome = _attempted(unit, self._begun(self._run))
        if isinstance(outcome.error, Exception):
            # What SQLAlchemy has run is not counted.
            if self._run.written > before or self._run.connection.in_transaction():
                raise Stained from outcome.error
        elif outcome.error is not None:
            raise outcome.error
        return outcome

    def _run_in_savepoint(self, unit: Callable[[Tx], Any]) -> Outcome:
        """What a unit gave, or raised: then nothing of it is left.

        Raises:
            DBAPIError: the database failed, and nobody knows what it left.
        """
        tx = self._begun(self._run)
        tx.change(_SAVEPOINT, {})
        outcome = _attempted(unit, tx)
        tx.change(_RELEASE if outcome.error is None else _ROLLBACK, {})
        return outcome


def _attempted(unit: Callable[[Tx], Any], tx: Tx) -> Outcome:
    """What a unit gave, or raised; what it has written is still there.

    Raises:
        DBAPIError: the database failed, and nobody knows what it left.
    """
    try:
        return Outcome(tx, unit(tx), None)
    except exc.DBAPIError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
        return Outcome(tx, None, error)
