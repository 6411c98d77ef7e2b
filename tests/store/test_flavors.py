# SPDX-License-Identifier: Apache-2.0
"""Flavors in the database: creating, replacing and deleting them, their number, and races."""

from __future__ import annotations

import threading

import pytest

from berth.index import Index
from berth.model import bounds
from berth.model.flavor import Flavor, FlavorName
from berth.model.names import is_path_name
from berth.model.own_errors import AlreadyThere, TooMany
from berth.store import flavors
from berth.store.engine.database import Database
from berth.store.flavors import all_flavors, delete_flavor, put_flavor
from berth.upkeep import schema
from tests.index.checking import checked
from tests.store.statements import counted_statements

SMALL = Flavor('{"groups": {"": {"resources": {"VCPU": 1}}}}')
LARGE = Flavor('{"groups": {"": {"resources": {"VCPU": 8}}}}', expose=False, description="für GPU")


def flavor_name(number: int = 1) -> FlavorName:
    """The name of a flavor."""
    return FlavorName(f"m{number}.large")


def stored(db: Database) -> dict[FlavorName, Flavor]:
    """All flavors that the database has."""
    with db.read() as tx:
        return all_flavors(tx)


def test_a_flavor_is_created_replaced_and_deleted(db: Database) -> None:
    """Names differ by letter case."""
    other = FlavorName("M1.large")
    assert put_flavor(db, flavor_name(), SMALL)
    assert put_flavor(db, other, SMALL)
    assert not put_flavor(db, flavor_name(), LARGE)
    assert stored(db) == {flavor_name(): LARGE, other: SMALL}
    assert delete_flavor(db, flavor_name()) and not delete_flavor(db, flavor_name())
    assert stored(db) == {other: SMALL}
    assert schema.check(db) == []


def test_the_largest_flavor_fits(db: Database) -> None:
    """On every engine, counted in bytes."""
    length = (bounds.FLAVOR_BYTES_MAX - len('{"a":""}')) // 4
    largest = Flavor('{"a":"%s"}' % ("\U0001f600" * length), description="\U0001f600" * 255)
    name = FlavorName("x" * 255)
    put_flavor(db, name, largest)
    assert stored(db) == {name: largest}


def test_what_is_there_already_is_not_written(db: Database) -> None:
    """So that no index reads all names again."""
    put_flavor(db, flavor_name(), SMALL)
    before = Index(db).snapshot().revision
    with counted_statements(db) as statements:
        assert not put_flavor(db, flavor_name(), Flavor(SMALL.request))
        assert not delete_flavor(db, flavor_name(2))
    assert not [text for text in statements if text.startswith(("INSERT", "UPDATE"))]
    assert Index(db).snapshot().revision == before


def test_who_creates_a_flavor_replaces_none(db: Database) -> None:
    """Not even by the same."""
    assert put_flavor(db, flavor_name(), SMALL, is_new=True)
    for flavor in (SMALL, LARGE):
        with pytest.raises(AlreadyThere):
            put_flavor(db, flavor_name(), flavor, is_new=True)
    assert stored(db) == {flavor_name(): SMALL}


def test_there_are_no_more_flavors_than_the_bound(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are there can be replaced; a deleted one makes room."""
    monkeypatch.setattr(flavors, "FLAVORS_MAX", 3)
    for number in range(3):
        put_flavor(db, flavor_name(number), SMALL)
    with pytest.raises(TooMany):
        put_flavor(db, flavor_name(3), SMALL)
    put_flavor(db, flavor_name(1), LARGE)
    delete_flavor(db, flavor_name(0))
    assert put_flavor(db, flavor_name(3), LARGE)
    assert stored(db) == {flavor_name(1): LARGE, flavor_name(2): SMALL, flavor_name(3): LARGE}


@pytest.mark.parametrize("attempt", range(3))
def test_of_two_that_create_flavors_at_once_none_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    """The keys decide: of the same name one creates it, and together they do not pass the bound."""
    monkeypatch.setattr(flavors, "FLAVORS_MAX", 15)
    created: list[FlavorName] = []
    refused: list[FlavorName] = []
    start = threading.Barrier(2)

    def create(names: list[FlavorName]) -> None:
        for name in names:
            start.wait(30)
            try:
                if put_flavor(db, name, SMALL):
                    created.append(name)
            except TooMany:
                refused.append(name)

    shared = [flavor_name(number) for number in range(10)]
    own = [[flavor_name(10 * thread + number) for number in range(5)] for thread in (1, 2)]
    threads = [threading.Thread(target=create, args=([*shared, *names],)) for names in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == sorted(stored(db)) and len(created) == 15
    assert sorted([*created, *refused]) == sorted([*shared, *own[0], *own[1]])


def test_every_index_sees_flavors_at_once(db: Database) -> None:
    """By the journal, as it sees names of traits."""
    here, there = Index(db), Index(db)
    there.snapshot()
    put_flavor(db, flavor_name(), SMALL)
    for index in (here, there):
        assert index.snapshot().names.flavors == {flavor_name(): SMALL}
    put_flavor(db, flavor_name(), LARGE)
    assert there.snapshot().names.flavors == {flavor_name(): LARGE}
    delete_flavor(db, flavor_name())
    assert there.snapshot().names.flavors == {}
    assert there.counts.loads == 1
    assert checked(there) == checked(here) == []


def test_damaged_flavors_are_found_and_harm_no_other(db: Database) -> None:
    """A check says what to do about them; every index still loads."""
    put_flavor(db, flavor_name(1), SMALL)
    put_flavor(db, flavor_name(2), SMALL)
    put_flavor(db, flavor_name(3), SMALL)
    db.write_unnoted(
        lambda tx: (
            [
                tx.connection.exec_driver_sql(text)
                for text in (
                    "UPDATE berth_flavors SET request = '[]' WHERE name = 'm1.large'",
                    "UPDATE berth_flavors SET request = '{' WHERE name = 'm2.large'",
                )
            ]
            and None
        )
    )
    assert [fault.split(" is damaged")[0] for fault in schema.check(db)] == [
        "flavor m1.large",
        "flavor m2.large",
    ]
    assert Index(db).snapshot().names.flavors[flavor_name(3)] == SMALL


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        *((text, True) for text in ("m1.large", "A-b_c.9", "...", ".a", "-", "x" * 255)),
        *((text, False) for text in ("", ".", "..", "a b", "a/b", "ü", "x" * 256, "a\n", "..\n")),
    ],
)
def test_names_of_flavors_can_stand_in_a_url(text: str, is_name: bool) -> None:
    """HTTP clients resolve one or two dots."""
    assert is_path_name(text) is is_name
