# SPDX-License-Identifier: Apache-2.0
"""Edits of whole trees: against the same changes one by one, interrupted, and in races.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from functools import partial
from itertools import count
from random import Random
from typing import Final
from uuid import UUID

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from berth.index import Index
from berth.model.ids import AggregateUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.own_errors import TreeChanged
from berth.model.provider_trees import (
    Edit,
    ProviderChange,
    Tree,
    TreeProvider,
    WantedProvider,
    WantedTree,
    changes_of,
)
from berth.model.shown import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.engine.database import Database
from berth.store.inventories import replace_inventories
from berth.store.provider_trees import edit_tree
from berth.store.providers import create_provider, delete_provider, get_provider, update_provider
from berth.store.traits import create_trait, replace_provider_traits
from berth.store.tree_rows import read_tree
from berth.upkeep import schema
from tests.effort import SEED, repeat_with, scaled
from tests.index.checking import checked
from tests.store.fleet import add_provider, aggregate, claim, consumer, generation, held, holding
from tests.store.fleet import provider as uuid_of
from tests.store.statements import counted_statements, cut_before
from tests.store.together import in_background, race

CLASSES: Final = ("VCPU", "MEMORY_MB", "DISK_GB", "PCPU")
TRAITS: Final = ("CUSTOM_A", "CUSTOM_B", "HW_NUMA_ROOT")


def state(db: Database, reference: str) -> tuple[Tree, Mapping[ProviderUUID, int]]:
    """A tree with its generations."""
    with db.read() as tx:
        stored = read_tree(tx, reference)
    return stored.providers, {uuid: row.generation for uuid, row in stored.rows.items()}


def wanted_of(tree: Tree, reference: str, *, remove_missing: bool = False) -> WantedTree:
    """A whole tree as a client wants it."""
    return WantedTree(
        reference,
        [
            WantedProvider(
                each.uuid, each.name, each.parent, each.inventories, each.traits, each.aggregates
            )
            for each in tree.values()
        ],
        remove_missing=remove_missing,
    )


def edit(db: Database, wanted: WantedTree, expected: Tree | None = None) -> Edit:
    """Edit a tree."""
    return edit_tree(db, wanted, expected=expected, dry_run=False)


# --- Against the same changes one by one ---------------------------------------------------------


def random_tree(
    rng: Random, base: int, before: Tree | None = None
) -> dict[ProviderUUID, TreeProvider]:
    """A tree of up to eight providers with uuids from `base` on; some are as they were."""
    numbers = [0, *(number for number in range(1, 8) if rng.random() < 0.6)]
    tree: dict[ProviderUUID, TreeProvider] = {}
    for place, number in enumerate(numbers):
        uuid = ProviderUUID(str(UUID(int=base + number)))
        parent = list(tree)[rng.randrange(place)] if place else None
        was = (before or {}).get(uuid)
        if was is not None and rng.random() < 0.4:
            tree[uuid] = replace(was, parent=parent)
            continue
        name = was.name if was and rng.random() < 0.7 else f"t{base}-{number}-{rng.random()}"
        tree[uuid] = TreeProvider(
            uuid,
            name,
            parent,
            {
                each: Inventory(rng.randint(1, 3), step_size=rng.randint(1, 2))
                for each in CLASSES
                if rng.random() < 0.4
            },
            frozenset(each for each in TRAITS if rng.random() < 0.4),
            frozenset(aggregate(each) for each in range(3) if rng.random() < 0.3),
        )
    return tree


def rebased(tree: Tree, offset: int) -> dict[ProviderUUID, TreeProvider]:
    """The same tree with other uuids and names."""

    def moved(uuid: ProviderUUID) -> ProviderUUID:
        return ProviderUUID(str(UUID(int=UUID(uuid).int + offset)))

    return {
        moved(uuid): replace(
            each,
            uuid=moved(uuid),
            name=f"{each.name}'",
            parent=None if each.parent is None else moved(each.parent),
        )
        for uuid, each in tree.items()
    }


def one_by_one(db: Database, changes: tuple[ProviderChange, ...]) -> None:
    """Write changes as clients of the other routes do: a request for each part that changes."""
    for change in changes:
        before, after = change.before, change.after
        if after is None:
            delete_provider(db, change.provider.uuid)
            continue
        if before is None:
            create_provider(db, uuid=after.uuid, name=after.name, parent_uuid=after.parent)
    for change in changes:
        if change.after is not None:
            write_parts(db, change.before, change.after)


def write_parts(db: Database, before: TreeProvider | None, after: TreeProvider) -> None:
    """Write the parts of a provider that change."""
    uuid = after.uuid

    if before and (before.name, before.parent) != (after.name, after.parent):
        update_provider(db, uuid, name=after.name, parent_uuid=after.parent, may_reparent=True)
    was = before or TreeProvider(uuid, after.name, after.parent)
    if was.aggregates != after.aggregates:
        replace_aggregates(db, uuid, sorted(after.aggregates), get_provider(db, uuid).generation)
    if was.traits != after.traits:
        replace_provider_traits(db, uuid, after.traits, get_provider(db, uuid).generation)
    if was.inventories != after.inventories:
        replace_inventories(db, uuid, get_provider(db, uuid).generation, after.inventories)


@pytest.mark.engines("sqlite", "mariadb", "postgresql")
def test_a_tree_becomes_what_single_requests_make_of_it(
    db: Database, request: pytest.FixtureRequest
) -> None:
    """Generations included; the index follows, and providers that stay the same are untouched."""
    for name in TRAITS[:2]:
        create_trait(db, name)
    live = Index(db)
    rng = Random(f"{SEED} trees")
    for case in range(scaled(25 if db.dialect.is_embedded else 4)):
        base = 1_000_000 + 100 * case
        first = random_tree(rng, base)
        second = random_tree(rng, base, first)
        root = next(iter(first))
        offset = 10_000_000
        twin_root = next(iter(rebased(first, offset)))
        edit(db, wanted_of(first, root))
        one_by_one(db, changes_of({}, rebased(first, offset)))
        for tree in (first, second):
            before = state(db, root)
            edited = edit(db, wanted_of(tree, root, remove_missing=True))
            after, generations = state(db, root)
            assert after == tree, repeat_with()
            assert {change.provider.uuid for change in edited.changes} == {
                uuid
                for uuid in before[0].keys() | after.keys()
                if before[0].get(uuid) != after.get(uuid)
            }
            if tree is second:
                moves_first(db, rebased(first, offset), rebased(second, offset))
            twin, twin_generations = state(db, twin_root)
            assert twin == rebased(tree, offset)
            assert [*by_number(twin_generations)] == [*by_number(generations)], repeat_with()
        assert checked(live) == []
    assert schema.check(db) == []


def by_number(generations: Mapping[ProviderUUID, int]) -> Iterator[tuple[int, int]]:
    """The generations in the order of the uuids."""
    for uuid in sorted(generations):
        yield UUID(uuid).int % 100, generations[uuid]


def moves_first(db: Database, first: Tree, second: Tree) -> None:
    """Change one tree into another one by one, in an order that the other routes accept: all
    new providers below the root, then moves to the root and from there, then removals."""
    changes = changes_of(first, second)
    root = next(iter(first))
    for change in changes:
        if change.before is None and change.after is not None:
            create_provider(db, uuid=change.after.uuid, name=change.after.name, parent_uuid=root)
    for tree_step in (lambda each: root, lambda each: each.parent):
        for uuid, each in second.items():
            parent = tree_step(each)
            if uuid != root and get_provider(db, uuid).parent_uuid != parent:
                name = get_provider(db, uuid).name
                update_provider(db, uuid, name=name, parent_uuid=parent, may_reparent=True)
    for change in changes:
        if change.after is None:
            delete_provider(db, change.provider.uuid)
        else:
            write_parts(db, change.before, change.after)


# --- Interrupted ---------------------------------------------------------------------------------


def a_host() -> dict[ProviderUUID, TreeProvider]:
    """A host with two children."""
    tree = [
        TreeProvider(uuid_of(1), "p1", None, {"DISK_GB": Inventory(8)}),
        TreeProvider(
            uuid_of(2),
            "p2",
            uuid_of(1),
            {"VCPU": Inventory(8)},
            frozenset({"HW_NUMA_ROOT"}),
            frozenset({aggregate(1)}),
        ),
        TreeProvider(uuid_of(3), "p3", uuid_of(2), {"VCPU": Inventory(4)}),
    ]
    return {each.uuid: each for each in tree}


def another_host() -> dict[ProviderUUID, TreeProvider]:
    """The same host, of which everything that can change has changed."""
    tree = [
        TreeProvider(uuid_of(1), "p2", None, {"DISK_GB": Inventory(9)}, frozenset({"CUSTOM_NEW"})),
        TreeProvider(
            uuid_of(2), "p1", uuid_of(4), {"PCPU": Inventory(8)}, frozenset(), frozenset()
        ),
        TreeProvider(uuid_of(4), "p3", uuid_of(1), {"CUSTOM_GOLD": Inventory(1)}, aggregates=_NEW),
    ]
    return {each.uuid: each for each in tree}


_NEW: Final = frozenset({AggregateUUID(aggregate(2))})


def changed_host() -> WantedTree:
    """What makes one of the other."""
    wanted = wanted_of(another_host(), uuid_of(1), remove_missing=True)
    return replace(wanted, create_names=True)


@pytest.mark.engines("sqlite")
def test_an_edit_that_is_killed_anywhere_leaves_the_tree_before_or_after(db: Database) -> None:
    """Everything or nothing: names, aggregates, the removal, and the exchange of two names."""
    edit(db, wanted_of(a_host(), uuid_of(1)))
    before = state(db, uuid_of(1))
    for number in count():
        with cut_before(db, number) as cut:
            edit(db, changed_host())
        if not cut:
            break
        assert state(db, uuid_of(1)) == before, f"killed before statement {number}"
        assert schema.check(db) == []
    assert number > 20
    assert state(db, uuid_of(1))[0] == another_host()
    assert schema.check(db) == []
    assert checked(Index(db)) == []


# --- Conflicts -----------------------------------------------------------------------------------


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_no_claim_is_lost_to_an_edit(db: Database, other: Database) -> None:
    """Claims and edits at the same time all succeed."""
    edit(db, wanted_of(a_host(), uuid_of(1)))
    turns = 12

    def edits() -> None:
        for turn in range(turns):
            stock = {"VCPU": Inventory(100 + turn)}
            edit(db, WantedTree("p2", [WantedProvider(uuid_of(2), None, inventories=stock)]))

    def claims() -> None:
        for turn in range(turns):
            claim(other, holding(turn, {2: {"VCPU": 1}}), attempts=100)

    edits()
    before = generation(db, 2)
    assert race(edits, claims) == [None, None]
    assert held(db, 2) == {consumer(turn): {"VCPU": 1} for turn in range(turns)}
    assert generation(db, 2) == before + 2 * turns
    assert schema.check(db) == []


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_only_one_of_two_editors_of_the_same_tree_succeeds(db: Database, other: Database) -> None:
    """If each expects the tree that both have read."""
    edit(db, wanted_of(a_host(), uuid_of(1)))
    for turn in range(5):
        seen, _ = state(db, uuid_of(1))
        calls = []
        for where, total in ((db, 10 + turn), (other, 30 + turn)):
            stock = {"VCPU": Inventory(total)}
            wanted = WantedTree("p1", [WantedProvider(uuid_of(2), None, inventories=stock)])
            calls.append(partial(edit, where, wanted, seen))
        assert sorted(race(*calls), key=str) == [TreeChanged, None]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_child_that_is_added_meanwhile_is_not_overlooked(db: Database, other: Database) -> None:
    """Whoever removes what is missing, and expects the tree, either removes nothing or comes
    first."""
    for turn in range(5):
        edit(db, wanted_of(a_host(), "p1", remove_missing=True))
        seen, _ = state(db, uuid_of(1))
        only_root = WantedTree("p1", [WantedProvider(uuid_of(1), None)], remove_missing=True)
        outcome = race(
            partial(edit, db, only_root, seen), partial(add_provider, other, 10 + turn, parent=3)
        )
        present = state(db, uuid_of(1))[0].keys()
        assert outcome.count(None) == 1
        assert (outcome[0] is None) == (present == {uuid_of(1)})
        assert schema.check(db) == []
        edit(db, WantedTree("p1", [WantedProvider(uuid_of(1), None)], remove_missing=True))


def test_a_tree_that_was_made_meanwhile_is_not_the_one_expected(db: Database) -> None:
    """Of two who make one tree, the second learns of the first."""
    edit(db, wanted_of(a_host(), "p1"), {})
    with pytest.raises(TreeChanged):
        edit(db, WantedTree("p1", [WantedProvider(uuid_of(1), None, traits=frozenset())]), {})


@pytest.mark.engines("postgresql", "mariadb")
def test_nobody_renames_a_provider_of_the_tree_between_its_reading_and_the_commit(
    db: Database, other: Database
) -> None:
    """A rename leaves the generation alone, so only the lock keeps it out: it waits."""
    edit(db, wanted_of(a_host(), uuid_of(1)))
    seen, _ = state(db, uuid_of(1))
    renames: list[Future[object]] = []
    finished_meanwhile: list[bool] = []

    def before_writing(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INTO inventories" in statement or statement.startswith("UPDATE inventories"):
            rename = in_background(
                lambda: update_provider(
                    other, uuid_of(3), name="renamed", parent_uuid=UNSET, may_reparent=True
                )
            )
            renames.append(rename)
            finished_meanwhile.append(bool(wait([rename], timeout=0.5).done))

    event.listen(db.engine, "before_cursor_execute", before_writing)
    try:
        stock = {"VCPU": Inventory(16)}
        edit(db, WantedTree("p1", [WantedProvider(uuid_of(2), None, inventories=stock)]), seen)
    finally:
        event.remove(db.engine, "before_cursor_execute", before_writing)
    assert finished_meanwhile == [False]
    renames[0].result(timeout=30)
    assert state(db, uuid_of(1))[0][uuid_of(3)].name == "renamed"


@pytest.mark.engines("sqlite")
def test_an_edit_sends_few_statements_whatever_the_size_of_the_tree(db: Database) -> None:
    """Reading takes as many for a large tree as for a small one, and so does creating one."""
    edit(db, wanted_of(a_host(), uuid_of(1)))
    counts = []
    for base, size in ((100, 4), (1000, 400)):
        tree = {
            uuid_of(base + number): TreeProvider(
                uuid_of(base + number),
                f"p{base + number}",
                uuid_of(base) if number else None,
                {"VCPU": Inventory(4)},
            )
            for number in range(size)
        }
        with counted_statements(db) as created:
            edit(db, wanted_of(tree, f"p{base}"))
        with counted_statements(db) as unchanged:
            assert edit(db, wanted_of(tree, f"p{base}")).changes == ()
        counts.append((len(created), len(unchanged)))
    assert counts[0] == counts[1], counts
    assert counts[0][1] <= 7, "an edit that changes nothing only reads"
