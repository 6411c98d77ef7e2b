# SPDX-License-Identifier: Apache-2.0
"""Writes allocations as part of a transaction, for `allocations` and `reshape`.

The caller reads the facts that decide the claim (`claim_reads`), reports errors in the required
order, and then writes the claim here. The write costs one batch of statements. It always takes
locks in the same order: providers by id, usages by provider and class, allocations, consumers.

The UPDATE of a usage decides: its WHERE checks the capacity, the units and the provider's
generation. So unrelated claims on one provider never make each other fail, and a claim that
succeeds does not read inventories. If an UPDATE changed no row, the providers are read; they can no
longer change, because this transaction has incremented their generations. Either the read shows why
the claim must be refused, or another request had changed a provider in between, and the missing
usages are written now.
Source: spec/rest-api.md 10.6, spec/commit-rules.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress, groupby
from math import gcd
from typing import Final, NamedTuple

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Update,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    BerthError,
    CapacityExceeded,
    ConsumerRace,
    LostRace,
    NoInventory,
    UnitViolation,
)
from berth.model.ids import ConsumerUUID, Generation, ProviderId
from berth.store.claim_checks import (
    Wanted,
    check_inventories,
    check_known,
    check_not_bare,
    refuse_excess,
    sums_of,
)
from berth.store.claim_reads import ClaimFacts, Room, StoredAllocation, read_rooms
from berth.store.consumers import (
    Owners,
    StoredConsumer,
    consumer_changes,
    consumer_deletion,
    ensure_owners,
    name_changes,
    read_consumers,
)
from berth.store.engine.expressions import stored_ratio
from berth.store.engine.prepared import insert_of
from berth.store.engine.project_deltas import CONSUMERS, ProjectDeltas
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    inventories,
    of_inventory,
    resource_providers,
    same_inventory,
)
from berth.store.engine.transaction import Change, Moves, Tx, writes_all
from berth.store.foreign_writes import ForeignWrite
from berth.store.generations import Bump, bumping
from berth.store.inventories import Key
from berth.store.leases import Lease, lease_changes

_allocation = allocations.c
_inv = inventories.c
_usage = berth_usages.c
_provider = resource_providers.c


class Claim(Struct, frozen=True):
    """The new allocations of some consumers, and the facts that were read for them.

    Every name in the writes must exist: see `claim_reads.check_class_names`.
    """

    writes: Sequence[ConsumerWrite]
    facts: ClaimFacts
    #: Further writes of the same commit, which wait for no row that another claim locks first.
    beside: Sequence[Change] = ()
    #: Leases that have expired, for which their consumers release everything.
    expired: Sequence[Lease] = ()
    #: Whether the unit of work touches no other provider afterwards.
    is_last: bool = False

    def bumped(self) -> set[ProviderId]:
        """The providers whose generation is incremented.

        These are the providers that get new allocations, and those that lose all allocations of an
        emptied consumer. COMPAT spec/rest-api.md 1.15: not those that a consumer only moves off.
        """
        providers = self.facts.providers
        named = {providers[uuid].id for write in self.writes for uuid in write.allocations}
        return named.union(allocation.key.provider for allocation in self.released())

    def left_alone(self) -> set[ProviderId]:
        """The providers on which each consumer of the claim keeps exactly what it has."""
        before = {(each.consumer, each.key): each.used for each in self.facts.allocations}
        after = {(each.consumer, each.key): each.amount for each in _wanted(self)}
        changed = {key.provider for (_, key), _ in before.items() ^ after.items()}
        return {key.provider for _, key in before.keys() & after.keys()} - changed

    def released(self) -> list[StoredAllocation]:
        """The allocations of consumers that the claim empties."""
        emptied = {write.uuid for write in self.writes if not write.allocations}
        return [each for each in self.facts.allocations if each.consumer in emptied]


#: The largest number of an INTEGER column.
_INTEGER_MAX: Final = 2**31 - 1


class _Stock(NamedTuple):
    """The inventories of some providers, and the providers' generations."""

    rooms: Mapping[Key, Room]
    generations: Mapping[ProviderId, Generation]


def write_claim(tx: Tx, claim: Claim, steps: Mapping[ProviderId, int]) -> None:
    """Increment providers' generations, check a claim against their inventories, and write it.

    Args:
        steps: by how much to increment the generation of each provider of `claim.bumped()`.

    Raises:
        ForeignWrite: another program has changed a provider.
        NoInventory, UnitViolation, CapacityExceeded: for the first amount with such an error.
        ConsumerRace, LostRace: another request was faster.
    """
    bumps = [Bump(provider, steps=count) for provider, count in sorted(steps.items())]
    tx.usage_changed.update(steps)
    write = _ClaimWrite(tx, claim, steps)
    generations = _generations_of(claim.facts)
    if generations is not None and write.can_be_compared:
        write.write_at_once(bumps, generations)
    else:
        tx.change_all([bumping(tx, bumps)])
        write.write_checked()


def write_claim_of_bumped(tx: Tx, claim: Claim, steps: Mapping[ProviderId, int]) -> None:
    """As `write_claim`, with the same errors, after this transaction has incremented the
    generations of `claim.bumped()`: their inventories can no longer change, so they are read here.

    Args:
        steps: the increments that the providers' usages do not have yet.
    """
    _ClaimWrite(tx, claim, steps).write_checked()


def release(
    tx: Tx, facts: ClaimFacts, *, expired: Sequence[Lease] = (), is_last: bool = False
) -> set[ConsumerUUID]:
    """Delete all allocations of the consumers that were read; return those that had any.

    Args:
        expired: leases because of which this happens: unless they still are as they were read,
            another request was faster.
        is_last: as in `Claim`.

    Raises:
        ForeignWrite: another program has changed a provider.
        ConsumerRace, LostRace: another request was faster.
    """
    write = _ClaimWrite(tx, Claim([], facts, expired=expired, is_last=is_last), {})
    if (generations := _generations_of(facts)) is not None:
        write.write_at_once([], generations)
    else:
        write.write_checked()
    return {allocation.consumer for allocation in facts.allocations}


# --- One claim -----------------------------------------------------------------------------------


class _ClaimWrite:
    """One claim being written."""

    def __init__(self, tx: Tx, claim: Claim, steps: Mapping[ProviderId, int]) -> None:
        self._tx = tx
        self._claim = claim
        self._steps = steps
        self._wanted = _wanted(claim)
        #: The amounts requested from each inventory.
        self._amounts: dict[Key, list[int]] = {}
        for wanted in self._wanted:
            self._amounts.setdefault(wanted.key, []).append(wanted.amount)
        #: The change of each usage.
        self._change = sums_of(self._wanted)
        for allocation in claim.facts.allocations:
            self._change[allocation.key] -= allocation.used

    @property
    def can_be_compared(self) -> bool:
        """Whether all amounts fit into the type of an inventory's columns."""
        return max(map(sum, self._amounts.values()), default=0) <= _INTEGER_MAX

    def write_at_once(
        self, bumps: Sequence[Bump], generations: Mapping[ProviderId, Generation]
    ) -> None:
        """Write the claim, and read the providers only if a usage could not be changed.

        Args:
            bumps: the increments of the providers' generations.
            generations: the providers' generations, as read.
        """
        steps = self._steps
        moved = {place: Generation(generations[place] + steps[place]) for place in steps}
        keys = sorted(self._amounts.keys() | self._change.keys())
        changed: set[Key] = set()
        self._write(bumps, self._usage_changes(keys, moved, changed))
        if len(changed) != len(keys):
            self._write_unchanged(changed)

    def write_checked(self) -> None:
        """Read the providers, whose generations this transaction has changed, and write the
        claim."""
        stock = _stock_of(read_rooms(self._tx, self._places), behind=self._steps)
        self._check(stock)
        self._write([], [self._remaining_change(stock, set())])

    def _write(self, bumps: Sequence[Bump], usage_changes: Iterable[Change]) -> None:
        tx, claim, facts = self._tx, self._claim, self._claim.facts
        owners = ensure_owners(tx, claim.writes, facts.owners)
        holding = {write.uuid for write in claim.writes if write.allocations}
        released = self._released_consumers()
        tx.usage_changed.update(self._places)
        tx.moves.append(Moves(self._steps, self._change.items(), tx.now))
        _count_for_projects(tx.project_usages, claim, owners)
        changes = [
            bumping(tx, bumps),
            *usage_changes,
            *_deletions(tx, facts.allocations, recorded=facts.consumers.keys() | holding),
            _insertion(tx, self._wanted),
            *consumer_changes(tx, claim.writes, facts.consumers, owners),
            consumer_deletion(released),
            *name_changes(tx, claim.writes, facts.consumers, released, owners),
            *lease_changes(tx, claim.writes, facts.consumers, released, claim.expired),
            *claim.beside,
        ]
        try:
            tx.change_all(changes, is_last=claim.is_last)
        except IntegrityError as error:
            # The only unique keys that these changes can violate are those of consumers, of their
            # names and of their leases. The next attempt reads which.
            if any(write.name is not None or write.lease_until for write in claim.writes):
                raise LostRace("a consumer, its name or its lease") from error
            raise ConsumerRace(list(holding - facts.consumers.keys())) from error

    def _usage_changes(
        self, keys: Sequence[Key], moved: Mapping[ProviderId, Generation], changed: set[Key]
    ) -> list[Change]:
        """The updates of usages, in lock order; running them fills `changed`."""

        def noting(part: Sequence[Key]) -> Callable[[Sequence[int]], None]:
            return lambda counts: changed.update(compress(part, counts))

        def statement_for(key: Key) -> Update:
            if key in self._amounts:
                return _CLAIM_USAGE
            return _CHANGE_USAGE if key.provider in moved else _RELEASE_USAGE

        return [
            self._usage_change(statement, part, moved, noting(part))
            for statement, group in groupby(keys, statement_for)
            for part in [list(group)]
        ]

    def _usage_change(
        self,
        statement: Update,
        keys: Sequence[Key],
        moved: Mapping[ProviderId, Generation],
        check: Callable[[Sequence[int]], None],
    ) -> Change:
        rows = [{**key._asdict(), "delta": self._change[key]} for key in keys]
        if statement is not _RELEASE_USAGE:
            for row, key in zip(rows, keys, strict=True):
                row["generation"] = moved.get(key.provider)
        if statement is _CLAIM_USAGE:
            for row, key in zip(rows, keys, strict=True):
                amounts = self._amounts[key]
                row |= {"least": min(amounts), "most": max(amounts), "divisor": gcd(*amounts)}
        return Change(statement, rows, check)

    def _write_unchanged(self, changed: Collection[Key]) -> None:
        """Write the usages that the batch did not change, or refuse the claim.

        RACE tests/store/test_claim_races.py: the row counts decide. This transaction has
        incremented the providers' generations, so from now on others can only release.
        RACE tests/proof/test_workers.py, MariaDB: the values of usages do not show which of them
        were changed, because others release allocations without waiting for the provider.
        RACE bench.databases, spread, 16 clients: the rows that are left may come before those that
        it has locked, so another transaction and this one can wait for each other.

        Raises:
            NoInventory, UnitViolation, CapacityExceeded, ForeignWrite, ConsumerRace: the reason.
            LostRace: the reason has disappeared meanwhile.
        """
        self._tx.wait_briefly()
        rooms = read_rooms(self._tx, self._places)
        for key in rooms.keys() & changed:
            rooms[key] = rooms[key]._replace(used=rooms[key].used - self._change[key])
        level = {key.provider for key in changed}
        behind = {place: count for place, count in self._steps.items() if place not in level}
        stock = _stock_of(rooms, behind=behind)
        written = {write.uuid for write in self._claim.writes if write.allocations}
        self._check(stock, changed, written=written.union(self._claim.facts.consumers))
        self._tx.change_all([self._remaining_change(stock, changed)])

    def _remaining_change(self, stock: _Stock, changed: Collection[Key]) -> Change:
        """The update of the usages still to be changed, and of one usage of each provider with a
        new generation. Old data may contain allocations without an inventory."""
        moved = {
            place: stock.generations[place] for place in self._steps if place in stock.generations
        }
        keys = {key for key, delta in self._change.items() if delta != 0 and key in stock.rooms}
        if missed := moved.keys() - {key.provider for key in keys.union(changed)}:
            keys.update(
                {key.provider: key for key in stock.rooms if key.provider in missed}.values()
            )
        remaining = sorted(keys.difference(changed))
        check = writes_all(len(remaining), LostRace, "an inventory")
        return self._usage_change(_CHANGE_USAGE, remaining, moved, check)

    @property
    def _places(self) -> set[ProviderId]:
        """The providers whose usage changes."""
        return {key.provider for key in self._change}

    def _released_consumers(self) -> list[StoredConsumer]:
        """The consumers that lose all allocations and have no write of their own."""
        written = {write.uuid for write in self._claim.writes}
        holders = {allocation.consumer for allocation in self._claim.facts.allocations}
        stored = self._claim.facts.consumers.values()
        return [consumer for consumer in stored if consumer.uuid in holders - written]

    def _check(
        self,
        stock: _Stock,
        changed: Collection[Key] = (),
        *,
        written: Collection[ConsumerUUID] = (),
    ) -> None:
        """Refuse amounts that the providers cannot satisfy.

        Args:
            changed: usages that already include this claim.
            written: consumers that this transaction has written, so no other has changed them.

        Raises:
            NoInventory, UnitViolation, CapacityExceeded: for the first amount with such an error.
            ForeignWrite, ConsumerRace: this is the actual reason.
        """
        try:
            check_not_bare(self._tx, self._wanted, self._claim.released(), stock.rooms)
            check_inventories(self._wanted, stock.rooms, self._change)
            refuse_excess(
                self._wanted,
                {key: room for key, room in stock.rooms.items() if key not in changed},
                self._change,
                only_first=len(self._wanted),
            )
        except NoInventory as refusal:
            check_known(self._tx, self._places - stock.generations.keys(), refusal)
            self._check_unmoved(refusal, written)
            raise
        except (UnitViolation, CapacityExceeded) as refusal:
            self._check_unmoved(refusal, written)
            raise

    def _check_unmoved(self, refusal: BerthError, written: Collection[ConsumerUUID]) -> None:
        """Check that the consumers have not changed since their allocations were read.

        RACE tests/store/test_claim_races.py: while a claim waited for the provider, a reshape moved
        the consumer's allocations. The old allocations and the new inventories together left too
        little capacity, though this state had never existed.

        Raises:
            ConsumerRace: some have changed.
        """
        uuids = [write.uuid for write in self._claim.writes if write.uuid not in written]
        stored, now = self._claim.facts.consumers, read_consumers(self._tx, uuids)
        if moved := [uuid for uuid in uuids if now.get(uuid) != stored.get(uuid)]:
            raise ConsumerRace(moved) from refusal


def _count_for_projects(deltas: ProjectDeltas, claim: Claim, owners: Owners) -> None:
    """Count what a claim releases for the consumers' previous projects, users and types, and what
    it writes for the new ones. Allocations of a consumer without a record count for no project."""
    stored, classes = claim.facts.consumers, claim.facts.classes
    previous = {uuid: consumer.owner for uuid, consumer in stored.items()}
    holders = set()
    for allocation in claim.facts.allocations:
        if (owner := previous.get(allocation.consumer)) is not None:
            deltas.add(owner, allocation.key.resource_class, -allocation.used)
            holders.add(allocation.consumer)
    for holder in holders:
        deltas.add(previous[holder], CONSUMERS, -1)
    for write in claim.writes:
        if not write.allocations:
            continue
        owner = owners.of(write, stored.get(write.uuid))
        deltas.add(owner, CONSUMERS, 1)
        for amounts in write.allocations.values():
            for name, amount in amounts.items():
                deltas.add(owner, classes[name], amount)


def _wanted(claim: Claim) -> list[Wanted]:
    providers, classes = claim.facts.providers, claim.facts.classes
    return [
        Wanted(write.uuid, provider, name, Key(providers[provider].id, classes[name]), amount)
        for write in claim.writes
        for provider, amounts in write.allocations.items()
        for name, amount in amounts.items()
    ]


def _generations_of(facts: ClaimFacts) -> dict[ProviderId, Generation] | None:
    """The generations of the providers of a claim. None if a provider has no usages that could
    show another program's change, or if old data refer to a deleted provider.

    Raises:
        ForeignWrite: another program has changed one.
    """
    if any(None in generations for generations in facts.generations.values()):
        return None
    if foreign := [
        provider for provider, (own, usages) in facts.generations.items() if own != usages
    ]:
        raise ForeignWrite(foreign)
    return {provider: own for provider, (own, _) in facts.generations.items()}


def _stock_of(rooms: Mapping[Key, Room], *, behind: Mapping[ProviderId, int]) -> _Stock:
    """The inventories and generations of some providers.

    Args:
        behind: this transaction's increments that the providers' usages do not have yet.

    Raises:
        ForeignWrite: another program has changed one of them, and may have written allocations.
    """
    usage_generations: dict[ProviderId, int] = {}
    generations: dict[ProviderId, Generation] = {}
    for key, room in rooms.items():
        generations[key.provider] = room.generation
        newest = -1 if room.usage_generation is None else room.usage_generation
        usage_generations[key.provider] = max(usage_generations.get(key.provider, -1), newest)
    if foreign := [
        provider
        for provider, generation in generations.items()
        if usage_generations[provider] + behind.get(provider, 0) != generation
    ]:
        raise ForeignWrite(foreign)
    return _Stock(rooms, generations)


# --- Usages --------------------------------------------------------------------------------------

_DELTA: Final = bindparam("delta", type_=BigInteger)
_GENERATION: Final = bindparam("generation", type_=Integer)
_ZERO: Final[ColumnElement[int]] = literal_column("0")

_generation_of_provider: Final = (
    select(_provider.generation)
    .where(_provider.id == _usage.resource_provider_id)
    .correlate(berth_usages)
    .scalar_subquery()
)
#: Whether there is capacity left for a usage; NULL if it has no inventory. A change that adds
#: nothing passes even if the inventory is overcommitted.
#: PERF a scalar, not EXISTS, for which PostgreSQL may read the whole table and build a hash of it.
_has_room: Final = (
    select(
        or_(
            _DELTA <= _ZERO,
            _usage.used + _DELTA
            <= (_inv.total - _inv.reserved) * stored_ratio(_inv.allocation_ratio),
        )
    )
    .where(same_inventory(inventories, berth_usages))
    .correlate(berth_usages)
)
#: All amounts are multiples of the step if their greatest common divisor is.
_fits_units: Final = and_(
    bindparam("least", type_=Integer) >= _inv.min_unit,
    bindparam("most", type_=Integer) <= _inv.max_unit,
    bindparam("divisor", type_=Integer) % func.nullif(_inv.step_size, _ZERO) == _ZERO,
)
_OF_KEY: Final = of_inventory(berth_usages)
#: The guard of every claim: the provider must be at a generation, which the usage gets.
_CLAIM_USAGE: Final = (
    update(berth_usages)
    .where(
        _OF_KEY,
        _generation_of_provider == _GENERATION,
        _has_room.where(_fits_units).scalar_subquery(),
    )
    .values(used=_usage.used + _DELTA, generation=_GENERATION)
)
#: Without the units, which were checked or have not changed. The generation may be NULL.
_CHANGE_USAGE: Final = (
    update(berth_usages)
    .where(
        _OF_KEY,
        or_(_GENERATION.is_(None), _generation_of_provider == _GENERATION),
        or_(_DELTA <= _ZERO, _has_room.scalar_subquery()),
    )
    .values(used=_usage.used + _DELTA, generation=func.coalesce(_GENERATION, _usage.generation))
)
#: For changes that only release, and without a generation.
#: PERF conditions on parameters alone make PostgreSQL plan a statement again each time.
_RELEASE_USAGE: Final = update(berth_usages).where(_OF_KEY).values(used=_usage.used + _DELTA)


# --- Allocations ---------------------------------------------------------------------------------

_INSERT: Final = insert_of(
    allocations,
    "resource_provider_id",
    "resource_class_id",
    "consumer_id",
    "used",
    "created_at",
)
_RELEASE: Final = delete(allocations).where(
    _allocation.consumer_id.in_(bindparam("consumers", expanding=True))
)


def _deletions(
    tx: Tx, stored: Sequence[StoredAllocation], *, recorded: Collection[ConsumerUUID]
) -> list[Change]:
    """The deletions of all allocations of some consumers.

    They raise ConsumerRace if a consumer's allocations have changed since they were read.

    RACE tests/store/test_claim_races.py: a consumer that has allocations but no record comes from
    very old data, or was created after the records were read. In the latter case its record exists
    by now, and nothing would delete it.

    Args:
        recorded: consumers whose records were read, or are written by this transaction.
    """
    rows_of = Counter(allocation.consumer for allocation in stored)

    def deletion(holders: list[ConsumerUUID]) -> Change:
        def check(counts: Sequence[int]) -> None:
            if sum(counts) != sum(rows_of[holder] for holder in holders):
                raise ConsumerRace(holders)
            unrecorded = set(holders).difference(recorded)
            if unrecorded and (made := read_consumers(tx, unrecorded)):
                raise ConsumerRace(list(made))

        return Change(_RELEASE, [{"consumers": holders}], check)

    return [deletion(holders) for holders in tx.chunks(rows_of)]


def _insertion(tx: Tx, wanted: Sequence[Wanted]) -> Change:
    return Change(
        _INSERT,
        [
            {
                "resource_provider_id": allocation.key.provider,
                "resource_class_id": allocation.key.resource_class,
                "consumer_id": allocation.consumer,
                "used": allocation.amount,
                "created_at": tx.now,
            }
            for allocation in wanted
        ],
    )
