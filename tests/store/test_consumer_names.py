# SPDX-License-Identifier: Apache-2.0
"""Names of consumers: unique in a project, written with the claim, and gone with the consumer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from random import Random

import pytest

from berth.model.consumer import ConsumerWrite
from berth.model.errors import CapacityExceeded
from berth.model.own_errors import ConsumerNameTaken
from berth.store.allocations import delete_allocations
from berth.store.consumer_lists import (
    ConsumerFilters,
    get_consumer,
    get_named_consumer,
    pages_of_consumers,
)
from berth.store.engine.database import Database
from berth.store.reshape import reshape
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.effort import SEED, repeat_with, scaled
from tests.servers.statements import run
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, holding
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

VCPU = {1: {"VCPU": 1}}


@pytest.fixture
def fleet(db: Database) -> Database:
    """A host, and consumer 1, which is web/job-17."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU, project="web", name="job-17"))
    return db


def names(db: Database) -> dict[tuple[str, str], str]:
    """The consumer of each name; every way to read names says the same."""
    listed = [each for page in pages_of_consumers(db, ConsumerFilters()) for each in page]
    of_name = {(each.project_id, each.name): each.uuid for each in listed if each.name}
    for project, name in of_name:
        named = get_named_consumer(db, project, name)
        assert named is not None and named in listed
        filters = ConsumerFilters(project_id=project, name=name)
        assert [each for page in pages_of_consumers(db, filters) for each in page] == [named]
    return {key: str(uuid) for key, uuid in of_name.items()}


def test_a_consumer_is_searched_by_its_name(fleet: Database) -> None:
    """By any part of it, whatever the case of ASCII letters, on each engine alike; patterns mean
    nothing."""
    for number, name in enumerate(["JOB-18", "jöb_19", "50%"], start=2):
        claim(fleet, holding(number, VCPU, project="web", name=name))
    for text, numbers in (
        ("job", [1, 2]),
        ("JÖB", []),
        ("Jöb_", [3]),
        ("_", [3]),
        ("%", [4]),
        ("/", []),
        (consumer(4)[:30], [1, 2, 3, 4]),
        (consumer(4)[9:], []),
        (consumer(4), [4]),
    ):
        for project in (None, "web"):
            filters = ConsumerFilters(search=text, project_id=project)
            listed = [each.uuid for page in pages_of_consumers(fleet, filters) for each in page]
            assert listed == sorted(map(consumer, numbers)), text


def test_a_name_is_of_one_consumer_of_a_project(fleet: Database) -> None:
    """Another consumer is refused, and gets nothing; names differ by case, accents and spaces."""
    with pytest.raises(ConsumerNameTaken, match="Project web has a consumer named job-17") as taken:
        claim(fleet, holding(2, VCPU, project="web", name="job-17"))
    assert consumer(1) in str(taken.value) and get_consumer(fleet, consumer(2)) is None
    others = ["JOB-17", "job-17 ", "jöb-17", "\U0001f600" * 255]
    for number, name in enumerate(others, start=3):
        claim(fleet, holding(number, VCPU, project="web", name=name))
    claim(fleet, holding(2, VCPU, project="db", name="job-17"))
    assert names(fleet) == {
        ("web", "job-17"): consumer(1),
        ("db", "job-17"): consumer(2),
        **{("web", name): consumer(number) for number, name in enumerate(others, start=3)},
    }
    assert get_named_consumer(fleet, "WEB", "job-17") is None
    assert schema.check(fleet) == []


def test_what_another_program_leaves_behind_is_free(fleet: Database, fresh_url: str) -> None:
    """A check finds it, a repair removes it, and a claim takes it without either."""
    claim(fleet, holding(2, VCPU, project="web", name="job-18"))
    run(fresh_url, "DELETE FROM allocations", "DELETE FROM consumers")
    assert names(fleet) == {} and get_named_consumer(fleet, "web", "job-17") is None
    claim(fleet, holding(3, VCPU, project="web", name="job-17"))
    assert names(fleet) == {("web", "job-17"): consumer(3)}
    fault = f"the name job-18 is of consumer {consumer(2)}, which is gone"
    assert fault in schema.check(fleet)
    assert fault in [each.sentence for each in iter_repaired(fleet, Owner("p", "u"))]
    assert schema.check(fleet) == []
    assert names(fleet) == {("web", "job-17"): consumer(3)}


@pytest.mark.parametrize("workers", [1, 2])
def test_of_several_that_take_a_name_at_once_one_gets_it(
    opened: Opener, fleet: Database, workers: int
) -> None:
    """Within a worker they share commits; between workers the unique key decides."""
    databases = [opened() for _ in range(workers)] * (4 // workers)
    for turn in range(8):
        writes = [
            holding(10 * turn + number, VCPU, project="web", name=f"t{turn}")
            for number in range(10, 14)
        ]
        outcome = race(*map(partial, repeat(claim), databases, writes))
        assert sorted(outcome, key=str) == [ConsumerNameTaken] * 3 + [None]
        assert names(fleet)["web", f"t{turn}"] == writes[outcome.index(None)].uuid
    assert len(names(fleet)) == 9 and schema.check(fleet) == []


#: How a consumer is released.
RELEASES: tuple[Callable[[Database, ConsumerWrite], object], ...] = (
    lambda db, write: delete_allocations(db, write.uuid),
    lambda db, write: claim(db, write),
    lambda db, write: reshape(db, [], [write]),
)


def test_names_are_those_of_a_plain_model(db: Database) -> None:
    """Random claims and releases, with and without names, of few consumers in two projects: a name
    stays until the consumer has another one, moves to another project, or is gone. Then another may
    take it, also in the same request; a request that is refused changes nothing."""
    add_provider(db, 1, VCPU=100)
    rng = Random(f"{SEED} names")
    model: dict[int, tuple[str, str | None]] = {}
    for _ in range(scaled(180 if db.dialect.is_embedded else 40)):
        writes, after = [], dict(model)
        for number in rng.sample(range(1, 5), rng.choice([1, 1, 2])):
            amount = rng.choice([0, 1, 1, 1, 101])
            write = holding(
                number,
                {1: {"VCPU": amount}} if amount else {},
                project=rng.choice(["web", "db"]),
                name=rng.choice([None, "a", "b", "c"]),
            )
            project, name = after.pop(number, ("", None))
            if amount:
                kept = name if project == write.project_id else None
                after[number] = (write.project_id, write.name or kept)
            writes.append(write)
        named = [owner for owner in after.values() if owner[1] is not None]
        if len(named) > len(set(named)) or any("101" in str(each.allocations) for each in writes):
            with pytest.raises((ConsumerNameTaken, CapacityExceeded)):
                claim(db, *writes)
        elif len(writes) == 1 and writes[0].uuid == consumer(1) and not after.get(1):
            if 1 in model:
                rng.choice(RELEASES)(db, writes[0])
            model = after
        else:
            claim(db, *writes)
            model = after
        shown = {(each[0], each[1]): consumer(n) for n, each in model.items() if each[1]}
        assert names(db) == shown, repeat_with()
    assert schema.check(db) == []
