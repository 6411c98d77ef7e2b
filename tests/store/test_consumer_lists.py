# SPDX-License-Identifier: Apache-2.0
"""Lists of consumers: page by page, each consumer once, as of one state of the database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from berth.model.errors import AllocationsNotFound, ConsumerGenerationConflict
from berth.model.ids import ConsumerUUID, Generation
from berth.store.allocations import delete_allocations, release_consumer
from berth.store.consumer_lists import ConsumerFilters, get_consumer, pages_of_consumers
from berth.store.engine.database import Database
from berth.store.providers import get_provider
from tests.store.fleet import add_provider, claim, consumer, held, holding, provider
from tests.store.statements import counted_statements

VCPU = {"VCPU": 1}


@pytest.fixture
def fleet(db: Database) -> Database:
    """Two hosts, of which the first has a child, with consumers 1 to 23 and 30."""
    add_provider(db, 1, VCPU=100)
    add_provider(db, 2, parent=1, VGPU=100)
    add_provider(db, 3, VCPU=100)
    for number in range(1, 24):
        place = {1: VCPU, 2: {"VGPU": 2}} if number % 2 else {1: VCPU}
        claim(db, holding(number, place, project=f"p{number % 3}", user=f"u{number}"))
    claim(db, holding(30, {3: VCPU}, project="p0"))
    return db


def uuids_in(db: Database, page: int, **filters: Any) -> Iterator[list[ConsumerUUID]]:
    """The pages of a list, by uuid."""
    for listed in pages_of_consumers(db, ConsumerFilters(**filters), page=page):
        yield [each.uuid for each in listed]


def numbers_in(db: Database, *numbers: int) -> list[ConsumerUUID]:
    """Consumers by number, in the order of a list."""
    return sorted(map(consumer, numbers))


@pytest.mark.parametrize("page", [1, 5, 23, 24, 1000])
def test_each_consumer_is_in_one_page(fleet: Database, page: int) -> None:
    """In order, whatever the size of a page."""
    root, child = (get_provider(fleet, provider(number)).id for number in (1, 2))
    for filters, numbers in (
        ({}, [*range(1, 24), 30]),
        ({"root": root}, range(1, 24)),
        ({"provider": root}, range(1, 24)),
        ({"root": child}, []),
        ({"provider": child}, range(1, 24, 2)),
        ({"project_id": "p0"}, [*range(3, 24, 3), 30]),
        ({"project_id": "p0", "root": root}, range(3, 24, 3)),
        ({"user_id": "u7"}, [7]),
        ({"project_id": "P0"}, []),
        ({"consumer_type": "unknown", "provider": child, "project_id": "p1"}, [1, 7, 13, 19]),
    ):
        pages = list(uuids_in(fleet, page, **filters))
        assert all(len(each) <= page for each in pages)
        assert [*chain(*pages)] == numbers_in(fleet, *numbers)


def test_a_list_shows_one_state(fleet: Database) -> None:
    """What is written while it is read is not in it."""
    pages = uuids_in(fleet, 10)
    first = next(pages)
    claim(fleet, holding(31, {3: VCPU}))
    delete_allocations(fleet, consumer(23))
    assert [*first, *chain(*pages)] == numbers_in(fleet, *range(1, 24), 30)
    assert [*chain(*uuids_in(fleet, 10))] == numbers_in(fleet, *range(1, 23), 30, 31)


def test_a_page_costs_two_statements(fleet: Database) -> None:
    """However many consumers it has."""
    with counted_statements(fleet) as counted:
        assert len(list(uuids_in(fleet, 12))) == 2
    assert len([text for text in counted if "FROM" in text]) == 5


def test_a_consumer_has_everything_that_it_holds(fleet: Database) -> None:
    """By provider and class; None if it holds nothing."""
    shown = get_consumer(fleet, consumer(7))
    assert shown is not None
    assert (shown.project_id, shown.user_id, shown.generation) == ("p1", "u7", 1)
    assert shown.allocations == {
        provider(1): ("p1", {"VCPU": 1}),
        provider(2): ("p2", {"VGPU": 2}),
    }
    assert get_consumer(fleet, consumer(99)) is None


def test_a_release_has_a_generation(fleet: Database) -> None:
    """Another generation changes nothing, and what is gone is not found."""
    with pytest.raises(ConsumerGenerationConflict):
        release_consumer(fleet, consumer(7), Generation(2))
    assert get_consumer(fleet, consumer(7)) is not None
    release_consumer(fleet, consumer(7), Generation(1))
    assert consumer(7) not in held(fleet, 1) and consumer(7) not in held(fleet, 2)
    with pytest.raises(AllocationsNotFound):
        release_consumer(fleet, consumer(7), Generation(1))
