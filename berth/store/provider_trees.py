# SPDX-License-Identifier: Apache-2.0
"""Makes a whole tree of providers like a wanted one, in one transaction.

The transaction first locks the rows of every provider of the tree, and then reads it (`tree_rows`).
So nothing of the tree changes until the commit, and claims that came before conflict with nothing.
Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Final, Literal, TypeVar
from uuid import uuid4

from sqlalchemy import Integer, bindparam, select, update

from berth.model.errors import (
    DuplicateProviderName,
    DuplicateProviderUUID,
    InventoryInUse,
    LostRace,
    ProviderInUse,
)
from berth.model.ids import AggregateUUID, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.names import is_custom_class_name, is_custom_trait_name
from berth.model.own_errors import TreeChanged, UnknownNames
from berth.model.provider_trees import (
    Edit,
    ProviderChange,
    Tree,
    WantedTree,
    changes_of,
    edited_tree,
    names_added,
)
from berth.store.aggregates import ensure_aggregates, membership_changes
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import allocations, resource_classes, resource_providers
from berth.store.engine.transaction import Change, Tx, unless_taken
from berth.store.generations import Bump, bump_generations
from berth.store.inventories import Key, put_inventories, remove_or_refuse
from berth.store.lookups import ProviderRow, class_ids, missing, providers_by_uuid, trait_ids
from berth.store.providers import OF_PROVIDER, RENAME, remove_provider
from berth.store.resource_classes import insert_class
from berth.store.traits import insert_traits, write_traits
from berth.store.tree_rows import StoredTree, read_tree

_rp, _alloc = resource_providers.c, allocations.c


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
            _TreeWrite(tx, stored.rows, edit, wanted.spellings).run()
        return edit

    with db.read() as tx:
        stored = read_tree(tx, wanted.reference)
        edit = _planned(tx, stored, wanted, expected)
        if dry_run:
            _check_unused(tx, stored, edit.changes)
    if not dry_run and edit.changes:
        edit = db.write(unit)
    if db.record is not None:
        db.record.edit = edit
    return edit


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
        if change.after and change.after.name != change.old.name
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
    return change.old.inventories.keys() - change.new.inventories.keys()


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


# --- Writing -------------------------------------------------------------------------------------


_INSERT: Final = insert_of(resource_providers, "uuid", "name", "generation", "created_at")
_PLACE: Final = (
    update(resource_providers)
    .where(OF_PROVIDER)
    .values(
        parent_provider_id=bindparam("new_parent", type_=Integer),
        root_provider_id=bindparam("new_root"),
    )
)


class _TreeWrite:
    """An edit of a tree being written.

    Args:
        rows: the tree as it is stored, locked.
        spellings: of the aggregates that may be new.
    """

    def __init__(
        self,
        tx: Tx,
        rows: Mapping[ProviderUUID, ProviderRow],
        edit: Edit,
        spellings: Mapping[AggregateUUID, str],
    ) -> None:
        self._tx = tx
        #: Created providers are added, with the generation that they keep.
        self._rows = dict(rows)
        self._edit = edit
        self._spellings = spellings
        self._kept = [change for change in edit.changes if change.after is not None]

    def run(self) -> None:
        """Write everything.

        Raises:
            InventoryInUse, ProviderInUse: what is to be removed has allocations.
            LostRace: another request took a name, or deleted a trait or a resource class.
            ForeignWrite: another program had changed one of the providers.
        """
        for name in self._edit.classes:
            insert_class(self._tx, name)
        if self._edit.traits:
            insert_traits(self._tx, self._edit.traits)
        self._free_names()
        self._create()
        self._place()
        generations = self._bump()
        self._write_aggregates()
        self._write_traits()
        self._write_inventories(generations)
        for change in self._edit.changes:
            if change.after is None:
                remove_provider(self._tx, self._row_of(change))
        self._set_names({each.new.uuid: each.new.name for each in self._kept if _is_renamed(each)})
        self._tx.touched.update(self._row_of(change).id for change in self._edit.changes)

    def _row_of(self, change: ProviderChange) -> ProviderRow:
        return self._rows[change.provider.uuid]

    def _with_other(self, part: str) -> list[ProviderChange]:
        """The changes that alter a part of a provider, such as its traits."""
        return [change for change in self._kept if part in change.parts]

    def _free_names(self) -> None:
        """Free the names that other providers are to get: until then, the uuids are the names."""
        wanted = {change.new.name for change in self._kept}
        freed = [change.old for change in self._edit.changes if _is_renamed(change)]
        self._set_names({each.uuid: str(each.uuid) for each in freed if each.name in wanted})

    def _set_names(self, names: Mapping[ProviderUUID, str]) -> None:
        if not names:
            return
        renamings = [
            {"provider": self._rows[uuid].id, "new": name, "now": self._tx.now}
            for uuid, name in names.items()
        ]
        with unless_taken("the name of a resource provider"):
            renamed = self._tx.change(RENAME, renamings)
        if renamed != len(names):
            raise LostRace("a resource provider")

    def _create(self) -> None:
        """Create the new providers, which have no place yet."""
        new = [change for change in self._kept if change.before is None]
        if not new:
            return
        rows = [
            {
                "uuid": change.provider.uuid,
                "name": change.provider.name,
                "generation": len(change.parts),
                "created_at": self._tx.now,
            }
            for change in new
        ]
        with unless_taken("a resource provider"):
            self._tx.change(_INSERT, rows)
        created = providers_by_uuid(self._tx, [change.provider.uuid for change in new])
        self._tx.created |= {row.id for row in created.values()}
        self._rows |= created

    def _place(self) -> None:
        """Give providers that are new, or that move, their parents; all have the root of the
        tree."""
        moves = [
            {
                "provider": self._row_of(change).id,
                "new_parent": change.new.parent and self._rows[change.new.parent].id,
                "new_root": self._rows[self._edit.root].id,
            }
            for change in self._kept
            if change.before is None or change.before.parent != change.new.parent
        ]
        if moves and self._tx.change(_PLACE, moves) != len(moves):
            raise LostRace("a tree of resource providers")

    def _bump(self) -> dict[ProviderId, Generation]:
        """Increment the generations; return the new ones of all providers of which parts change."""
        steps = {
            self._row_of(change): 0 if change.before is None else len(change.parts)
            for change in self._kept
            if change.parts
        }
        bump_generations(
            self._tx, [Bump(row.id, row.generation, count) for row, count in steps.items() if count]
        )
        return {row.id: Generation(row.generation + count) for row, count in steps.items()}

    def _write_aggregates(self) -> None:
        changed = self._with_other("aggregates")
        wanted = sorted({uuid for change in changed for uuid in change.new.aggregates})
        stored = ensure_aggregates(
            self._tx, {uuid: self._spellings.get(uuid, uuid) for uuid in wanted}
        )
        writes: list[Change] = []
        for change in changed:
            members = sorted({stored[uuid] for uuid in change.new.aggregates})
            writes += membership_changes(self._tx, self._row_of(change).id, members)
        self._tx.change_all(writes)

    def _write_traits(self) -> None:
        changed = self._with_other("traits")
        names = {name for change in changed for name in change.new.traits ^ change.old.traits}
        numbers = trait_ids(self._tx, sorted(names))
        if len(numbers) != len(names):
            raise LostRace("a trait")
        for change in changed:
            had, has = change.old.traits, change.new.traits
            write_traits(
                self._tx,
                self._row_of(change).id,
                gone={numbers[name] for name in had - has},
                new={numbers[name] for name in has - had},
            )

    def _write_inventories(self, generations: Mapping[ProviderId, Generation]) -> None:
        """Write the inventories that differ, and remove the others."""
        changed = self._with_other("inventories")
        names = {
            name for each in changed for name in (*each.old.inventories, *each.new.inventories)
        }
        numbers = class_ids(self._tx, sorted(names))
        if len(numbers) != len(names):
            raise LostRace("a resource class")
        wanted: dict[Key, Inventory] = {}
        stored: set[Key] = set()
        for change in changed:
            provider = self._row_of(change)
            had, has = (
                {Key(provider.id, numbers[name]): inventory for name, inventory in stock.items()}
                for stock in (change.old.inventories, change.new.inventories)
            )
            stored |= had.keys()
            wanted |= {key: value for key, value in has.items() if had.get(key) != value}
            remove_or_refuse(self._tx, provider.uuid, had.keys() - has.keys())
        put_inventories(self._tx, wanted, stored=stored, generations=generations)


def _is_renamed(change: ProviderChange) -> bool:
    """Whether a provider loses its name."""
    return change.before is not None and change.new.name != change.old.name
