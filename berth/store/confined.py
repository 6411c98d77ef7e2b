# SPDX-License-Identifier: Apache-2.0
"""Confines the writes of a caller to the tree of one host, in the same transaction.

A write locks the tree of the host, runs, and is then judged by the providers that it has touched,
which it notes for the journal anyway: each was in the tree before, or was created, and is there
afterwards, or is gone. The lock keeps every provider of the tree in it until the commit, and every
other out; so a provider that moves at the same instant counts for one of the two trees, never for
both and never for none. Source: spec/beyond.md 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, TypeVar

from os_traits import MISC_SHARES_VIA_AGGREGATE
from sqlalchemy import bindparam, or_, select

from berth.model.errors import LostRace
from berth.model.ids import AggregateUUID, ProviderId, parse_uuid_lax
from berth.model.own_errors import AggregateRefused, OutsideHost
from berth.store.aggregates import canonical
from berth.store.engine.database import ATTEMPTS, Database
from berth.store.engine.group_commit import Batchable, Committing
from berth.store.engine.tables import (
    allocations,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.tree_rows import ids_of_tree, lock_tree

T = TypeVar("T")

_rp, _member = resource_providers.c, resource_provider_aggregates.c
_root = resource_providers.alias("root")

_HOST: Final = select(_rp.id, _rp.uuid, _rp.name, _rp.root_provider_id).where(
    or_(_rp.uuid == bindparam("uuid"), _rp.name == bindparam("name"))
)
_PLACES: Final = (
    select(_rp.id, _rp.name, _root.c.name)
    .select_from(resource_providers)
    .outerjoin(_root, _root.c.id == _rp.root_provider_id)
    .where(_rp.id.in_(bindparam("providers", expanding=True)))
    .order_by(_rp.id)
)
_HOLDING: Final = select(allocations.c.resource_provider_id).where(
    allocations.c.consumer_id == bindparam("consumer")
)
_MEMBERSHIPS: Final = (
    select(placement_aggregates.c.id, placement_aggregates.c.uuid)
    .join(
        resource_provider_aggregates,
        _member.aggregate_id == placement_aggregates.c.id,
    )
    .join(resource_providers, _rp.id == _member.resource_provider_id)
    .where(_rp.root_provider_id == bindparam("root"))
    .distinct()
)
_SHARING: Final = (
    select(_member.aggregate_id, _rp.id, _rp.name)
    .join(resource_providers, _rp.id == _member.resource_provider_id)
    .join(
        resource_provider_traits,
        resource_provider_traits.c.resource_provider_id == _rp.id,
    )
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(
        traits.c.name == MISC_SHARES_VIA_AGGREGATE,
        _member.aggregate_id.in_(bindparam("aggregates", expanding=True)),
    )
    .order_by(_rp.id)
)


class _Tree(NamedTuple):
    """The tree of the host at one moment; without a root there is none."""

    root: ProviderId | None
    providers: Collection[ProviderId]
    #: The aggregates of its providers, by id; empty unless they are restricted.
    aggregates: dict[int, AggregateUUID]


class ConfinedDatabase(Database):
    """A database, for a caller that may write to the tree of one host only.

    Args:
        host: the name or the UUID of the root of the tree, which need not exist.
        aggregates: those of sharing providers that it may join; None for all.
    """

    def __init__(
        self, database: Database, host: str, aggregates: Collection[AggregateUUID] | None
    ) -> None:
        # Reads, and whatever else a database has, are those of the whole one.
        self.__dict__.update(database.__dict__)
        self._whole = database
        self._host = host
        self._allowed = aggregates

    def write(
        self,
        unit: Callable[[Tx], T],
        *,
        attempts: int = ATTEMPTS,
        batch: Batchable | None = None,
        committing: Committing | None = None,
    ) -> T:
        """As that of the whole database, but for changes outside the tree.

        Raises:
            OutsideHost: it would change a provider outside the tree, or bring one into it.
            AggregateRefused: a provider would join an aggregate that it may not join.
        """

        def confined(tx: Tx) -> T:
            before = self._tree(tx, lock=True)
            result = unit(tx)
            # On MySQL, locking the tree has written times, of which the moves do not tell.
            tx.moves.clear()
            after = self._tree(tx, lock=False)
            self._check_providers(tx, before, after)
            self._check_aggregates(tx, before, after)
            return result

        return self._whole.write(confined, attempts=attempts, committing=committing)

    def _tree(self, tx: Tx, *, lock: bool) -> _Tree:
        root = self._find_root(tx)
        if root is None:
            return _Tree(None, frozenset(), {})
        providers = lock_tree(tx, root) if lock else ids_of_tree(tx, root)
        return _Tree(root, providers, self._aggregates_of(tx, root))

    def _find_root(self, tx: Tx) -> ProviderId | None:
        """The host, if it is the root of its tree: below another root, it would rule that tree."""
        uuid = parse_uuid_lax(self._host)
        named = {"uuid": uuid or "", "name": "" if uuid else self._host}
        for number, row_uuid, name, root in tx.rows(_HOST, named):
            # Some collations treat different names as equal.
            if row_uuid == uuid or (uuid is None and name == self._host):
                return ProviderId(number) if number == root else None
        return None

    def _aggregates_of(self, tx: Tx, root: ProviderId) -> dict[int, AggregateUUID]:
        if self._allowed is None:
            return {}
        return {number: canonical(uuid) for number, uuid in tx.rows(_MEMBERSHIPS, {"root": root})}

    def _check_providers(self, tx: Tx, before: _Tree, after: _Tree) -> None:
        for consumer in tx.consumers:
            tx.concerned |= {number for (number,) in tx.rows(_HOLDING, {"consumer": consumer})}
        changed = (tx.touched | tx.usage_changed | tx.concerned) - tx.left_alone
        outside = changed.difference(before.providers, tx.created)
        outside |= changed.difference(after.providers, tx.gone)
        if not outside:
            return
        for number in sorted(outside & tx.gone.keys()):
            raise OutsideHost(self._host, tx.gone[number], root="another host")
        for _, name, root in _rows_of(tx, outside):
            raise OutsideHost(self._host, name, root=root or name)
        if outside - tx.concerned:
            raise LostRace("a tree of resource providers")

    def _check_aggregates(self, tx: Tx, before: _Tree, after: _Tree) -> None:
        joined = {
            number: uuid
            for number, uuid in after.aggregates.items()
            if number not in before.aggregates and uuid not in (self._allowed or ())
        }
        for chunk in tx.chunks(sorted(joined)):
            for number, provider, name in tx.rows(_SHARING, {"aggregates": chunk}):
                if provider not in after.providers:
                    raise AggregateRefused(self._host, joined[number], name)


def _rows_of(tx: Tx, providers: Iterable[int]) -> list[tuple[int, str, str | None]]:
    """The ids and names of some providers, with the names of their roots."""
    return [
        row
        for chunk in tx.chunks(sorted(providers))
        for row in tx.rows(_PLACES, {"providers": chunk})
    ]
