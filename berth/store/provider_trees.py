# SPDX-License-Identifier: Apache-2.0
"""Makes a whole tree of providers like a wanted one, in one transaction.

The transaction first locks the rows of every provider of the tree, and reads the tree after that.
So nothing of the tree changes until the commit, and claims that came before conflict with nothing.
Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple, TypeVar
from uuid import uuid4

from sqlalchemy import bindparam, select

from berth.model.errors import (
    DuplicateProviderName,
    DuplicateProviderUUID,
    InventoryInUse,
    ProviderInUse,
)
from berth.model.ids import ProviderId, ProviderUUID
from berth.model.names import is_custom_class_name, is_custom_trait_name
from berth.model.own_errors import TreeChanged, UnknownNames
from berth.model.provider_trees import (
    ProviderChange,
    Tree,
    WantedTree,
    changes_of,
    edited_tree,
    names_added,
)
from berth.store.engine.database import Database
from berth.store.engine.tables import allocations, resource_classes, resource_providers
from berth.store.engine.transaction import Tx
from berth.store.lookups import class_ids, missing, providers_by_uuid, trait_ids
from berth.store.tree_rows import StoredTree, read_tree
from berth.store.tree_writing import write_changes

_rp, _alloc = resource_providers.c, allocations.c


class Edit(NamedTuple):
    """What an edit of a tree did, or would do.

    Attributes:
        root: of the tree.
        is_new: whether the tree did not exist.
        after: the tree as it is then.
        names: of the providers before and after, by uuid.
        classes, traits: the names that it created.
    """

    root: ProviderUUID
    is_new: bool
    changes: tuple[ProviderChange, ...]
    after: Tree
    names: Mapping[ProviderUUID, str]
    classes: tuple[str, ...]
    traits: tuple[str, ...]


def edit_tree(db: Database, wanted: WantedTree, *, expected: Tree | None, dry_run: bool) -> Edit:
    """Make a tree like a wanted one, or say what would change; a tree that does not exist is
    created.

    Nothing is written if nothing differs. The generation of a provider is incremented once for each
    of its parts that become others, and new providers begin at 0, as if each part were written by
    itself.

    Args:
        expected: the tree that the client has seen, empty if there must be none; None if the client
            does not care.

    Raises:
        TreeChanged: it is not the expected one.
        TreeInvalid: it cannot be.
        UnknownNames: resource classes or traits do not exist.
        DuplicateProviderUUID, DuplicateProviderName: a provider of another tree has it.
        InventoryInUse, ProviderInUse: what would be removed has allocations.
        LostRace: other requests were faster each time.
    """

    def unit(tx: Tx) -> Edit:
        stored = read_tree(tx, wanted.reference, lock=True)
        edit = _planned(tx, stored, wanted, expected)
        if edit.changes:
            write_changes(
                tx,
                stored.rows,
                edit.changes,
                root=edit.root,
                classes=edit.classes,
                traits=edit.traits,
                spellings=wanted.spellings,
            )
        return edit

    with db.read() as tx:
        stored = read_tree(tx, wanted.reference)
        edit = _planned(tx, stored, wanted, expected)
        if dry_run:
            _check_unused(tx, stored, edit.changes)
    return edit if dry_run or not edit.changes else db.write(unit)


_BY_NAME: Final = select(_rp.uuid, _rp.name).where(_rp.name.in_(bindparam("names", expanding=True)))


def _planned(tx: Tx, stored: StoredTree, wanted: WantedTree, expected: Tree | None) -> Edit:
    """What an edit changes. Everything is refused here but what is in use."""
    before = stored.providers
    if expected is not None and before != expected:
        raise TreeChanged(wanted.reference)
    _check_elsewhere(tx, before, wanted)
    after = edited_tree(before, wanted, lambda: ProviderUUID(str(uuid4())))
    changes = changes_of(before, after)
    _check_taken(tx, before, changes)
    return Edit(
        root=next(uuid for uuid, provider in after.items() if provider.parent is None),
        is_new=not before,
        changes=changes,
        after=after,
        names={uuid: each.name for uuid, each in {**before, **after}.items()},
        classes=_new_names(tx, class_ids, is_custom_class_name, changes, "inventories", wanted),
        traits=_new_names(tx, trait_ids, is_custom_trait_name, changes, "traits", wanted),
    )


def _check_elsewhere(tx: Tx, before: Tree, wanted: WantedTree) -> None:
    """Refuse providers of other trees."""
    uuids = [each.uuid for each in wanted.providers if each.uuid and each.uuid not in before]
    for uuid in providers_by_uuid(tx, uuids):
        raise DuplicateProviderUUID(uuid)


def _check_taken(tx: Tx, before: Tree, changes: Sequence[ProviderChange]) -> None:
    """Refuse new names that providers of other trees have; the unique keys are the guard."""
    names = [
        change.after.name
        for change in changes
        if change.after and (change.before is None or change.before.name != change.after.name)
    ]
    for chunk in tx.chunks(names):
        for uuid, name in tx.rows(_BY_NAME, {"names": chunk}):
            if uuid not in before and name in names:
                raise DuplicateProviderName(name)


_IN_USE: Final = (
    select(_alloc.resource_provider_id, resource_classes.c.name)
    .join(resource_classes, resource_classes.c.id == _alloc.resource_class_id)
    .where(_alloc.resource_provider_id.in_(bindparam("providers", expanding=True)))
    .distinct()
)


def _check_unused(tx: Tx, stored: StoredTree, changes: Sequence[ProviderChange]) -> None:
    """Refuse to remove what has allocations, as writing the changes does."""
    losing = [
        stored.rows[change.before.uuid].id
        for change in changes
        if change.before and (change.after is None or _inventories_gone(change))
    ]
    in_use: dict[ProviderId, set[str]] = {}
    for chunk in tx.chunks(losing):
        for provider, name in tx.rows(_IN_USE, {"providers": chunk}):
            in_use.setdefault(provider, set()).add(name)
    for change in changes:
        if change.before is None:
            continue
        names = in_use.get(stored.rows[change.before.uuid].id, set[str]())
        if change.after is None and names:
            raise ProviderInUse(change.before.uuid)
        if change.after is not None and (lost := sorted(_inventories_gone(change) & names)):
            raise InventoryInUse(change.before.uuid, lost)


def _inventories_gone(change: ProviderChange) -> Set[str]:
    """The resource classes of which a provider loses its inventory."""
    had = change.before.inventories if change.before else {}
    has = change.after.inventories if change.after else {}
    return had.keys() - has.keys()


Id = TypeVar("Id", bound=int)


def _new_names(
    tx: Tx,
    find: Callable[[Tx, Collection[str]], Mapping[str, Id]],
    is_custom: Callable[[str], bool],
    changes: Iterable[ProviderChange],
    part: Literal["inventories", "traits"],
    wanted: WantedTree,
) -> tuple[str, ...]:
    """The resource classes or traits to be created.

    Raises:
        UnknownNames: some do not exist, and are not to be created.
    """
    added = names_added(changes, part)
    new = missing(added, find(tx, list(added)) if added else ())
    refused = [name for name in new if not (wanted.create_names and is_custom(name))]
    if refused:
        raise UnknownNames(part, {name: added[name] for name in refused})
    return tuple(new)
