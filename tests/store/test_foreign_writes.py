# SPDX-License-Identifier: Apache-2.0
"""Another program, such as a forgotten OpenStack Placement, writes to berth's database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from berth.index import Index
from berth.index.providers import get_provider
from berth.model.errors import CapacityExceeded, ProviderGenerationConflict
from berth.model.inventory import Inventory
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import delete_allocations
from berth.store.engine.database import Database, Observer
from berth.store.foreign_writes import take_over
from berth.store.inventories import delete_inventory, replace_inventories
from berth.store.providers import delete_provider
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.traits import replace_provider_traits
from berth.store.usage_counts import recount_usages
from berth.store.usages import project_usages
from berth.upkeep import schema
from tests.index.checking import checked
from tests.servers.statements import run
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    holding,
    provider,
    restock,
    used,
)
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


class Counting(Observer):
    """Counts the reports of foreign writes."""

    def __init__(self) -> None:
        self.found = 0

    def found_foreign_write(self) -> None:
        """Count one provider."""
        self.found += 1


@pytest.fixture
def watched(db: Database) -> Counting:
    """The reports of the test's database."""
    db.observer = counting = Counting()
    return counting


def moved(number: int, *, by: int = 1) -> str:
    """Update a provider's row as OpenStack Placement does with every change."""
    return (
        f"UPDATE resource_providers SET generation = generation + {by} "
        f"WHERE uuid = '{provider(number)}'"
    )


def claimed(number: int, place: int, amount: int) -> tuple[str, ...]:
    """Insert a claim of VCPU as OpenStack Placement does, for a new or a known consumer."""
    of_place = f"FROM resource_providers WHERE uuid = '{provider(place)}'"
    return (
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        f"SELECT id, '{consumer(number)}', 0, {amount} {of_place}",
        "INSERT INTO consumers (uuid, project_id, user_id, generation) "
        f"SELECT '{consumer(number)}', min(p.id), min(u.id), 1 FROM projects p, users u",
        moved(place),
    )


def faults_after_a_read(db: Database) -> list[str]:
    """What is wrong once a client has read what a project uses, which recounts the counters."""
    project_usages(db, "project", None)
    return schema.check(db)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages logged at ERROR."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_a_claim_is_decided_on_what_others_have_taken_too(
    db: Database, fresh_url: str, watched: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """The claim is decided with the other program's allocations included, and the log names the
    host and the corrected usage."""
    add_provider(db, 1, VCPU=128)
    claim(db, holding(1, {1: {"VCPU": 64}}))
    run(fresh_url, *claimed(2, 1, 60))
    with pytest.raises(CapacityExceeded) as refused:
        claim(db, holding(3, {1: {"VCPU": 5}}))
    assert "4" in refused.value.hint
    claim(db, holding(3, {1: {"VCPU": 4}}))
    assert used(db, 1) == [128]
    (said,) = errors(caplog)
    assert f"resource provider {provider(1)} (p1) is at generation 3" in said
    assert "berth left it at 2" in said and "VCPU 64 -> 124" in said
    assert watched.found == 1
    assert faults_after_a_read(db) == []


def test_a_client_that_is_refused_reads_the_generation_of_the_other_program(
    db: Database, other: Database, fresh_url: str, watched: Counting
) -> None:
    """No index knows of the other program's write. One that compares the provider with the database
    after the refusal makes all of them load it again."""
    add_provider(db, 1, VCPU=8)
    indexes = [Index(db), Index(other)]
    seen = [get_provider(index.snapshot(), provider(1)).generation for index in indexes]
    run(fresh_url, moved(1))
    with pytest.raises(ProviderGenerationConflict):
        replace_inventories(db, provider(1), seen[0], {"VCPU": Inventory(9)})
    assert indexes[0].reload_foreign(provider(1))
    assert watched.found == 1
    for index in indexes:
        now = get_provider(index.snapshot(), provider(1)).generation
        assert now == generation(db, 1) == seen[0] + 1
    replace_inventories(db, provider(1), now, {"VCPU": Inventory(9)})
    assert schema.check(db) == []


def test_each_host_that_others_have_written_is_told_by_itself(
    db: Database, fresh_url: str, watched: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """One claim finds several; each gets a line with its own usages."""
    add_provider(db, 1, VCPU=16, DISK_GB=9)
    add_provider(db, 2, VCPU=16)
    add_provider(db, 3, VCPU=16)
    claim(db, holding(1, {place: {"VCPU": place} for place in (1, 2, 3)}))
    run(fresh_url, *claimed(2, 1, 4), *claimed(3, 2, 5), moved(3))
    claim(db, holding(4, {place: {"VCPU": 1} for place in (1, 2, 3)}))
    told = {
        name: error.partition("recounted (")[2].partition(")")[0]
        for error in errors(caplog)
        for name in ("p1", "p2", "p3")
        if f"({name})" in error
    }
    assert told == {"p1": "VCPU 1 -> 5", "p2": "VCPU 2 -> 7", "p3": "no sum was wrong"}
    assert watched.found == len(errors(caplog)) == 3
    assert faults_after_a_read(db) == []


def test_what_berths_own_writes_leave_is_never_taken_for_anothers(
    db: Database, other: Database, watched: Counting
) -> None:
    """Whichever of berth's writes, of whichever process, moved the generation."""
    for number in (1, 2, 3):
        add_provider(db, number, VCPU=8, DISK_GB=8)
    custom = Inventory(4)
    acts: Sequence[Callable[[Database], object]] = (
        lambda on: claim(on, holding(1, {1: {"VCPU": 1}, 2: {"DISK_GB": 1}})),
        lambda on: claim(on, holding(1, {1: {"VCPU": 1}, 2: {"DISK_GB": 1}}, seen=1)),
        lambda on: claim(on, holding(1, {2: {"DISK_GB": 2}}, seen=2)),
        lambda on: replace_provider_traits(on, provider(1), ["HW_CPU_X86_VMX"], generation(on, 1)),
        lambda on: replace_aggregates(on, provider(1), [aggregate(1)], generation(on, 1)),
        lambda on: restock(on, 1, VCPU=8, MEMORY_MB=64),
        lambda on: claim(on, holding(2, {1: {"MEMORY_MB": 1}})),
        lambda on: delete_inventory(on, provider(1), "VCPU"),
        lambda on: reshape(
            on,
            [
                ReshapedInventories(
                    provider(1), generation(on, 1), {"VCPU": custom, "MEMORY_MB": custom}
                ),
                ReshapedInventories(provider(3), generation(on, 3), {}),
            ],
            [holding(2, {1: {"VCPU": 1}, 2: {"VCPU": 1}}, seen=1)],
        ),
        lambda on: restock(on, 3, VCPU=1),
        lambda on: delete_allocations(on, consumer(1)),
        lambda on: claim(on, holding(2, {}, seen=2)),
        lambda on: replace_inventories(on, provider(2), generation(on, 2), {}),
        lambda on: replace_provider_traits(on, provider(2), ["HW_CPU_X86_VMX"], generation(on, 2)),
        lambda on: restock(on, 2, VCPU=1),
        lambda on: delete_provider(on, provider(3)),
    )
    for turn, act in enumerate(acts):
        act((db, other)[turn % 2])
        assert schema.check(db) == [], turn
    other.observer = db.observer
    claim(other, holding(3, {1: {"VCPU": 1}, 2: {"VCPU": 1}}))
    assert watched.found == 0


def of(number: int) -> str:
    """The id of a provider."""
    return f"(SELECT id FROM resource_providers WHERE uuid = '{provider(number)}')"


TOOK: Final = (
    *claimed(2, 1, 2),
    f"UPDATE inventories SET max_unit = 7 WHERE resource_provider_id = {of(1)}",
)

#: What another program does, the write of berth that comes next, a host, and its usage then.
TAKEN_OVER: Final[dict[str, tuple[Sequence[str], Callable[[Database], object], int, int]]] = {
    # Otherwise a usage that does not include the allocation would become too low, and its
    # difference would be allocated again.
    "what it took is given back": (TOOK, lambda db: delete_allocations(db, consumer(2)), 1, 6),
    "somebody leaves": (TOOK, lambda db: claim(db, holding(1, {2: {"VCPU": 6}}, seen=1)), 1, 2),
    "traits": (
        TOOK,
        lambda db: replace_provider_traits(db, provider(1), ["HW_NUMA_ROOT"], generation(db, 1)),
        1,
        8,
    ),
    "a reshape": (
        TOOK,
        lambda db: reshape(
            db,
            [ReshapedInventories(provider(1), generation(db, 1), {"VCPU": Inventory(8)})],
            [holding(4, {2: {"VCPU": 1}})],
        ),
        1,
        8,
    ),
    "it has put an inventory there": (
        (
            "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, "
            f"min_unit, max_unit, step_size, allocation_ratio)"
            f" VALUES ({of(3)}, 0, 4, 0, 1, 4, 1, 1)",
            moved(3),
        ),
        lambda db: claim(db, holding(3, {3: {"VCPU": 4}})),
        3,
        4,
    ),
    "it has taken the inventory": (
        (f"DELETE FROM inventories WHERE resource_provider_id = {of(4)}", moved(4)),
        lambda db: restock(db, 4, VCPU=4),
        4,
        0,
    ),
}


@pytest.mark.parametrize("case", TAKEN_OVER)
def test_every_write_to_the_host_finds_it(
    db: Database, other: Database, fresh_url: str, watched: Counting, case: str
) -> None:
    """Otherwise the new generation would hide the trace of the other program. An index reloads the
    whole provider, not only its usage."""
    for number in (1, 2, 4):
        add_provider(db, number, VCPU=8)
    add_provider(db, 3)
    claim(db, holding(1, {1: {"VCPU": 6}}))
    live = Index(other)
    live.snapshot()
    statements, act, place, due = TAKEN_OVER[case]
    run(fresh_url, *statements)
    act(db)
    assert used(db, place) == [due]
    assert watched.found == 1
    assert checked(live) == []
    assert faults_after_a_read(db) == []


def test_writes_of_one_commit_do_not_suffer_for_one_another(
    db: Database, fresh_url: str, watched: Counting
) -> None:
    """Of the claims that share a commit, only the one on that host runs again."""
    add_provider(db, 1, VCPU=8)
    add_provider(db, 2, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    run(fresh_url, *claimed(2, 1, 7))
    with together(db) as ask:
        refused = [ask(claim, db, holding(number, {1: {"VCPU": 1}})) for number in (3, 4)]
        done = [ask(claim, db, holding(number, {2: {"VCPU": 1}})) for number in (5, 6)]
    for write in refused:
        with pytest.raises(CapacityExceeded):
            write.result()
    assert [write.result() for write in done] == [None, None]
    assert watched.found == 1
    assert faults_after_a_read(db) == []


def test_a_start_takes_over_what_was_written_before_it(
    db: Database, fresh_url: str, watched: Counting
) -> None:
    """With or without usage rows: they are computed, and nothing is reported."""
    add_provider(db, 1, VCPU=8)
    add_provider(db, 2, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    run(fresh_url, *claimed(2, 1, 2), moved(2, by=3))
    assert recount_usages(db) == 1
    assert faults_after_a_read(db) == []
    claim(db, holding(3, {1: {"VCPU": 1}, 2: {"VCPU": 1}}))
    assert watched.found == 0


def test_two_that_find_the_same_say_it_once(
    db: Database, fresh_url: str, watched: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one finds everything recounted."""
    add_provider(db, 1, VCPU=8)
    run(fresh_url, moved(1))
    ((number,),) = run(fresh_url, "SELECT id FROM resource_providers")
    for _ in range(2):
        take_over(db, [number])
    assert (watched.found, len(errors(caplog))) == (1, 1)


def test_an_index_loads_a_provider_again_only_if_others_have_written_it(
    db: Database, fresh_url: str, watched: Counting
) -> None:
    """Nothing is reported for a provider that only berth has changed, nor for one that is nowhere;
    what another program has changed, created or deleted is there, or gone, in the next snapshot."""
    add_provider(db, 1)
    add_provider(db, 2)
    index = Index(db)

    def generations() -> list[int | None]:
        snapshot = index.snapshot()
        places = [snapshot.locate_uuid(provider(number)) for number in (1, 2, 3)]
        return [
            at and snapshot.block(at.block_id).generations.item(at.node, at.row) for at in places
        ]

    replace_provider_traits(db, provider(2), ["HW_CPU_X86_AVX2"], generation(db, 2))
    assert not any(index.reload_foreign(provider(number)) for number in (1, 2, 3))
    assert watched.found == 0

    run(
        fresh_url,
        moved(1),
        f"INSERT INTO resource_providers (uuid, name, generation) VALUES ('{provider(3)}', 'n', 7)",
        "UPDATE resource_providers SET root_provider_id = id WHERE root_provider_id IS NULL",
        "DELETE FROM resource_provider_traits",
        f"UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = '{provider(2)}'",
        f"DELETE FROM resource_providers WHERE uuid = '{provider(2)}'",
    )
    before = generations()
    assert all(index.reload_foreign(provider(number)) for number in (1, 2, 3))
    assert before[2] is None and generations() == [(before[0] or 0) + 1, None, 7]
    assert watched.found == 3
