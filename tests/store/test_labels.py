# SPDX-License-Identifier: Apache-2.0
"""Labels of aggregates in the database: replacing them, unique names, and races for one."""

from __future__ import annotations

import threading

import pytest

from berth.index import Index
from berth.model.own_errors import LabelTaken
from berth.store.engine.database import Database
from berth.store.labels import all_labels, replace_labels
from berth.upkeep import schema
from tests.index.checking import checked
from tests.store.fleet import aggregate
from tests.store.statements import counted_statements


def stored(db: Database) -> dict[str, dict[str, str]]:
    """All labels that the database has."""
    with db.read() as tx:
        return {str(uuid): labels for uuid, labels in all_labels(tx).items()}


def test_labels_are_replaced_whole(db: Database) -> None:
    """An empty set of labels removes the row."""
    one, other = aggregate(1), aggregate(2)
    replace_labels(db, one, {"name": "az-1", "zone": "z1"})
    replace_labels(db, other, {"zone": "z1"})
    assert stored(db) == {one: {"name": "az-1", "zone": "z1"}, other: {"zone": "z1"}}
    replace_labels(db, one, {"rack": "ü\U0001f600"})
    assert stored(db) == {one: {"rack": "ü\U0001f600"}, other: {"zone": "z1"}}
    replace_labels(db, one, {})
    replace_labels(db, aggregate(3), {})
    assert stored(db) == {other: {"zone": "z1"}}
    assert schema.check(db) == []


def test_the_longest_labels_fit(db: Database) -> None:
    """32 labels of 63 and 255 characters, each of four bytes."""
    most = {f"k{number:02}".ljust(63, "x"): "\U0001f600" * 255 for number in range(31)}
    replace_labels(db, aggregate(1), {**most, "name": "\U0001f600" * 255})
    assert len(stored(db)[aggregate(1)]) == 32


def test_a_name_has_one_aggregate(db: Database) -> None:
    """It is free again when the first one gives it up; names differ by letter case and accents."""
    replace_labels(db, aggregate(1), {"name": "az-1"})
    with pytest.raises(LabelTaken) as taken:
        replace_labels(db, aggregate(2), {"name": "az-1", "zone": "z1"})
    assert (taken.value.name, taken.value.aggregate) == ("az-1", aggregate(1))
    for number, name in enumerate(("AZ-1", "äz-1", "az-1 "), start=2):
        replace_labels(db, aggregate(number), {"name": name})
    replace_labels(db, aggregate(1), {"name": "az-2"})
    replace_labels(db, aggregate(2), {"name": "az-1"})
    assert stored(db)[aggregate(2)] == {"name": "az-1"}


def test_what_is_there_already_is_not_written(db: Database) -> None:
    """So that no index reads all names again."""
    replace_labels(db, aggregate(1), {"zone": "z1"})
    before = Index(db).snapshot().revision
    with counted_statements(db) as statements:
        replace_labels(db, aggregate(1), {"zone": "z1"})
    assert not [text for text in statements if text.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert Index(db).snapshot().revision == before


@pytest.mark.parametrize("attempt", range(3))
def test_of_two_that_take_a_name_at_once_one_is_refused(db: Database, attempt: int) -> None:
    """The unique key decides; the other one learns who has it."""
    names = [f"name-{number}" for number in range(10)]
    outcomes: dict[tuple[int, str], LabelTaken | None] = {}
    start = threading.Barrier(2)

    def take(number: int) -> None:
        for place, name in enumerate(names):
            start.wait(30)
            try:
                replace_labels(db, aggregate(100 * number + place), {"name": name})
                outcomes[number, name] = None
            except LabelTaken as taken:
                outcomes[number, name] = taken

    threads = [threading.Thread(target=take, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        pair = [outcomes[number, name] for number in (1, 2)]
        assert pair.count(None) == 1, pair
    assert sorted(labels["name"] for labels in stored(db).values()) == names


def test_of_two_that_replace_labels_at_once_the_last_one_counts(db: Database) -> None:
    """Never a mixture of both."""
    wanted: list[dict[str, str]] = [{"zone": "z1"}, {"rack": "r1"}, {}]
    start = threading.Barrier(len(wanted))

    def replace(labels: dict[str, str]) -> None:
        for _ in range(10):
            start.wait(30)
            replace_labels(db, aggregate(1), labels)

    threads = [threading.Thread(target=replace, args=(labels,)) for labels in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(db).get(aggregate(1), {}) in wanted


def test_every_index_sees_labels_at_once(db: Database) -> None:
    """By the journal, as it sees names of traits; labels, and aggregates by label."""
    here, there = Index(db), Index(db)
    there.snapshot()
    replace_labels(db, aggregate(1), {"name": "az-1", "zone": "z1"})
    replace_labels(db, aggregate(2), {"zone": "z1"})
    for index in (here, there):
        names = index.snapshot().names
        assert names.labels[("zone", "z1")] == {aggregate(1), aggregate(2)}
        assert names.labels[("name", "az-1")] == {aggregate(1)}
        assert names.labels_of[aggregate(2)] == {"zone": "z1"}
    assert there.counts.loads == 1
    replace_labels(db, aggregate(2), {})
    assert there.snapshot().names.labels[("zone", "z1")] == {aggregate(1)}
    assert aggregate(2) not in there.snapshot().names.labels_of
    assert there.counts.loads == 1
    assert checked(there) == checked(here) == []


def test_damaged_labels_are_found(db: Database) -> None:
    """A check says what to do about them."""
    replace_labels(db, aggregate(1), {"name": "az-1"})
    replace_labels(db, aggregate(2), {"zone": "z1"})
    db.write_unnoted(
        lambda tx: (
            [
                tx.connection.exec_driver_sql(text)
                for text in (
                    "UPDATE berth_labels SET name = 'az-2' WHERE name = 'az-1'",
                    "UPDATE berth_labels SET labels = '[]' WHERE name IS NULL",
                )
            ]
            and None
        )
    )
    assert [fault.split(" are damaged")[0] for fault in schema.check(db)] == [
        f"the labels of aggregate {aggregate(1)}",
        f"the labels of aggregate {aggregate(2)}",
    ]
