# SPDX-License-Identifier: Apache-2.0
"""Group commit: writes that arrive while another is under way share the next transaction.

One thread at a time leads: it takes what is waiting, its own write included, and has all of it
committed at once. Then it hands over to a thread that has come meanwhile, and goes. Nobody waits
for company: a write that comes alone is committed alone, and the more wait, the more share the cost
of a commit (spec/commit-rules.md, "What batching is worth").

Where several processes write at once, only writes of one kind share a transaction: each kind takes
its rows in one order, but two kinds after one another do not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

#: Writes in one transaction: after so many the fixed costs hardly count, and those that come later
#: should not wait for ever more.
WRITES_MAX: Final = 64


class Joint(NamedTuple):
    """How a write can be done together with others of its kind, for less than each alone.

    Attributes:
        run: does as many of some writes as it can all at once, in a transaction, and says for each
            whether it did; what it leaves, and all of them if it raises, is done one by one. What
            it does must be what the units would have done in some order.
        item: what `run` is told of this one.
    """

    run: Callable[[Any, Sequence[Any]], Sequence[bool]]
    item: Any


class Write:
    """One write that waits for its outcome. Belongs to the thread that asked for it.

    Args:
        joint: for units that give None.
    """

    def __init__(self, unit: Callable[[Any], Any], joint: Joint | None = None) -> None:
        self.unit: Final = unit
        self.joint: Final = joint
        self._result: Any = None
        self._error: BaseException | None = None
        self._is_settled = False
        self._turn = threading.Lock()
        self._turn.acquire()
        #: It is its turn to lead, from the moment at which that was decided.
        self.is_heir = False

    @property
    def kind(self) -> object:
        """What it has in common with those that can be done at once with it."""
        return None if self.joint is None else self.joint.run

    @property
    def is_settled(self) -> bool:
        """Whether its outcome is known."""
        return self._is_settled

    def succeed(self, result: Any) -> None:
        """It has been committed."""
        self._result, self._is_settled = result, True

    def fail(self, error: BaseException) -> None:
        """Nothing of it has been committed, or nobody can tell; the error says which."""
        self._error, self._is_settled = error, True

    def outcome(self) -> Any:
        """What the unit gave.

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
        """Until `wake`."""
        self._turn.acquire()


class GroupCommit:
    """The queue of one process before one database.

    Args:
        commit: settles each of the writes that its argument gives, all in one transaction if it
            can; called by one thread at a time. It asks for them once, as late as it can: those
            that come while it waits for the database's lock share the commit.
        mixes_kinds: whether writes of all kinds may share a transaction: where the database has a
            single writer at a time, and nobody waits for rows.
        writes_max: how many writes share a transaction at most.
    """

    def __init__(
        self,
        commit: Callable[[Callable[[], list[Write]]], None],
        *,
        mixes_kinds: bool = True,
        writes_max: int = WRITES_MAX,
    ) -> None:
        self._commit = commit
        self._mixes_kinds = mixes_kinds
        self._writes_max = writes_max
        self._lock = threading.Lock()
        self._waiting: deque[Write] = deque()
        self._is_led = False

    def settle(self, write: Write) -> None:
        """Return once the outcome of a write is known."""
        try:
            with self._lock:
                self._waiting.append(write)
                write.is_heir, self._is_led = not self._is_led, True
            if not write.is_heir:
                write.wait()
            if not write.is_settled:
                self._lead()
        except BaseException:
            # A signal's: who waits is gone, and nobody else would lead.
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
        """Let go of a write whose thread does not wait for it any more; if somebody has taken it,
        it takes place all the same."""
        with self._lock:
            if write in self._waiting:
                self._waiting.remove(write)
                if write.is_heir:
                    self._hand_over()

    def _hand_over(self) -> None:
        """Let the oldest that waits lead, if there is one. Needs the lock."""
        self._is_led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].is_heir = True
            self._waiting[0].wake()

    def _taken(self) -> list[Write]:
        """Those that share the next transaction with the oldest, in the order in which they came.

        RACE bench.databases, spread, 16 clients: claims and then releases in one transaction, in
        two processes, waited for each other's usages; PostgreSQL looks for that after a second.
        """
        if not self._waiting:
            return []
        oldest = self._waiting[0].kind
        taken: list[Write] = []
        left: deque[Write] = deque()
        for write in self._waiting:
            fits = self._mixes_kinds or write.kind == oldest
            (taken if fits and len(taken) < self._writes_max else left).append(write)
        self._waiting = left
        return taken
