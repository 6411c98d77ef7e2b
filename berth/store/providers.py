# SPDX-License-Identifier: Apache-2.0
"""Providers: listing, creating, renaming, moving and deleting them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from berth.model.errors import (
    DuplicateProviderName,
    DuplicateProviderUUID,
    InvalidInput,
    LostRace,
    ParentIsSelf,
    ParentNotFound,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
    TreeLoop,
    UnknownResourceClass,
    UnknownTraits,
)
from berth.model.filters import ProviderFilters
from berth.model.ids import ClassId, Generation, ProviderId, ProviderUUID
from berth.model.inventory import MAX_INT
from berth.model.provider import Provider
from berth.model.sentinels import UNSET, Sentinel
from berth.model.tree import check_move, subtree
from berth.store.aggregate_spellings import aggregate_ids
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.store.expressions import rewritten, stored_ratio
from berth.store.lookups import (
    class_ids,
    get_provider_row,
    missing,
    trait_ids,
)

#: Providers that are read at a time.
PART: Final = 1000

#: Conditions in one query: engines limit the depth of an expression.
_CONDITIONS_MAX: Final = 300

_rp = resource_providers.c


def iter_providers(
    db: Database, filters: ProviderFilters, *, part: int = PART
) -> Iterator[list[Provider]]:
    """The providers that meet all the filters, in the order of their creation, some at a time.

    All of them are of one state of the database, which is read until the last has been given.

    Args:
        part: how many are given at a time.

    Raises:
        UnknownResourceClass: `filters.resources` names one.
        UnknownTraits: `filters.required` or `filters.forbidden` name some.
        InvalidInput: there are more filters than one query can hold.
    """
    with db.read() as tx:
        # PERF bench/hosts.py: what every host asks once a minute; making the query anew each time
        # took three times as long.
        if filters.in_tree is not None and filters == ProviderFilters(in_tree=filters.in_tree):
            rows_of_tree = tx.rows(_PROVIDERS_OF_TREE, {"in_tree": filters.in_tree})
            yield [_provider(row) for row in rows_of_tree]
            return
        conditions = _conditions(tx, filters)
        if conditions is None:
            return
        rows = tx.connection.execute(
            _PROVIDERS.where(*conditions).order_by(_rp.id), execution_options={"yield_per": part}
        )
        for some in rows.partitions():
            found = [_provider(row) for row in some]
            # Some collations take names for the same that are not.
            yield [
                one
                for one in found
                if filters.name in (None, one.name) and filters.uuid in (None, one.uuid)
            ]


def get_provider(db: Database, uuid: ProviderUUID) -> Provider:
    """One provider.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        return _get_provider(tx, uuid)


def create_provider(
    db: Database, *, uuid: ProviderUUID, name: str, parent_uuid: ProviderUUID | None
) -> Provider:
    """A new provider at generation 0: a root, or below a parent.

    Raises:
        ParentIsSelf, ParentNotFound: it cannot have this parent.
        DuplicateProviderUUID, DuplicateProviderName: taken; the uuid is looked at first.
    """

    def unit(tx: Tx) -> Provider:
        parent = None if parent_uuid is None else _new_parent(tx, uuid, parent_uuid, name)
        _check_unique(tx, uuid=uuid, name=name)
        number = _insert_provider(tx, uuid, name, parent)
        tx.touched.add(number)
        root_uuid = uuid if parent is None else parent.root_uuid
        return Provider(number, uuid, name, Generation(0), parent_uuid, root_uuid, tx.now, None)

    return db.write(unit)


def update_provider(
    db: Database,
    uuid: ProviderUUID,
    *,
    name: str,
    parent_uuid: ProviderUUID | Literal[Sentinel.UNSET] | None,
    may_reparent: bool,
) -> Provider:
    """Rename a provider, and move it with its subtree; UNSET leaves its parent as it is.

    `may_reparent`: microversion 1.37 or later. The generation stays.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ParentNotFound, TreeLoop, ReparentNotAllowed, UnparentNotAllowed: not to this parent.
        DuplicateProviderName: another provider has this name.
    """

    def unit(tx: Tx) -> Provider:
        before = _get_provider(tx, uuid)
        if parent_uuid is not UNSET and parent_uuid != before.parent_uuid:
            _move(tx, before, parent_uuid, may_reparent=may_reparent)
        _rename(tx, before, name)
        tx.touched.add(before.id)
        return _get_provider(tx, uuid)

    return db.write(unit)


def delete_provider(db: Database, uuid: ProviderUUID) -> None:
    """Delete a provider with its inventories, aggregate and trait associations.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderHasChildren, ProviderInUse: not while it has these; children are looked at first.
    """

    def unit(tx: Tx) -> None:
        provider = get_provider_row(tx, uuid, to_delete=True)
        _check_childless(tx, provider.id, uuid)
        _check_unused(tx, provider.id, uuid)
        # The generation is the guard against claims, the NULL lets the row go although it is its
        # own root (a reference to itself).
        let_go = tx.connection.execute(
            update(resource_providers)
            .where(_rp.id == provider.id, _rp.generation == provider.generation)
            .values(root_provider_id=None)
        )
        if let_go.rowcount != 1:
            raise LostRace(f"resource provider {uuid}")
        for table in (
            resource_provider_traits,
            resource_provider_aggregates,
            berth_usages,
            inventories,
        ):
            tx.connection.execute(delete(table).where(table.c.resource_provider_id == provider.id))
        try:
            tx.connection.execute(delete(resource_providers).where(_rp.id == provider.id))
        except IntegrityError as error:  # a child has slipped in
            raise ProviderHasChildren(uuid) from error
        tx.touched.add(provider.id)

    db.write(unit)


# --- Reading -------------------------------------------------------------------------------------

_parent = resource_providers.alias("parent")
_root = resource_providers.alias("root")


# PERF: built once; building a statement takes longer than running it.
_PROVIDERS: Final = (
    select(
        _rp.id,
        _rp.uuid,
        _rp.name,
        _rp.generation,
        _parent.c.uuid,
        func.coalesce(_root.c.uuid, _rp.uuid),
        _rp.created_at,
        _rp.updated_at,
    )
    .select_from(resource_providers)
    .outerjoin(_parent, _parent.c.id == _rp.parent_provider_id)
    .outerjoin(_root, _root.c.id == _rp.root_provider_id)
)
_PROVIDER_BY_UUID: Final = _PROVIDERS.where(_rp.uuid == bindparam("uuid"))

_member: Final = resource_providers.alias("member")


def _in_tree_of(uuid: ProviderUUID | BindParameter[ProviderUUID]) -> ColumnElement[bool]:
    root = select(_member.c.root_provider_id).where(_member.c.uuid == uuid)
    return _rp.root_provider_id == root.scalar_subquery()


_PROVIDERS_OF_TREE: Final = _PROVIDERS.where(_in_tree_of(bindparam("in_tree"))).order_by(_rp.id)


def _provider(row: Sequence[Any]) -> Provider:
    return Provider(*row)


def _get_provider(tx: Tx, uuid: ProviderUUID) -> Provider:
    for row in tx.rows(_PROVIDER_BY_UUID, {"uuid": uuid}):
        provider = _provider(row)
        if provider.uuid == uuid:
            return provider
    raise ProviderNotFound(uuid)


# --- Filters -------------------------------------------------------------------------------------


def _conditions(tx: Tx, filters: ProviderFilters) -> list[ColumnElement[bool]] | None:
    """What the WHERE must say, or None when it is known already that nothing matches."""
    conditions = _own_conditions(filters)
    for found in (
        _resource_conditions(tx, filters),
        _trait_conditions(tx, filters),
        _aggregate_conditions(tx, filters),
    ):
        if found is None:
            return None
        conditions += found
    if len(conditions) > _CONDITIONS_MAX:
        raise InvalidInput(
            f"The query has {len(conditions)} different conditions; at most {_CONDITIONS_MAX} "
            f"are possible"
        )
    return conditions


def _own_conditions(filters: ProviderFilters) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.name is not None:
        conditions.append(_rp.name == filters.name)
    if filters.uuid is not None:
        conditions.append(_rp.uuid == filters.uuid)
    if filters.in_tree is not None:
        conditions.append(_in_tree_of(filters.in_tree))
    return conditions


def _resource_conditions(tx: Tx, filters: ProviderFilters) -> list[ColumnElement[bool]] | None:
    ids = class_ids(tx, filters.resources)
    for name in missing(filters.resources, ids):
        raise UnknownResourceClass(name)
    if any(amount > MAX_INT for amount in filters.resources.values()):
        return None
    return [
        _rp.id.in_(_providers_with_room(ids[name], amount))
        for name, amount in filters.resources.items()
    ]


def _providers_with_room(resource_class: ClassId, amount: int) -> Select[Any]:
    inv, usage = inventories.c, berth_usages.c
    return (
        select(inv.resource_provider_id)
        .outerjoin(
            berth_usages,
            and_(
                usage.resource_provider_id == inv.resource_provider_id,
                usage.resource_class_id == inv.resource_class_id,
            ),
        )
        .where(
            inv.resource_class_id == resource_class,
            func.coalesce(usage.used, 0) + amount
            <= (inv.total - inv.reserved) * stored_ratio(inv.allocation_ratio),
            inv.min_unit <= amount,
            inv.max_unit >= amount,
            amount % inv.step_size == 0,
        )
    )


def _trait_conditions(tx: Tx, filters: ProviderFilters) -> list[ColumnElement[bool]] | None:
    named = sorted(filters.forbidden.union(*filters.required))
    ids = trait_ids(tx, named)
    if unknown := missing(named, ids):
        raise UnknownTraits(unknown)
    having = resource_provider_traits.c
    conditions: list[ColumnElement[bool]] = []
    for any_of in dict.fromkeys(filters.required):
        conditions.append(_has_any(tx, having.trait_id, [ids[name] for name in any_of]))
    if filters.forbidden:
        conditions.append(~_has_any(tx, having.trait_id, [ids[name] for name in filters.forbidden]))
    return conditions


def _aggregate_conditions(tx: Tx, filters: ProviderFilters) -> list[ColumnElement[bool]] | None:
    ids = aggregate_ids(tx, filters.not_member_of.union(*filters.member_of))
    member = resource_provider_aggregates.c
    conditions: list[ColumnElement[bool]] = []
    for any_of in dict.fromkeys(filters.member_of):
        known = [number for uuid in any_of for number in ids.get(uuid, ())]
        if not known:
            return None
        conditions.append(_has_any(tx, member.aggregate_id, known))
    if banned := [number for uuid in filters.not_member_of for number in ids.get(uuid, ())]:
        conditions.append(~_has_any(tx, member.aggregate_id, banned))
    return conditions


def _has_any(tx: Tx, association: ColumnElement[int], ids: list[Any]) -> ColumnElement[bool]:
    """That the provider is associated with one of the traits or aggregates of these ids."""
    of_provider = association.table.c.resource_provider_id
    some = [association.in_(chunk) for chunk in tx.chunks(sorted(ids))]
    return _rp.id.in_(select(of_provider).where(or_(*some)))


# --- Writing -------------------------------------------------------------------------------------


def _check_unique(tx: Tx, *, uuid: ProviderUUID, name: str) -> None:
    """Say which of the two is taken; the unique keys are the guard."""
    same = tx.connection.execute(
        select(_rp.uuid).where(or_(_rp.uuid == uuid, _rp.name == name))
    ).scalars()
    taken = set(same)
    if uuid in taken:
        raise DuplicateProviderUUID(uuid)
    if taken:
        raise DuplicateProviderName(name)


def _new_parent(tx: Tx, uuid: ProviderUUID, parent_uuid: ProviderUUID, new_name: str) -> Provider:
    if parent_uuid == uuid:
        raise ParentIsSelf(uuid, parent_uuid, new_name=new_name)
    try:
        parent = _get_provider(tx, parent_uuid)
    except ProviderNotFound as error:
        raise ParentNotFound(uuid, parent_uuid, new_name=new_name) from error
    _pin_place(tx, parent)
    return parent


def _pin_place(tx: Tx, parent: Provider) -> None:
    """Write a parent's row as it is, so that it cannot move or go while it gets a child.

    Raises:
        LostRace: it has moved or gone.
    """
    root = select(_root.c.id).where(_root.c.uuid == parent.root_uuid).scalar_subquery()
    pinned = tx.connection.execute(
        update(resource_providers)
        .where(_rp.id == parent.id, _rp.root_provider_id == root)
        .values(root_provider_id=_rp.root_provider_id, updated_at=rewritten(_rp.updated_at))
    )
    if pinned.rowcount != 1:
        raise LostRace(f"resource provider {parent.uuid}")


def _insert_provider(tx: Tx, uuid: ProviderUUID, name: str, parent: Provider | None) -> ProviderId:
    place: dict[str, Any] = {}
    if parent is not None:
        root = select(_root.c.id).where(_root.c.uuid == parent.root_uuid).scalar_subquery()
        place = {"parent_provider_id": parent.id, "root_provider_id": root}
    try:
        result = tx.connection.execute(
            insert(resource_providers).values(
                uuid=uuid, name=name, generation=0, created_at=tx.now, **place
            )
        )
    except IntegrityError as error:
        raise LostRace(f"resource provider {uuid}") from error
    (number,) = result.inserted_primary_key or (None,)
    assert number is not None, "the table gives ids by itself"
    if parent is None:
        tx.connection.execute(
            update(resource_providers).where(_rp.id == number).values(root_provider_id=number)
        )
    return ProviderId(number)


def _rename(tx: Tx, before: Provider, name: str) -> None:
    others = select(_rp.id).where(_rp.name == name, _rp.id != before.id)
    if tx.connection.execute(others).first() is not None:
        raise DuplicateProviderName(name, creating=False)
    try:
        renamed = tx.connection.execute(
            update(resource_providers)
            .where(_rp.id == before.id)
            .values(name=name, updated_at=tx.now)
        )
    except IntegrityError as error:
        raise LostRace(f"the name {name}") from error
    if renamed.rowcount != 1:
        raise LostRace(f"resource provider {before.uuid}")


def _move(
    tx: Tx, provider: Provider, parent_uuid: ProviderUUID | None, *, may_reparent: bool
) -> None:
    """Give a provider another parent, or none, and its whole subtree the new root.

    RACE tests/store/test_tree_races.py: every row of the subtree is written, and so is the new
    parent's, so that of two moves that would make a loop together one finds a row changed.
    """
    parent = None if parent_uuid is None else _find_parent(tx, provider, parent_uuid)
    check_move(
        provider.uuid,
        current=provider.parent_uuid,
        wanted=parent_uuid,
        may_reparent=may_reparent,
    )
    old_root, parents = _tree(tx, provider)
    moved = subtree(provider.id, parents)
    if parent is not None:
        if parent.id in moved:
            raise TreeLoop(provider.uuid, parent_uuid)
        _pin_place(tx, parent)
    new_root = provider.id if parent is None else _root_id(tx, parent)
    old_parent = parents[provider.id]
    placed = tx.connection.execute(
        update(resource_providers)
        .where(_rp.id == provider.id, _rp.parent_provider_id.is_not_distinct_from(old_parent))
        .values(parent_provider_id=None if parent is None else parent.id)
    )
    rerooted = sum(
        tx.connection.execute(
            update(resource_providers)
            .where(_rp.id.in_(chunk), _rp.root_provider_id == old_root)
            .values(root_provider_id=new_root, updated_at=tx.now)
        ).rowcount
        for chunk in tx.chunks(sorted(moved))
    )
    if placed.rowcount != 1 or rerooted != len(moved):
        raise LostRace(f"the tree of resource provider {provider.uuid}")
    tx.touched.update(moved)


def _find_parent(tx: Tx, provider: Provider, parent_uuid: ProviderUUID) -> Provider:
    try:
        return _get_provider(tx, parent_uuid)
    except ProviderNotFound as error:
        raise ParentNotFound(provider.uuid, parent_uuid) from error


def _tree(tx: Tx, provider: Provider) -> tuple[ProviderId, dict[ProviderId, ProviderId | None]]:
    """The root's id, and the parent of each provider of the tree."""
    root = _root_id(tx, provider)
    rows = tx.connection.execute(
        select(_rp.id, _rp.parent_provider_id).where(_rp.root_provider_id == root)
    )
    return root, dict(tuple(row) for row in rows)


def _root_id(tx: Tx, provider: Provider) -> ProviderId:
    number = tx.connection.scalar(select(_rp.root_provider_id).where(_rp.id == provider.id))
    if number is None:
        raise LostRace(f"resource provider {provider.uuid}")
    return ProviderId(number)


def _check_childless(tx: Tx, provider: ProviderId, uuid: ProviderUUID) -> None:
    if tx.connection.scalar(select(exists().where(_rp.parent_provider_id == provider))):
        raise ProviderHasChildren(uuid)


def _check_unused(tx: Tx, provider: ProviderId, uuid: ProviderUUID) -> None:
    held = allocations.c.resource_provider_id == provider
    if tx.connection.scalar(select(exists().where(held))):
        raise ProviderInUse(uuid)
