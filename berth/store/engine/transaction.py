# SPDX-License-Identifier: Apache-2.0
"""A transaction in progress: a unit of work reads and writes with it, and marks its changes."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Executable, Insert, Table
from sqlalchemy.exc import IntegrityError

from berth.model.errors import LostRace
from berth.model.ids import ClassId, ProviderId
from berth.store.engine.dialect import Dialect
from berth.store.engine.prepared import Parameters, Runner, Statements
from berth.store.engine.project_deltas import ProjectDeltas
from berth.store.engine.wire import Packed

T = TypeVar("T")

#: Values in one IN list: engines limit the parameters of a statement.
IN_LIST_MAX: Final = 500

#: Commits that a process remembers, and the most usages that one of them changes: together less
#: than 4 MB. An index that is asked less often reads the journal, as it does for others' commits.
_OWN_MAX: Final = 64
_MOVES_MAX: Final = 256

_NONE: Final[frozenset[int]] = frozenset()


def _accept(_counts: Sequence[int]) -> None:
    """Accept any number of rows."""


def writes_all(
    count: int, error: Callable[[T], Exception], of: T
) -> Callable[[Sequence[int]], None]:
    """A check that raises `error(of)` unless this number of rows was written: then another request
    has changed or deleted one since it was read."""

    def check(counts: Sequence[int]) -> None:
        if sum(counts) != count:
            raise error(of)

    return check


@contextmanager
def unless_taken(subject: str) -> Iterator[None]:
    """For writes of what must be unique, or of what refers to other rows.

    Raises:
        LostRace: another request has taken it, or deleted one of them, since it was looked up.
    """
    try:
        yield
    except IntegrityError as error:
        raise LostRace(subject) from error


class Change(NamedTuple):
    """A write to be sent together with others: see `Tx.change_all`.

    Attributes:
        statement: built once (`prepared`).
        parameters: one set for each run; a statement with a list takes only one set.
        check: receives the number of rows that each run wrote, or several runs of an INSERT, and
            raises if it is wrong.
    """

    statement: Executable
    parameters: Sequence[Parameters]
    check: Callable[[Sequence[int]], None] = _accept


class NoWriter(Exception):
    """This process has no clock row: not yet, or another process took it over while it slept."""


class Apart(Exception):
    """Several writes in one batch broke a rule of a table. Sent apart from the journal's, they show
    whose fault it is."""


class Writer(NamedTuple):
    """A clock row, as its owner's last commit left it."""

    id: int
    seq: int

    @property
    def next(self) -> Writer:
        """As the next commit leaves it."""
        return Writer(self.id, self.seq + 1)


class Moves(NamedTuple):
    """What one claim or release changed of its providers.

    Attributes:
        steps: provider -> increments of its generation.
        deltas: (provider, class) -> change of the usage.
        at: naive UTC; the time of the last change of the providers in `steps`.
    """

    steps: Mapping[ProviderId, int]
    deltas: ItemsView[tuple[ProviderId, ClassId], int]
    at: datetime


class Tx:
    """A transaction in progress, passed to the functions that are part of it."""

    __slots__ = (
        "_run",
        "_statements",
        "concerned",
        "consumers",
        "created",
        "dialect",
        "ending",
        "gone",
        "in_list_max",
        "left_alone",
        "moves",
        "names_touched",
        "noted",
        "now",
        "project_usages",
        "touched",
        "usage_changed",
    )

    def __init__(
        self,
        run: Runner,
        dialect: Dialect,
        statements: Statements,
        *,
        now: datetime,
        in_list_max: int,
    ) -> None:
        self.dialect: Final = dialect
        #: The transaction's time, naive UTC: the same for everything that it writes.
        self.now: Final = now
        #: Ids of the changed providers: the commit notes them in the journal.
        self.touched: Final[set[int]] = set()
        #: Ids of the providers of which only usages changed; one may be in both sets.
        self.usage_changed: Final[set[int]] = set()
        #: What its claims and releases changed of these.
        self.moves: Final[list[Moves]] = []
        #: Of the changed providers, those that were deleted, with their UUIDs.
        self.gone: Final[dict[int, str]] = {}
        #: For `berth.store.confined`: ids of the providers that were created, of those that were
        #: named without being changed, and of those where every allocation was written as it was;
        #: and consumers that were changed in what is not their allocations.
        self.created: Set[int] = _NONE
        self.concerned: Set[int] = _NONE
        self.left_alone: Set[int] = _NONE
        self.consumers: tuple[str, ...] = ()
        #: Whether definitions of traits or resource classes, spellings or labels of aggregates,
        #: flavors, drains, or the database's identity, changed.
        self.names_touched = False
        #: Changes of the counters of what projects use; the commit writes them.
        self.project_usages: Final = ProjectDeltas()
        #: Makes the writes with which the commit is noted in the journal, if they may be sent with
        #: the last ones of the unit; the commit sends them otherwise.
        self.ending: Callable[[Tx], list[Change]] | None = None
        #: What they note, once they are sent.
        self.noted: object | None = None
        #: Values in one IN list.
        self.in_list_max: Final = in_list_max
        self._statements = statements
        self._run = run

    @property
    def connection(self) -> Connection:
        """SQLAlchemy's, for statements that are built for one call; in this transaction."""
        self._run.begin_now()
        return self._run.connection

    @property
    def has_only_moved(self) -> bool:
        """Whether its moves say all that it changed."""
        moved: set[int] = {provider for each in self.moves for (provider, _), _ in each.deltas}
        moved.update(*(each.steps for each in self.moves))
        return not self.touched and not self.names_touched and self.usage_changed == moved

    def chunks(self, values: Iterable[T]) -> Iterator[list[T]]:
        """The values in lists that fit into an IN."""
        pending = iter(values)
        while chunk := list(islice(pending, self.in_list_max)):
            yield chunk

    def wait_briefly(self) -> None:
        """Give up early, from now on, instead of waiting for a locked row: what follows locks rows
        in no fixed order."""
        self.dialect.wait_briefly(self._run)

    def rows(self, query: Executable, parameters: Parameters) -> list[Any]:
        """The rows of a query, as tuples. For queries that are built once (`prepared`)."""
        return self._statements.prepared(query).rows(self._run, parameters)

    def pages(
        self, query: Executable, parameters: Parameters, page: int
    ) -> Iterator[Sequence[Any]]:
        """The rows of a query in pages of `count` rows, each `after` the text in the first column
        of the last row before."""
        after = ""
        while rows := self.rows(query, {**parameters, "after": after, "count": page}):
            yield rows
            if len(rows) < page:
                return
            after = rows[-1][0]

    def rows_once(self, query: Executable) -> list[Any]:
        """The rows of a query that is built for this call, with its values in it.

        Cost: compiling it takes several times as long as running a prepared one.
        """
        return self._statements.compiled(query).rows(self._run, {})

    def change(self, statement: Executable, parameters: Parameters | Sequence[Parameters]) -> int:
        """Run a write for one or more sets of parameters; return how many rows it wrote.

        There must be at least one set.
        """
        sets = [parameters] if isinstance(parameters, Mapping) else parameters
        return sum(self.change_each(statement, sets))

    def insert(self, statement: Insert, parameters: Parameters) -> int:
        """Insert a row into a table that numbers its rows; return its id."""
        return self._statements.prepared(statement).insert(self._run, parameters)

    def change_each(self, statement: Executable, parameters: Sequence[Parameters]) -> list[int]:
        """Run a write for several sets of parameters; return how many rows each wrote, or, of an
        INSERT, several."""
        return self._run.change_all([self._packed(Change(statement, parameters))])[0]

    def change_all(self, changes: Iterable[Change], *, is_last: bool = False) -> None:
        """Run several writes in order, in one round trip if the engine can.

        Every write has run before the first is checked, so a failed check must end the unit of
        work.

        Args:
            is_last: whether the unit touches no other provider afterwards. The same round trip then
                notes the commit in the journal.
        """
        ready = [change for change in changes if change.parameters]
        if not ready:
            return
        noting = self.ending(self) if is_last and self.ending is not None else []
        ready += [change for change in noting if change.parameters]
        try:
            counts = self._run.change_all([self._packed(change) for change in ready])
        except IntegrityError as error:
            if noting:
                raise Apart from error
            raise
        for change, each in zip(ready, counts, strict=True):
            change.check(each)

    def _packed(self, change: Change) -> Packed:
        return self._statements.prepared(change.statement).packed(change.parameters)

    def insert_missing(self, table: Table, rows: Sequence[Parameters]) -> int:
        """Insert the rows whose keys do not exist, all with the same columns; return how many."""
        return sum(
            self.change(insertion.statement, insertion.parameters)
            for insertion in self.insertions_of_missing(table, rows)
        )

    def insertions_of_missing(self, table: Table, rows: Sequence[Parameters]) -> list[Change]:
        """`insert_missing` as a write for `change_all`; empty if there are no rows."""
        return self._insertions(self.dialect.insert_missing, table, rows)

    def replacements(self, table: Table, rows: Sequence[Parameters]) -> list[Change]:
        """The write, for `change_all`, of rows that replace those with the same keys
        (`Dialect.insert_or_replace`); empty if there are none."""
        return self._insertions(self.dialect.insert_or_replace, table, rows)

    def _insertions(
        self, into: Callable[[Table], Insert], table: Table, rows: Sequence[Parameters]
    ) -> list[Change]:
        """The write of rows, which all have the same columns."""
        if not rows:
            return []
        return [Change(self._statements.insertion(into, table, tuple(rows[0])), rows)]


class OwnCommits:
    """The last commits of this process, for its index: of those that only claimed and released, it
    need not read what they changed. Others are left out, and so are large ones."""

    def __init__(self) -> None:
        #: By the count that they have reached, the oldest first.
        self._commits: dict[Writer, Sequence[Moves]] = {}

    def add(self, writer: Writer, parts: Sequence[Tx]) -> None:
        """Remember a commit, whose units ran in some parts."""
        moves = [each for tx in parts for each in tx.moves]
        is_small = sum(len(each.deltas) for each in moves) <= _MOVES_MAX
        if is_small and all(tx.has_only_moved for tx in parts):
            commits = self._commits
            commits[writer] = moves
            if len(commits) > _OWN_MAX:
                del commits[next(iter(commits))]

    def since(self, applied: int, upto: Writer) -> list[Moves] | None:
        """What a writer's commits after a count changed, in order; None if one is missing here."""
        commits, wanted = self._commits, list[Moves]()
        for seq in range(applied + 1, upto.seq + 1):
            moves = commits.get(Writer(upto.id, seq))
            if moves is None:
                return None
            wanted += moves
        return wanted

    def clear(self) -> None:
        """Forget all: the database may be another one, or the process a forked child."""
        # Another dictionary, because another thread may be adding to this one.
        self._commits = {}
