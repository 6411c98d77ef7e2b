# SPDX-License-Identifier: Apache-2.0
"""Labels of aggregates in the database: how long they may be, unique names, and races for one."""

from __future__ import annotations

from functools import partial

import pytest

from berth.model.own_errors import LabelTaken
from berth.store.engine.database import Database
from berth.store.named import all_records, replace_labels
from berth.upkeep import schema
from tests.store.fleet import aggregate
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def stored(db: Database) -> dict[str, dict[str, str]]:
    """All labels that the database has."""
    with db.read() as tx:
        return {str(uuid): {**labels} for uuid, labels in all_records(tx).labels_of.items()}


def test_labels_are_replaced_whole_and_names_are_exact(db: Database) -> None:
    """32 labels of 63 and 255 characters, each of four bytes, fit; an empty set removes the row. A
    name has one aggregate until it gives it up, and differs by letter case and accents."""
    one, two = aggregate(1), aggregate(2)
    most = {f"k{number:02}".ljust(63, "x"): "\U0001f600" * 255 for number in range(31)}
    replace_labels(db, one, {**most, "name": "\U0001f600" * 255})
    assert len(stored(db)[one]) == 32
    replace_labels(db, one, {"name": "az-1"})
    with pytest.raises(LabelTaken) as taken:
        replace_labels(db, two, {"name": "az-1", "zone": "z1"})
    assert (taken.value.name, taken.value.aggregate) == ("az-1", one)
    for number, name in enumerate(("AZ-1", "äz-1", "az-1 "), start=2):
        replace_labels(db, aggregate(number), {"name": name})
    replace_labels(db, one, {})
    replace_labels(db, two, {"name": "az-1"})
    assert stored(db)[two] == {"name": "az-1"} and one not in stored(db)
    assert schema.check(db) == []


def test_of_two_that_take_a_name_at_once_one_is_refused(db: Database) -> None:
    """The unique key decides; the other one learns who has it."""
    names = [f"name-{number}" for number in range(10)]
    for place, name in enumerate(names):
        calls = (
            partial(replace_labels, db, aggregate(100 * number + place), {"name": name})
            for number in (1, 2)
        )
        assert sorted(race(*calls), key=str) == [LabelTaken, None]
    assert sorted(labels["name"] for labels in stored(db).values()) == names


def test_of_some_that_replace_labels_at_once_one_wins_whole(db: Database) -> None:
    """Never a mixture."""
    wanted: list[dict[str, str]] = [{"zone": "z1"}, {"rack": "r1"}, {}]
    for _ in range(10):
        calls = (partial(replace_labels, db, aggregate(1), labels) for labels in wanted)
        assert race(*calls) == [None] * 3
        assert stored(db).get(aggregate(1), {}) in wanted
