# SPDX-License-Identifier: Apache-2.0
"""Lists of consumers: page by page, each consumer once, as of one state of the database. What they
show is seen over HTTP: tests/api/berth_v1/test_consumers.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from berth.model.ids import ConsumerUUID
from berth.store.allocations import delete_allocations
from berth.store.consumer_lists import ConsumerFilters, pages_of_consumers
from berth.store.engine.database import Database
from berth.store.providers import get_provider
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements

VCPU = {"VCPU": 1}

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


@pytest.fixture
def fleet(db: Database) -> Database:
    """Two hosts, of which the first has a child, with consumers 1 to 23 and 30."""
    for number, parent in ((1, None), (2, 1), (3, None)):
        add_provider(db, number, parent=parent, VCPU=100)
    writes = [holding(n, {1: VCPU, 2: VCPU} if n % 2 else {1: VCPU}) for n in range(1, 24)]
    claim(db, *writes, holding(30, {3: VCPU}, project="P"))
    return db


def pages(db: Database, page: int, **filters: Any) -> Iterator[list[ConsumerUUID]]:
    """The pages of a list, by uuid."""
    for listed in pages_of_consumers(db, ConsumerFilters(**filters), page=page):
        yield [each.uuid for each in listed]


def numbers_in(*numbers: int) -> list[ConsumerUUID]:
    """Consumers by number, in the order of a list."""
    return sorted(map(consumer, numbers))


def test_each_consumer_is_in_one_page_of_one_state(fleet: Database) -> None:
    """In order, whatever the size of a page, each of which costs two statements. What is written
    while a list is read is not in it."""
    root, child = (get_provider(fleet, provider(number)).id for number in (1, 2))
    for filters, numbers in (
        ({}, [*range(1, 24), 30]),
        ({"root": root}, range(1, 24)),
        ({"root": child}, []),
        ({"provider": child}, range(1, 24, 2)),
        ({"project_id": "P"}, [30]),
        ({"project_id": "p"}, []),
    ):
        for page in (1, 5, 23, 24, 1000):
            listed = list(pages(fleet, page, **filters))
            assert all(len(each) <= page for each in listed)
            assert [*chain(*listed)] == numbers_in(*numbers)
    with counted_statements(fleet) as counted:
        assert len(list(pages(fleet, 12))) == 2
    assert len([text for text in counted if "FROM" in text]) == 5
    rest = pages(fleet, 10)
    first = next(rest)
    claim(fleet, holding(31, {3: VCPU}))
    delete_allocations(fleet, consumer(23))
    assert [*first, *chain(*rest)] == numbers_in(*range(1, 24), 30)
    assert [*chain(*pages(fleet, 10))] == numbers_in(*range(1, 23), 30, 31)
