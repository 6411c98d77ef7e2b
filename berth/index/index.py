# SPDX-License-Identifier: Apache-2.0
"""The index of one worker process and its synchronisation with the database by the writers' clock.

A read must see every write that was acknowledged before it, whichever worker took that write. So
each read first looks up how far the writers have come (docs/architecture.md, the vector clock), and
reloads the trees of the providers that the journal names since. On SQLite this costs no query:
`PRAGMA data_version` says whether another connection committed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from msgspec import Struct

from berth.index.block import ROWS_MAX
from berth.index.faulty_rows import FaultyRow
from berth.index.fleet import Fleet
from berth.index.memory import Memory
from berth.index.revision import Clock
from berth.index.snapshot import Snapshot
from berth.model.errors import DatabaseUnavailable, IndexUnavailable, LostRace
from berth.model.ids import ProviderId, ProviderUUID
from berth.store import index_feed
from berth.store.aggregates import iter_aggregates
from berth.store.changes import deletions_since
from berth.store.engine.connections import Stamp
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx, Writer
from berth.store.foreign_writes import note_foreign, take_over, written_elsewhere
from berth.store.identity import NO_IDENTITY, read_identity
from berth.store.index_feed import WriterHead
from berth.store.lookups import providers_by_uuid


class Counts(Struct):
    """What the index has done so far: for tests, and for operators."""

    #: Times that everything was loaded.
    loads: int = 0
    #: Trees loaded by refreshes.
    trees: int = 0
    #: Providers of which refreshes loaded only the usage.
    usages: int = 0


class Observer:
    """Receives events of an index, in the thread in which they happen; this one ignores them."""

    def clock(self) -> float:
        """Seconds since some moment, never running backwards."""
        return 0.0

    def refreshed(self, seconds: float, *, wholly: bool) -> None:
        """The index has taken over changes, or loaded everything (`wholly`)."""

    def failed(self) -> None:
        """The database was not available."""

    def left_out(self, sentences: Collection[str]) -> None:
        """These are the rows that the index leaves out now; before, there were others."""


class Index:
    """The index of one process, to be shared by all of its threads."""

    def __init__(
        self,
        db: Database,
        *,
        part_providers: int = index_feed.PART_PROVIDERS,
        rows_max: int = ROWS_MAX,
        memory: Memory | None = None,
    ) -> None:
        """An index that has read nothing yet.

        Args:
            part_providers: providers that a full load reads at a time.
            rows_max: trees in one of its blocks.
            memory: what its readers share; None for a new one of the usual size.
        """
        self.memory = Memory() if memory is None else memory
        self._part_providers = part_providers
        self._rows_max = rows_max
        self.counts = Counts()
        self.observer = Observer()
        self._db = db
        self._lock = threading.Lock()
        self._fleet: Fleet | None = None
        self._snapshot: Snapshot | None = None
        #: The identity of the database, for revisions.
        self._identity = NO_IDENTITY
        #: writer -> the last seq whose journal is part of the snapshot.
        self._applied: dict[int, int] = {}
        #: Providers that another program has written, as refreshes have seen.
        self._foreign: set[ProviderId] = set()
        #: Providers that have come or gone, as refreshes have seen, but not in the journal: another
        #: program has created, moved or deleted them.
        self._strangers: set[tuple[ProviderId, ProviderUUID]] = set()
        #: The faulty rows that the observer knows.
        self._faults: frozenset[FaultyRow] = frozenset()
        #: The database's commit stamp before the last refresh.
        self._stamp: Stamp | None = None
        #: The number of the last refresh that was started, that succeeded and that failed. Threads
        #: that wait meanwhile share the result of the next one; otherwise an unresponsive database
        #: would keep each of them waiting in turn.
        self._started = self._succeeded = self._failed = 0
        _reset_after_fork(self)

    @property
    def latest(self) -> Snapshot | None:
        """The snapshot of the last read, which may be out of date; None before the first one.

        Costs no query: for names in records, never for an answer.
        """
        return self._snapshot

    def snapshot(self) -> Snapshot:
        """The fleet with every write that was acknowledged before this call.

        Raises:
            IndexUnavailable: the database was not available; an older snapshot is never returned
                instead.
        """
        started = self._started
        with self._lock:
            if self._succeeded > started and self._snapshot is not None:
                # Another thread has read the clock after this call began.
                return self._snapshot
            if self._failed > started:
                raise IndexUnavailable
            self._started += 1
            try:
                # The stamp is taken first: a commit after it is at worst looked up twice.
                stamp = self._db.commit_stamp()
                if self._snapshot is None or stamp != self._stamp:
                    self._snapshot = self._observed(stamp)
                    if self._foreign or self._strangers:
                        self._take_over_foreign()
                    self._stamp = stamp
            except DatabaseUnavailable as error:
                self._failed = self._started
                self.observer.failed()
                raise IndexUnavailable from error
            self._succeeded = self._started
            return self._snapshot

    @contextmanager
    def reading(self) -> Iterator[tuple[Snapshot, Tx]]:
        """A read transaction, and the fleet in the state that it sees.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        with self._db.read() as tx:
            # Nobody else brings the index to a later state before the transaction has seen one.
            with self._lock:
                self._snapshot = snapshot = self._refreshed_in(tx)
            yield snapshot, tx

    def reload_foreign(self, uuid: ProviderUUID) -> bool:
        """Load a provider again if another program has created, changed or deleted it.

        A refresh follows berth's journal, to which other programs do not write. So ask this when a
        provider seems not to exist, or not at the generation that was shown.

        Returns:
            whether it was loaded again; False also if the database is not available.
        """
        if self._snapshot is not None and uuid in self._snapshot.faults:
            return False
        with suppress(DatabaseUnavailable, IndexUnavailable):
            with self._db.read() as tx:
                stored = providers_by_uuid(tx, [uuid]).get(uuid)
            # Taken afterwards, so it has every commit of berth that was read.
            snapshot = self.snapshot()
            at = snapshot.locate_uuid(uuid)
            if at is not None:
                block = snapshot.block(at.block_id)
                if stored and block.generations.item(at.node, at.row) >= (stored.generation or 0):
                    return False
                provider = ProviderId(block.provider_ids.item(at.node, at.row))
                note_foreign(self._db, [(provider, uuid)])
                return True
            if stored is not None:
                note_foreign(self._db, [(stored.id, uuid)])
                return True
        return False

    def reset_after_fork(self) -> None:
        """In a forked child: drop locks and a refresh that threads of the parent held."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._fleet = self._snapshot = self._stamp = None
        self.memory.reset_after_fork()

    def _observed(self, stamp: Stamp | None = None) -> Snapshot:
        """The fleet with every commit so far; those up to a server's stamp are enough."""
        begun, loads = self.observer.clock(), self.counts.loads
        snapshot = None
        if stamp is not None and isinstance(stamp.clock, str):
            snapshot = self._followed(index_feed.heads_in(stamp.clock))
        if snapshot is None:
            with self._db.watch() as tx:
                snapshot = self._refreshed_in(tx)
        wholly = self.counts.loads != loads
        self.observer.refreshed(self.observer.clock() - begun, wholly=wholly)
        return snapshot

    def _take_over_foreign(self) -> None:
        """Recount the usage of providers that another program has written, note those that it has
        created or deleted, and read all of them again.

        If nothing can be written now, a later claim on one of the former does it; the latter are
        noted after a later refresh.
        """
        providers, self._foreign = self._foreign, set()
        with suppress(DatabaseUnavailable, LostRace):
            if providers:
                take_over(self._db, providers)
            if self._strangers:
                note_foreign(self._db, self._strangers)
                self._strangers = set()
            self._snapshot = self._observed()

    def _refreshed_in(self, tx: Tx) -> Snapshot:
        """The state that a transaction sees, which is not older than the index."""
        heads = index_feed.writer_heads(tx)
        snapshot = self._followed(heads)
        if snapshot is not None:
            return snapshot
        if self._fleet is None or _beyond_horizon(self._applied, heads):
            return self._reloaded(tx, heads)
        if not self._apply(self._fleet, tx, self._moved(heads)):
            return self._reloaded(tx, heads)
        return self._taken(self._fleet, heads)

    def _moved(self, heads: Mapping[int, WriterHead]) -> dict[int, int]:
        """How far the index had come, of the writers that have gone on."""
        return {
            writer: self._applied.get(writer, 0)
            for writer, head in heads.items()
            if head.seq != self._applied.get(writer, 0)
        }

    def _followed(self, heads: Mapping[int, WriterHead]) -> Snapshot | None:
        """The state at some heads, if nothing has to be read for it, because this process has made
        and remembers all commits that the index lacks."""
        if self._fleet is None or _beyond_horizon(self._applied, heads):
            return None
        moved = self._moved(heads)
        if not moved:
            return self._snapshot
        if len(moved) > 1:
            return None
        ((writer, seq),) = moved.items()
        moves = self._db.own_commits.since(seq, Writer(writer, heads[writer].seq))
        if moves is None:
            return None
        try:
            self.counts.usages += self._fleet.move(moves)
            return self._taken(self._fleet, heads)
        except BaseException:
            self._fleet = None  # moving it once more would count the same twice
            raise

    def _apply(self, fleet: Fleet, tx: Tx, moved: Mapping[int, int]) -> bool:
        """Take over what the journal says since; False if everything must be loaded instead.

        Args:
            moved: how far the index had come, of the writers that have gone on.
        """
        changes = index_feed.journal_since(tx, moved)
        try:
            if changes.names:
                self._take_names(fleet, tx)
            if changes.wholly:
                self._replace_trees(fleet, tx, changes.wholly, moved)
            if changes.usage_only:
                self.counts.usages += len(changes.usage_only)
                fleet.set_states(index_feed.states_of(tx, changes.usage_only))
        except BaseException:
            # A half-applied change makes the index useless: the next read loads everything.
            self._fleet = None
            raise
        return fleet.has_its_names

    def _take_names(self, fleet: Fleet, tx: Tx) -> None:
        names = index_feed.names(tx)
        fleet.set_names(names.classes, names.traits, names.trait_times)
        fleet.set_records(names.records)
        fleet.add_aggregates(iter_aggregates(tx, None))
        self._identity = names.identity

    def _replace_trees(
        self, fleet: Fleet, tx: Tx, changed: set[ProviderId], moved: Mapping[int, int]
    ) -> None:
        roots = index_feed.roots_of(tx, changed) | fleet.roots_of(changed)
        rows = index_feed.fleet_rows(tx, roots, with_drains=fleet.has_drains)
        if fleet.lacks_names(rows):
            # Another program may have defined them.
            self._take_names(fleet, tx)
        rows = fleet.sound(roots, rows)
        now = {number: ProviderUUID(uuid) for number, uuid, *_ in rows.providers}
        strangers = _strangers(tx, moved, changed, before=fleet.uuids_of(roots), now=now)
        if not strangers <= self._strangers:
            self._strangers |= strangers
            # Where they have come from, or gone to, may be another tree.
            self._replace_trees(fleet, tx, changed | {number for number, _ in strangers}, moved)
            return
        self._foreign |= written_elsewhere(tx, now)
        unknown = fleet.unknown_aggregates(aggregate for _, aggregate in rows.aggregates)
        fleet.add_aggregates(iter_aggregates(tx, unknown))
        self.counts.trees += len(roots)
        fleet.replace(roots, fleet.trees_from(rows))

    def _reloaded(self, tx: Tx, heads: Mapping[int, WriterHead]) -> Snapshot:
        # Where the clock has gone back, commits that are lost must not be taken for later ones.
        self._db.own_commits.clear()
        fleet = loaded(tx, self.memory, self._part_providers, self._rows_max)
        self._identity = read_identity(tx)
        self.counts.loads += 1
        return self._taken(fleet, heads)

    def _taken(self, fleet: Fleet, heads: Mapping[int, WriterHead]) -> Snapshot:
        """Make what was read the present state in one step: `_applied` and the snapshot must always
        be of the same moment, whatever fails in between or afterwards."""
        applied = {writer: head.seq for writer, head in heads.items()}
        snapshot = fleet.snapshot(Clock(self._identity, applied))
        self._fleet, self._applied, self._snapshot = fleet, applied, snapshot
        if fleet.faults != self._faults:
            self._faults = fleet.faults
            self.observer.left_out(sorted(fault.sentence for fault in fleet.faults))
        return snapshot


def _reset_after_fork(index: Index) -> None:
    """Without this, a child forked during a refresh could never refresh."""
    alive = weakref.ref(index)

    def reset() -> None:
        if (child := alive()) is not None:
            child.reset_after_fork()

    os.register_at_fork(after_in_child=reset)


def _strangers(
    tx: Tx,
    moved: Mapping[int, int],
    changed: Collection[ProviderId],
    *,
    before: Mapping[ProviderId, ProviderUUID],
    now: Mapping[ProviderId, ProviderUUID],
) -> set[tuple[ProviderId, ProviderUUID]]:
    """The providers of some trees that have come or gone although the journal does not say so.

    Args:
        moved, changed: what the journal has been read after, and the providers that it names.
        before, now: the providers of these trees.
    """
    gone, come = before.items() - now.items(), now.items() - before.items()
    strangers = {each for each in gone | come if each[0] not in changed}
    # On SQLite a commit of berth may have given the id of one that another program has deleted.
    replaced = {each for each in gone if each[0] in changed and each[0] in now}
    if replaced:
        strangers |= replaced - deletions_since(tx, moved, {number for number, _ in replaced})
    return strangers


def _beyond_horizon(applied: Mapping[int, int], heads: Mapping[int, WriterHead]) -> bool:
    """Whether the journal lacks changes since: a part was trimmed, a writer's row is gone, or the
    clock went back, as after a cluster lost acknowledged commits."""
    return any(
        writer not in heads or heads[writer].seq < seq for writer, seq in applied.items()
    ) or any(head.trimmed_seq > applied.get(writer, 0) for writer, head in heads.items())


def loaded(
    tx: Tx,
    memory: Memory | None = None,
    part_providers: int = index_feed.PART_PROVIDERS,
    rows_max: int = ROWS_MAX,
) -> Fleet:
    """The fleet that a transaction sees; for `memory`, see `Fleet`."""
    names = index_feed.names(tx)
    fleet = Fleet(
        class_ids=names.classes,
        trait_ids=names.traits,
        trait_times=names.trait_times,
        rows_max=rows_max,
        memory=memory,
    )
    fleet.set_records(names.records)
    fleet.add_aggregates(iter_aggregates(tx, None))
    fleet.load(index_feed.fleet_parts(tx, part_providers, with_drains=fleet.has_drains))
    return fleet
