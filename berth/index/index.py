# SPDX-License-Identifier: Apache-2.0
"""The index of one worker process and its synchronisation with the database by the writers' clock.

A read must see every write that was acknowledged before it, whichever worker took that write. So
each read asks first how far the writers have come (design.md, "A vector clock of writers keeps
every index honest"), and reloads the trees of the providers that the journal names since. On SQLite
the question costs no query at all: `PRAGMA data_version` tells whether anybody else committed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from berth.index.block import ROWS_MAX
from berth.index.check import faults_of
from berth.index.fleet import Fleet
from berth.index.snapshot import Snapshot
from berth.model.errors import DatabaseUnavailable, IndexUnavailable, LostRace
from berth.model.ids import ProviderId
from berth.store import index_feed
from berth.store.aggregate_spellings import iter_aggregates
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.foreign_writes import take_over, written_elsewhere
from berth.store.index_feed import WriterHead


@dataclass(slots=True)
class Counts:
    """What the index did so far: for tests, and for operators."""

    #: Times that everything was loaded.
    loads: int = 0
    #: Times that the journal was read.
    refreshes: int = 0
    #: Trees loaded by refreshes.
    trees: int = 0
    #: Providers of which refreshes looked up nothing but the usage.
    usages: int = 0


class Observer(Protocol):
    """Is told what an index does, by the thread that does it."""

    def clock(self) -> float:
        """Seconds since some moment, never running backwards."""

    def refreshed(self, seconds: float, *, wholly: bool) -> None:
        """The index has taken over what others changed, or everything anew."""

    def failed(self) -> None:
        """The database could not be asked."""


class Unobserved:
    """Nobody wants to know."""

    def clock(self) -> float:
        """No time."""
        return 0.0

    def refreshed(self, seconds: float, *, wholly: bool) -> None:
        """Nothing."""

    def failed(self) -> None:
        """Nothing."""


class Index:
    """The index of one process, to be shared by all of its threads."""

    def __init__(
        self,
        db: Database,
        *,
        portions: index_feed.Portions = index_feed.USUAL,
        rows_max: int = ROWS_MAX,
    ) -> None:
        """An index that has read nothing yet.

        Args:
            portions: how much it reads at a time.
            rows_max: trees in one of its blocks.
        """
        self._portions = portions
        self._rows_max = rows_max
        self.counts = Counts()
        self.observer: Observer = Unobserved()
        self._db = db
        self._lock = threading.Lock()
        self._fleet: Fleet | None = None
        self._snapshot: Snapshot | None = None
        #: writer -> the last seq whose journal is part of the snapshot.
        self._applied: dict[int, int] = {}
        #: Providers that refreshes have found to be written by another program.
        self._foreign: set[ProviderId] = set()
        #: The database's commit stamp before the last refresh.
        self._stamp: tuple[int, int] | None = None
        #: How many times the database has been asked how far its writers are, and the last of
        #: these that has been answered, and that has not: those who wait meanwhile share what comes
        #: of the next, or a database that is silent would keep each of them waiting in turn.
        self._asked = self._answered = self._failed = 0
        _begin_anew_after_fork(self)

    def snapshot(self) -> Snapshot:
        """The fleet with every write that was acknowledged before this call.

        Raises:
            IndexUnavailable: the database could not be asked; nothing older is ever answered
                instead.
        """
        asked = self._asked
        with self._lock:
            if self._answered > asked and self._snapshot is not None:
                # Somebody has asked the database after this call came, and been answered.
                return self._snapshot
            if self._failed > asked:
                raise IndexUnavailable
            self._asked += 1
            try:
                # The stamp is taken first: what commits after it is at worst looked at twice.
                stamp = self._db.commit_stamp()
                if self._snapshot is None or stamp is None or stamp != self._stamp:
                    self._snapshot = self._observed()
                    if self._foreign:
                        self._take_over_foreign()
                    self._stamp = stamp
            except DatabaseUnavailable as error:
                self._failed = self._asked
                self.observer.failed()
                raise IndexUnavailable from error
            self._answered = self._asked
            return self._snapshot

    def check(self) -> list[str]:
        """Re-derive everything from the database and say what does not agree; an empty list when
        all is well."""
        snapshot = self.snapshot()
        with self._db.read() as tx:
            return faults_of(snapshot, _loaded(tx).snapshot(), index_feed.used_amounts(tx))

    def forget_refresh(self) -> None:
        """In a forked child: nobody will end a refresh that the parent was at."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._fleet = self._snapshot = self._stamp = None

    def _observed(self) -> Snapshot:
        begun, loads = self.observer.clock(), self.counts.loads
        snapshot = self._refreshed()
        wholly = self.counts.loads != loads
        self.observer.refreshed(self.observer.clock() - begun, wholly=wholly)
        return snapshot

    def _take_over_foreign(self) -> None:
        """Have the providers recounted that another program has written, and read the sums again.

        Where nothing may be written now, a later claim on one of them finds the same.
        """
        found, self._foreign = self._foreign, set()
        with suppress(DatabaseUnavailable, LostRace):
            take_over(self._db, found)
            self._snapshot = self._observed()

    def _refreshed(self) -> Snapshot:
        with self._db.watch() as tx:
            heads = index_feed.writer_heads(tx)
            if self._fleet is None or _beyond_horizon(self._applied, heads):
                return self._reloaded(tx, heads)
            moved = {
                writer: self._applied.get(writer, 0)
                for writer, head in heads.items()
                if head.seq != self._applied.get(writer, 0)
            }
            if not moved and self._snapshot is not None:
                return self._snapshot
            changes = index_feed.journal_since(tx, moved)
            self._apply(self._fleet, tx, changes)
        self.counts.refreshes += 1
        return self._taken(self._fleet, heads)

    def _apply(self, fleet: Fleet, tx: Tx, changes: index_feed.Changes) -> None:
        try:
            if changes.names:
                names = index_feed.names(tx)
                fleet.set_names(class_ids=names.classes, trait_ids=names.traits)
            if changes.wholly:
                self._replace_trees(fleet, tx, changes.wholly)
            if changes.usage_only:
                self.counts.usages += len(changes.usage_only)
                fleet.set_used(index_feed.usages_of(tx, changes.usage_only, self._portions))
        except BaseException:
            # Half a change is no index: the next read starts from the database.
            self._fleet = None
            raise

    def _replace_trees(self, fleet: Fleet, tx: Tx, changed: set[ProviderId]) -> None:
        roots = index_feed.roots_of(tx, changed, self._portions) | fleet.roots_of(changed)
        rows = index_feed.fleet_rows(tx, roots, self._portions)
        self._foreign |= written_elsewhere(tx, [number for number, *_ in rows.providers])
        unknown = fleet.unknown_aggregates(aggregate for _, aggregate in rows.aggregates)
        fleet.add_aggregates(iter_aggregates(tx, unknown))
        self.counts.trees += len(roots)
        fleet.replace(roots, fleet.trees_from(rows))

    def _reloaded(self, tx: Tx, heads: Mapping[int, WriterHead]) -> Snapshot:
        fleet = _loaded(tx, self._portions, self._rows_max)
        self.counts.loads += 1
        return self._taken(fleet, heads)

    def _taken(self, fleet: Fleet, heads: Mapping[int, WriterHead]) -> Snapshot:
        """Make what was read the present state, in one go: what was applied and the snapshot must
        never be of different moments, whatever fails in between or afterwards."""
        snapshot = fleet.snapshot()
        applied = {writer: head.seq for writer, head in heads.items()}
        self._fleet, self._applied, self._snapshot = fleet, applied, snapshot
        return snapshot


def _begin_anew_after_fork(index: Index) -> None:
    """A server that forks while one of its threads refreshes has children that never could."""
    alive = weakref.ref(index)

    def begin_anew() -> None:
        if (child := alive()) is not None:
            child.forget_refresh()

    os.register_at_fork(after_in_child=begin_anew)


def _beyond_horizon(applied: Mapping[int, int], heads: Mapping[int, WriterHead]) -> bool:
    """Whether the journal no longer has all that happened since: a part was trimmed, a writer is
    gone altogether, or the clock went back, as after a cluster has lost what it had acknowledged.
    """
    return any(
        writer not in heads or heads[writer].seq < seq for writer, seq in applied.items()
    ) or any(head.trimmed_seq > applied.get(writer, 0) for writer, head in heads.items())


def _loaded(
    tx: Tx, portions: index_feed.Portions = index_feed.USUAL, rows_max: int = ROWS_MAX
) -> Fleet:
    names = index_feed.names(tx)
    fleet = Fleet(class_ids=names.classes, trait_ids=names.traits, rows_max=rows_max)
    fleet.add_aggregates(iter_aggregates(tx, None))
    fleet.load(index_feed.fleet_parts(tx, portions))
    return fleet
