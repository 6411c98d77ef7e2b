# SPDX-License-Identifier: Apache-2.0
"""Providers: creating, renaming, moving and deleting them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Integer, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from berth.model.errors import (
    DuplicateProviderName,
    DuplicateProviderUUID,
    LostRace,
    ParentIsSelf,
    ParentNotFound,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
    TreeLoop,
)
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.provider import Provider
from berth.model.provider_trees import check_move, subtree
from berth.model.shown import UNSET, Sometimes
from berth.store.engine.database import Database
from berth.store.engine.expressions import rewritten
from berth.store.engine.tables import (
    allocations,
    berth_drained,
    berth_usages,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)
from berth.store.engine.transaction import Tx, unless_taken
from berth.store.engine.write_record import NewProvider
from berth.store.lookups import ProviderRow, get_provider_row

_rp = resource_providers.c


def get_provider(db: Database, uuid: ProviderUUID) -> Provider:
    """One provider, as the database has it.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        return _get_provider(tx, uuid)


def create_provider(
    db: Database, *, uuid: ProviderUUID, name: str, parent_uuid: ProviderUUID | None
) -> Provider:
    """Create a provider at generation 0: a root, or a child of a parent.

    Raises:
        ParentIsSelf, ParentNotFound: it cannot have this parent.
        DuplicateProviderUUID, DuplicateProviderName: taken; the uuid is checked first.
    """
    if db.record is not None:
        db.record.providers[uuid] = NewProvider(name, parent_uuid)

    def unit(tx: Tx) -> Provider:
        parent = None
        if parent_uuid == uuid:
            raise ParentIsSelf(uuid, parent_uuid, new_name=name)
        if parent_uuid is not None:
            _pin_place(tx, parent := _get_parent(tx, uuid, parent_uuid, name))
        _check_unique(tx, uuid=uuid, name=name)
        number = _insert_provider(tx, uuid, name, parent)
        tx.touched.add(number)
        tx.created |= {number}
        root_uuid = uuid if parent is None else parent.root_uuid
        return Provider(number, uuid, name, Generation(0), parent_uuid, root_uuid, tx.now, None)

    return db.write(unit)


def update_provider(
    db: Database,
    uuid: ProviderUUID,
    *,
    name: str,
    parent_uuid: Sometimes[ProviderUUID | None],
    may_reparent: bool,
) -> Provider:
    """Rename a provider, and move it with its subtree; UNSET keeps its parent.

    `may_reparent`: microversion 1.37 or later. The generation does not change.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ParentNotFound, TreeLoop, ReparentNotAllowed, UnparentNotAllowed: it cannot have this
            parent.
        DuplicateProviderName: another provider has this name.
    """
    if (record := db.record) is not None:
        record.wanted["name"] = name
        if parent_uuid is not UNSET:
            record.wanted["parent_provider_uuid"] = parent_uuid
            record.providers |= {} if parent_uuid is None else {parent_uuid: None}

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
        ProviderHasChildren, ProviderInUse: it has children or allocations, checked in this order.
    """

    def unit(tx: Tx) -> None:
        remove_provider(tx, get_provider_row(tx, uuid, to_delete=True))

    db.write(unit)


def remove_provider(tx: Tx, provider: ProviderRow) -> None:
    """Delete a provider with everything that it has; see `delete_provider`.

    Raises:
        LostRace: another request changed it since it was read.
    """
    uuid = provider.uuid
    if tx.rows(_A_CHILD, {"provider": provider.id}):
        raise ProviderHasChildren(uuid)
    if tx.rows(_AN_ALLOCATION, {"provider": provider.id}):
        raise ProviderInUse(uuid)
    # The generation is the guard against claims. The NULL allows the deletion of a row that
    # refers to itself as its root.
    unrooted = tx.change(_UNROOT, {"provider": provider.id, "seen": provider.generation})
    if unrooted != 1:
        raise LostRace(f"resource provider {uuid}")
    for deletion in _DELETE_PARTS:
        tx.change(deletion, {"provider": provider.id})
    try:
        tx.change(_DELETE, {"provider": provider.id})
    except IntegrityError as error:  # a child was added meanwhile
        raise ProviderHasChildren(uuid) from error
    tx.touched.add(provider.id)
    tx.gone[provider.id] = uuid


# --- Reading -------------------------------------------------------------------------------------

_parent = resource_providers.alias("parent")
_root = resource_providers.alias("root")


# PERF: built once; building a statement takes longer than running it.
_PROVIDER_BY_UUID: Final = (
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
    .where(_rp.uuid == bindparam("uuid"))
)


def _get_provider(tx: Tx, uuid: ProviderUUID) -> Provider:
    for row in tx.rows(_PROVIDER_BY_UUID, {"uuid": uuid}):
        provider = Provider(*row)
        if provider.uuid == uuid:
            return provider
    raise ProviderNotFound(uuid)


# --- Writing -------------------------------------------------------------------------------------

OF_PROVIDER: Final = _rp.id == bindparam("provider")
_root_by_uuid: Final = (
    select(_root.c.id).where(_root.c.uuid == bindparam("root_uuid")).scalar_subquery()
)

_TAKEN: Final = select(_rp.uuid).where(
    or_(_rp.uuid == bindparam("uuid"), _rp.name == bindparam("name"))
)
_PIN_PLACE: Final = (
    update(resource_providers)
    .where(OF_PROVIDER, _rp.root_provider_id == _root_by_uuid)
    .values(root_provider_id=_rp.root_provider_id, updated_at=rewritten(_rp.updated_at))
)
_INSERT_ROOT: Final = insert(resource_providers).values(
    uuid=bindparam("uuid"), name=bindparam("name"), generation=0, created_at=bindparam("now")
)
_INSERT_CHILD: Final = _INSERT_ROOT.values(
    parent_provider_id=bindparam("parent"), root_provider_id=_root_by_uuid
)
_OWN_ROOT: Final = update(resource_providers).where(OF_PROVIDER).values(root_provider_id=_rp.id)
_OTHERS_OF_NAME: Final = select(_rp.id).where(
    _rp.name == bindparam("new"), _rp.id != bindparam("provider")
)
RENAME: Final = (
    update(resource_providers)
    .where(OF_PROVIDER)
    .values(name=bindparam("new"), updated_at=bindparam("now"))
)
_PLACE: Final = (
    update(resource_providers)
    .where(
        OF_PROVIDER,
        _rp.parent_provider_id.is_not_distinct_from(bindparam("old_parent", type_=Integer)),
    )
    .values(parent_provider_id=bindparam("new_parent"))
)
_REROOT: Final = (
    update(resource_providers)
    .where(
        _rp.id.in_(bindparam("providers", expanding=True)),
        _rp.root_provider_id == bindparam("old_root"),
    )
    .values(root_provider_id=bindparam("new_root"), updated_at=bindparam("now"))
)
_TREE: Final = select(_rp.id, _rp.parent_provider_id).where(
    _rp.root_provider_id == bindparam("root")
)
_ROOT_OF: Final = select(_rp.root_provider_id).where(OF_PROVIDER)
_A_CHILD: Final = select(_rp.id).where(_rp.parent_provider_id == bindparam("provider")).limit(1)
_AN_ALLOCATION: Final = (
    select(allocations.c.id)
    .where(allocations.c.resource_provider_id == bindparam("provider"))
    .limit(1)
)
_UNROOT: Final = (
    update(resource_providers)
    .where(OF_PROVIDER, _rp.generation == bindparam("seen"))
    .values(root_provider_id=None)
)
_DELETE_PARTS: Final = (
    *(
        delete(table).where(table.c.resource_provider_id == bindparam("provider"))
        for table in (
            resource_provider_traits,
            resource_provider_aggregates,
            berth_usages,
            inventories,
        )
    ),
    delete(berth_drained).where(berth_drained.c.provider_id == bindparam("provider")),
)
_DELETE: Final = delete(resource_providers).where(OF_PROVIDER)


def _check_unique(tx: Tx, *, uuid: ProviderUUID, name: str) -> None:
    """Report which of the two is taken; the unique keys are the guard."""
    taken = {taken for (taken,) in tx.rows(_TAKEN, {"uuid": uuid, "name": name})}
    if uuid in taken:
        raise DuplicateProviderUUID(uuid)
    if taken:
        raise DuplicateProviderName(name)


def _get_parent(
    tx: Tx, uuid: ProviderUUID, parent_uuid: ProviderUUID, new_name: str | None = None
) -> Provider:
    try:
        return _get_provider(tx, parent_uuid)
    except ProviderNotFound as error:
        raise ParentNotFound(uuid, parent_uuid, new_name=new_name) from error


def _pin_place(tx: Tx, parent: Provider) -> None:
    """Lock a parent's row, so that it cannot be moved or deleted while it gets a child.

    Raises:
        LostRace: it was moved or deleted.
    """
    if tx.change(_PIN_PLACE, {"provider": parent.id, "root_uuid": parent.root_uuid}) != 1:
        raise LostRace(f"resource provider {parent.uuid}")
    if tx.dialect.rewrites_guards:
        # Its time has changed, and its child may have gone before another worker looks. The caller
        # has changed nothing else of it.
        tx.touched.add(parent.id)
        tx.left_alone |= {parent.id}


def _insert_provider(tx: Tx, uuid: ProviderUUID, name: str, parent: Provider | None) -> ProviderId:
    fields = {"uuid": uuid, "name": name, "now": tx.now}
    with unless_taken(f"resource provider {uuid}"):
        if parent is not None:
            place = {"parent": parent.id, "root_uuid": parent.root_uuid}
            return ProviderId(tx.insert(_INSERT_CHILD, fields | place))
        number = tx.insert(_INSERT_ROOT, fields)
    tx.change(_OWN_ROOT, {"provider": number})
    return ProviderId(number)


def _rename(tx: Tx, before: Provider, name: str) -> None:
    wanted = {"provider": before.id, "new": name}
    if tx.rows(_OTHERS_OF_NAME, wanted):
        raise DuplicateProviderName(name, creating=False)
    with unless_taken(f"the name {name}"):
        renamed = tx.change(RENAME, wanted | {"now": tx.now})
    if renamed != 1:
        raise LostRace(f"resource provider {before.uuid}")


def _move(
    tx: Tx, provider: Provider, parent_uuid: ProviderUUID | None, *, may_reparent: bool
) -> None:
    """Give a provider another parent, or none, and its whole subtree the new root.

    RACE tests/store/test_tree_races.py: this writes every row of the subtree, and the new parent's.
    So if two moves together would create a loop, one of them finds a row changed.
    """
    parent = None if parent_uuid is None else _get_parent(tx, provider.uuid, parent_uuid)
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
    placed = tx.change(
        _PLACE,
        {
            "provider": provider.id,
            "old_parent": parents[provider.id],
            "new_parent": None if parent is None else parent.id,
        },
    )
    roots = {"old_root": old_root, "new_root": new_root, "now": tx.now}
    rerooted = sum(
        tx.change(_REROOT, {"providers": chunk, **roots}) for chunk in tx.chunks(sorted(moved))
    )
    if placed != 1 or rerooted != len(moved):
        raise LostRace(f"the tree of resource provider {provider.uuid}")
    tx.touched.update(moved)


def _tree(tx: Tx, provider: Provider) -> tuple[ProviderId, dict[ProviderId, ProviderId | None]]:
    """The root's id, and the parent of each provider of the tree."""
    root = _root_id(tx, provider)
    return root, dict(tx.rows(_TREE, {"root": root}))


def _root_id(tx: Tx, provider: Provider) -> ProviderId:
    for (number,) in tx.rows(_ROOT_OF, {"provider": provider.id}):
        if number is not None:
            return ProviderId(number)
    raise LostRace(f"resource provider {provider.uuid}")
