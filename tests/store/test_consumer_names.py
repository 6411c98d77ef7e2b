# SPDX-License-Identifier: Apache-2.0
"""Names of consumers: unique in a project, written with the claim, and gone with the consumer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

import pytest

from berth.model.consumer import ConsumerWrite
from berth.model.errors import CapacityExceeded
from berth.model.ids import Generation
from berth.model.own_errors import ConsumerNameTaken
from berth.store.allocations import delete_allocations, release_consumer
from berth.store.consumer_lists import (
    ConsumerFilters,
    get_consumer,
    get_named_consumer,
    pages_of_consumers,
)
from berth.store.engine.database import Database
from berth.store.reshape import reshape
from berth.upkeep import schema
from berth.upkeep.data_migrations import Owner
from berth.upkeep.repair import iter_repaired
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, generation, holding

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


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
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


RELEASES: dict[str, Callable[[Database], object]] = {
    "delete": lambda db: delete_allocations(db, consumer(1)),
    "delete at a generation": lambda db: release_consumer(db, consumer(1), Generation(1)),
    "empty": lambda db: claim(db, holding(1, {}, project="web", seen=1)),
    "empty by a reshape": lambda db: reshape(db, [], [holding(1, {}, project="web", seen=1)]),
    "move": lambda db: claim(db, holding(1, VCPU, project="db", seen=1)),
}


@pytest.mark.parametrize("release", RELEASES)
def test_a_name_goes_with_its_consumer(fleet: Database, release: str) -> None:
    """Another consumer may take it, and the same one does not get it back by its uuid."""
    RELEASES[release](fleet)
    assert names(fleet) == {}
    claim(fleet, holding(1, VCPU, project="web"))
    assert names(fleet) == {}
    claim(fleet, holding(2, VCPU, project="web", name="job-17"))
    assert names(fleet) == {("web", "job-17"): consumer(2)}


def test_a_claim_without_a_name_keeps_it(fleet: Database) -> None:
    """A claim with another one replaces it."""
    claim(fleet, holding(1, {1: {"VCPU": 3}}, project="web", seen=1))
    assert names(fleet) == {("web", "job-17"): consumer(1)}
    claim(fleet, holding(1, VCPU, project="web", seen=2, name="job-17"))
    assert names(fleet) == {("web", "job-17"): consumer(1)}
    claim(fleet, holding(1, VCPU, project="db", seen=3, name="job-18"))
    assert names(fleet) == {("db", "job-18"): consumer(1)}


def test_a_name_changes_hands_in_one_request(fleet: Database) -> None:
    """What is released in it is free; no two consumers of it get one name."""
    claim(
        fleet, holding(1, {}, project="web", seen=1), holding(2, VCPU, project="web", name="job-17")
    )
    assert names(fleet) == {("web", "job-17"): consumer(2)}
    with pytest.raises(ConsumerNameTaken):
        claim(fleet, *(holding(number, VCPU, project="new", name="x") for number in (3, 4)))
    assert names(fleet) == {("web", "job-17"): consumer(2)}


def test_a_refused_claim_leaves_no_name(fleet: Database) -> None:
    """It is written with the claim, or not at all."""
    with pytest.raises(CapacityExceeded):
        claim(fleet, holding(2, {1: {"VCPU": 100}}, project="web", name="job-18"))
    assert names(fleet) == {("web", "job-17"): consumer(1)}


def test_what_another_program_leaves_behind_is_free(fleet: Database) -> None:
    """A check finds it, a repair removes it, and a claim takes it without either."""
    claim(fleet, holding(2, VCPU, project="web", name="job-18"))

    def forget(number: int) -> None:
        uuid = consumer(number)
        fleet.write_unnoted(
            lambda tx: [
                tx.connection.exec_driver_sql(text)
                for text in (
                    f"DELETE FROM allocations WHERE consumer_id = '{uuid}'",
                    f"DELETE FROM consumers WHERE uuid = '{uuid}'",
                )
            ]
        )

    forget(1)
    forget(2)
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
    databases = [opened() for _ in range(workers)]
    threads_each = 4 // workers
    outcomes: dict[tuple[int, int], bool] = {}
    start = threading.Barrier(4)

    def take(number: int, db: Database) -> None:
        for turn in range(8):
            start.wait(60)
            try:
                claim(db, holding(100 * number + turn + 50, VCPU, project="web", name=f"t{turn}"))
                outcomes[number, turn] = True
            except ConsumerNameTaken:
                outcomes[number, turn] = False

    threads = [
        threading.Thread(target=take, args=(number, databases[number // threads_each]))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = {
        ("web", f"t{turn}"): consumer(100 * number + turn + 50)
        for (number, turn), won in outcomes.items()
        if won
    }
    assert len(outcomes) == 32 and len(winners) == sum(outcomes.values()) == 8
    assert names(fleet) == {("web", "job-17"): consumer(1), **winners}
    assert schema.check(fleet) == []


@pytest.mark.parametrize("seed", range(3))
def test_names_are_those_of_a_plain_model(db: Database, seed: int) -> None:
    """Random claims, with and without names, of few consumers in two projects."""
    add_provider(db, 1, VCPU=1000)
    rng = Random(seed)
    model: dict[int, tuple[str, str | None]] = {}
    for _ in range(60):
        writes = _random_writes(rng)
        after = dict(model)
        for write, number in writes:
            _, old = model.get(number, ("", None))
            keeps = number in model and model[number][0] == write.project_id
            after.pop(number, None)
            if write.allocations:
                after[number] = (write.project_id, write.name or (old if keeps else None))
        named = [owner for owner in after.values() if owner[1] is not None]
        if len(named) == len(set(named)):
            claim(db, *(write for write, _ in writes))
            model = after
        else:
            with pytest.raises(ConsumerNameTaken):
                claim(db, *(write for write, _ in writes))
        shown = {(each[0], each[1]): consumer(n) for n, each in model.items() if each[1]}
        assert names(db) == shown
    assert generation(db, 1) > 10 and schema.check(db) == []


def _random_writes(rng: Random) -> list[tuple[ConsumerWrite, int]]:
    return [
        (
            holding(
                number,
                rng.choice([VCPU, VCPU, VCPU, {}]),
                project=rng.choice(["web", "db"]),
                name=rng.choice([None, "a", "b", "c"]),
            ),
            number,
        )
        for number in rng.sample(range(1, 5), rng.choice([1, 1, 2]))
    ]
