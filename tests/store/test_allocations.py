# SPDX-License-Identifier: Apache-2.0
"""Claims: generations, capacity, owners, and the order of errors."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, select

from berth.model.errors import (
    AllocationsNotFound,
    BerthError,
    CapacityExceeded,
    ConsumerGenerationConflict,
    NoInventory,
    ProviderNotFound,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET, Sentinel
from berth.store.allocations import (
    consumer_allocations,
    delete_allocations,
    provider_allocations,
)
from berth.store.engine.database import Database
from berth.store.engine.tables import consumers, projects
from berth.store.usages import project_usages, project_usages_by_type
from berth.upkeep import schema
from tests.sql_reads import provider_usages
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
    restock,
)


def consumer_generation(db: Database, number: int) -> int | None:
    """The generation of a consumer that has allocations."""
    allocations = consumer_allocations(db, consumer(number))
    return None if allocations is None else allocations.generation


def test_a_first_claim_makes_the_consumer(db: Database) -> None:
    """The consumer is at generation 1 afterwards; each provider is incremented once."""
    add_provider(db, 1, VCPU=4, DISK_GB=10)
    add_provider(db, 2, VCPU=4)
    wanted = {1: {"VCPU": 1, "DISK_GB": 5}, 2: {"VCPU": 2}}
    claim(db, holding(1, wanted, seen=None, consumer_type="INSTANCE"))
    allocations = consumer_allocations(db, consumer(1))
    assert allocations is not None
    assert allocations.allocations == {
        provider(1): (2, {"VCPU": 1, "DISK_GB": 5}),
        provider(2): (2, {"VCPU": 2}),
    }
    assert (
        allocations.project_id,
        allocations.user_id,
        allocations.consumer_type,
        allocations.generation,
    ) == (
        "project",
        "user",
        "INSTANCE",
        1,
    )
    of_provider = provider_allocations(db, provider(2))
    assert of_provider.generation == 2
    assert of_provider.consumers == {consumer(1): (1, {"VCPU": 2})}
    assert of_provider.last_modified == allocations.last_modified


def test_nobody_holds_anything(db: Database) -> None:
    """An unknown consumer has no allocations, but an unknown provider is an error."""
    assert consumer_allocations(db, consumer(1)) is None
    add_provider(db, 1)
    assert provider_allocations(db, provider(1)).last_modified is None
    with pytest.raises(ProviderNotFound):
        provider_allocations(db, provider(2))
    with pytest.raises(AllocationsNotFound, match="No allocations for consumer"):
        delete_allocations(db, consumer(1))


@pytest.mark.parametrize(
    ("existing", "seen", "accepted"),
    [
        (False, None, True),
        (False, 0, False),
        (False, UNSET, True),
        (True, 1, True),
        (True, None, False),
        (True, 0, False),
        (True, 2**70, False),
        (True, UNSET, True),
    ],
)
def test_the_consumer_generation_must_be_the_one_seen(
    db: Database, existing: bool, seen: int | Sentinel | None, accepted: bool
) -> None:
    """None says that the consumer is new; UNSET (below 1.28) checks nothing."""
    add_provider(db, 1, VCPU=4)
    if existing:
        claim(db, holding(1, {1: {"VCPU": 1}}))
    write = holding(1, {1: {"VCPU": 2}}, seen=seen)
    if accepted:
        claim(db, write)
        assert consumer_generation(db, 1) == (2 if existing else 1)
        return
    with pytest.raises(ConsumerGenerationConflict, match="consumer generation conflict - expected"):
        claim(db, write)
    assert consumer_generation(db, 1) == (1 if existing else None)


def test_which_providers_move(db: Database) -> None:
    """A claim increments the providers that it names, and the former ones of a consumer that it
    empties; not those that a consumer only moves off."""
    for number in (1, 2, 3):
        add_provider(db, number, VCPU=4)
    claim(db, holding(1, {1: {"VCPU": 1}, 2: {"VCPU": 1}}))
    assert [generation(db, number) for number in (1, 2, 3)] == [2, 2, 1]
    claim(db, holding(1, {2: {"VCPU": 1}, 3: {"VCPU": 1}}))
    assert [generation(db, number) for number in (1, 2, 3)] == [2, 3, 2]
    claim(db, holding(1, {}))
    assert [generation(db, number) for number in (1, 2, 3)] == [2, 4, 3]
    assert provider_usages(db, provider(1)).usages == {"VCPU": 0}
    claim(db, holding(1, {1: {"VCPU": 1}}, seen=None))
    delete_allocations(db, consumer(1))
    assert generation(db, 1) == 3


def test_a_provider_named_by_several_consumers_moves_once(db: Database) -> None:
    """Also if several consumers of the request name it."""
    add_provider(db, 1, VCPU=4)
    claim(db, *(holding(number, {1: {"VCPU": 1}}) for number in range(4)))
    assert generation(db, 1) == 2
    assert {consumer_generation(db, number) for number in range(4)} == {1}


def test_an_emptied_consumer_starts_over(db: Database) -> None:
    """Its record is deleted, whichever request empties it; emptying an unknown consumer creates
    none."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(2, {}, seen=None))
    claim(db, holding(1, {1: {"VCPU": 1}}), holding(2, {}))
    claim(db, holding(1, {}, seen=1))
    claim(db, holding(1, {1: {"VCPU": 1}}, seen=None))
    delete_allocations(db, consumer(1))
    with db.read() as tx:
        assert tx.connection.scalars(select(consumers.c.uuid)).all() == []
    assert schema.check(db) == []


def test_capacity_is_what_the_ratio_makes_of_it(db: Database) -> None:
    """All consumers together can use it to the last unit, and no more."""
    add_provider(db, 1, VCPU=Inventory(4, reserved=1, allocation_ratio=1.5))
    claim(db, holding(1, {1: {"VCPU": 3}}))
    with pytest.raises(CapacityExceeded) as refusal:
        claim(db, holding(2, {1: {"VCPU": 2}}))
    assert refusal.value.hint == "2 asked, 1 free."
    claim(db, holding(2, {1: {"VCPU": 1}}))
    with pytest.raises(CapacityExceeded):
        claim(db, holding(3, {1: {"VCPU": 1}}))
    assert provider_usages(db, provider(1)).usages == {"VCPU": 4}


def test_two_new_consumers_cannot_overshoot_together(db: Database) -> None:
    """Together they exceed the capacity: the request is refused, and nothing of it is stored."""
    add_provider(db, 1, VCPU=4, DISK_GB=10)
    before = generation(db, 1)
    with pytest.raises(CapacityExceeded) as refusal:
        claim(
            db,
            holding(1, {1: {"DISK_GB": 1, "VCPU": 3}}),
            holding(2, {1: {"VCPU": 3}}),
        )
    assert "'VCPU'" in str(refusal.value)
    assert refusal.value.hint == "6 asked, 4 free."
    assert held(db, 1) == {}
    assert generation(db, 1) == before
    assert schema.check(db) == []


def test_consumers_of_one_request_can_swap(db: Database) -> None:
    """Both providers are full; each gets what the other consumer gives back."""
    for number in (1, 2):
        add_provider(db, number, VCPU=2)
        claim(db, holding(number, {number: {"VCPU": 2}}))
    claim(db, holding(1, {2: {"VCPU": 2}}, seen=1), holding(2, {1: {"VCPU": 2}}, seen=1))
    assert held(db, 1) == {consumer(2): {"VCPU": 2}}
    claim(db, holding(1, {}), holding(3, {2: {"VCPU": 2}}))
    assert held(db, 2) == {consumer(3): {"VCPU": 2}}


def test_a_write_that_makes_nothing_worse_is_accepted(db: Database) -> None:
    """The provider is over capacity: reducing, keeping, moving away and handing over all
    succeed."""
    for number in (1, 2):
        add_provider(db, number, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 4}}), holding(2, {1: {"VCPU": 4}}))
    restock(db, 1, VCPU=2)
    claim(db, holding(1, {1: {"VCPU": 4}}))
    claim(db, holding(1, {1: {"VCPU": 3}}))
    with pytest.raises(CapacityExceeded) as refusal:
        claim(db, holding(1, {1: {"VCPU": 4}}))
    assert refusal.value.hint == "4 asked, 0 free."
    claim(db, holding(1, {}), holding(3, {1: {"VCPU": 3}}))
    claim(db, holding(2, {2: {"VCPU": 4}}))
    assert held(db, 1) == {consumer(3): {"VCPU": 3}}


def test_amounts_come_in_units(db: Database) -> None:
    """A unit violation is reported before missing capacity."""
    add_provider(db, 1, VCPU=Inventory(8, min_unit=2, max_unit=6, step_size=2))
    for amount in (1, 3, 7, 8, 100, 2**70):
        with pytest.raises(UnitViolation):
            claim(db, holding(1, {1: {"VCPU": amount}}))
    for amounts in ((2, 3), (3, 2), (3, 3)):
        with pytest.raises(UnitViolation):
            claim(db, *(holding(n, {1: {"VCPU": each}}) for n, each in enumerate(amounts)))
    claim(db, holding(1, {1: {"VCPU": 6}}))


def test_which_fault_wins(db: Database) -> None:
    """A request with every fault gets the first error; each row repairs one fault and gets the
    next."""
    add_provider(db, 1, VCPU=Inventory(8, max_unit=6), DISK_GB=1)
    add_provider(db, 2, DISK_GB=1)
    rows: list[tuple[dict[int, dict[str, int]], int | None, type[BerthError]]] = [
        ({1: {"VCPU": 7, "NOPE": 1}, 9: {"VCPU": 1}}, 5, ConsumerGenerationConflict),
        ({1: {"VCPU": 7, "NOPE": 1}, 9: {"VCPU": 1}}, None, UnknownProviderInAllocation),
        ({1: {"VCPU": 7, "NOPE": 1}, 2: {"VCPU": 1}}, None, UnknownClassInAllocation),
        ({1: {"VCPU": 7, "PCPU": 1}, 2: {"VCPU": 1}}, None, NoInventory),
        ({1: {"VCPU": 7, "PCPU": 1}, 2: {"DISK_GB": 2}}, None, UnitViolation),
        ({1: {"VCPU": 6, "PCPU": 1}, 2: {"DISK_GB": 2}}, None, NoInventory),
        ({1: {"VCPU": 6}, 2: {"DISK_GB": 2}}, None, CapacityExceeded),
    ]
    for wanted, seen, refusal in rows:
        with pytest.raises(refusal):
            claim(db, holding(1, wanted, seen=seen))
    claim(db, holding(1, {1: {"VCPU": 6}, 2: {"DISK_GB": 1}}, seen=None))
    with db.read() as tx:
        assert len(tx.connection.scalars(select(projects.c.id)).all()) == 1


def test_every_consumer_is_checked_before_any_provider(db: Database) -> None:
    """A stale second consumer is reported before the first consumer's unknown provider."""
    with pytest.raises(ConsumerGenerationConflict):
        claim(db, holding(1, {9: {"VCPU": 1}}), holding(2, {}, seen=3))


def test_the_owner_follows_the_last_write(db: Database) -> None:
    """Project, user and type are updated, and what they use is counted so; a write below 1.38 keeps
    the type."""
    add_provider(db, 1, VCPU=4)
    steps: list[tuple[str, str | Sentinel | None, str | None]] = [
        ("a", UNSET, None),
        ("a", "INSTANCE", "INSTANCE"),
        ("b", UNSET, "INSTANCE"),
        ("b", "MIGRATION", "MIGRATION"),
        ("b", None, None),
    ]
    for project, given, shown in steps:
        claim(db, holding(1, {1: {"VCPU": 1}}, project=project, consumer_type=given))
        allocations = consumer_allocations(db, consumer(1))
        assert allocations is not None
        assert (allocations.project_id, allocations.consumer_type) == (project, shown)
        assert list(project_usages_by_type(db, project, None, None)) == [shown or "unknown"]


def test_usages_by_project_user_and_type(db: Database) -> None:
    """Consumers without a type count as `unknown`; `all` is the sum of all types."""
    add_provider(db, 1, VCPU=40, DISK_GB=40)
    claim(
        db,
        holding(1, {1: {"VCPU": 1}}, consumer_type="INSTANCE"),
        holding(2, {1: {"VCPU": 2, "DISK_GB": 3}}, consumer_type="INSTANCE", user="else"),
        holding(3, {1: {"VCPU": 4}}),
        holding(4, {1: {"VCPU": 8}}, project="elsewhere"),
    )
    assert project_usages(db, "project", None) == {"VCPU": 7, "DISK_GB": 3}
    assert project_usages(db, "project", "else") == {"VCPU": 2, "DISK_GB": 3}
    assert project_usages(db, "nobody", None) == {}

    def by_type(
        wanted: str | None, user: str | None = None
    ) -> dict[str, tuple[dict[str, int], int]]:
        usages = project_usages_by_type(db, "project", user, wanted)
        return {name: (usage.resources, usage.consumer_count) for name, usage in usages.items()}

    instances = ({"VCPU": 3, "DISK_GB": 3}, 2)
    untyped = ({"VCPU": 4}, 1)
    assert by_type(None) == {"INSTANCE": instances, "unknown": untyped}
    assert by_type("INSTANCE") == {"INSTANCE": instances}
    assert by_type("unknown") == {"unknown": untyped}
    assert by_type("all") == {"all": ({"VCPU": 7, "DISK_GB": 3}, 3)}
    assert by_type("all", "nobody") == by_type("ALL") == {}
    assert by_type(None, "else") == {"INSTANCE": ({"VCPU": 2, "DISK_GB": 3}, 1)}


def test_a_stale_consumer_of_an_adopted_database_takes_generation_0(db: Database) -> None:
    """OpenStack Placement can leave a record without allocations; berth deletes it."""
    add_provider(db, 1, VCPU=4)
    with pytest.raises(UnknownProviderInAllocation):
        claim(db, holding(1, {9: {"VCPU": 1}}, seen=None))
    assert schema.check(db) == []
    stale = {"uuid": consumer(1), "project_id": 1, "user_id": 1, "generation": 0}
    db.write(lambda tx: tx.connection.execute(insert(consumers), stale) and None)
    with pytest.raises(ConsumerGenerationConflict, match="expected 0 but got None"):
        claim(db, holding(1, {1: {"VCPU": 1}}, seen=None))
    claim(db, holding(1, {1: {"VCPU": 1}}, seen=0))
    assert consumer_generation(db, 1) == 1
    assert schema.check(db) == []


@pytest.mark.parametrize("kept", [8, 6])
def test_a_refusal_names_the_provider_that_is_full(db: Database, kept: int) -> None:
    """A provider on which the consumer keeps its amount is not named, however overcommitted it
    is."""
    add_provider(db, 1, VCPU=10)
    add_provider(db, 2, VCPU=10)
    claim(db, holding(1, {1: {"VCPU": 8}, 2: {"VCPU": 1}}))
    claim(db, holding(2, {2: {"VCPU": 6}}))
    restock(db, 1, VCPU=4)
    with pytest.raises(CapacityExceeded) as refusal:
        claim(db, holding(1, {1: {"VCPU": kept}, 2: {"VCPU": 5}}, seen=1))
    assert provider(2) in str(refusal.value)
    assert refusal.value.hint == "5 asked, 4 free."


def test_a_refusal_names_the_first_of_several_that_are_full(db: Database) -> None:
    """The first in the order of the request; providers with free capacity are not named."""
    for number, total in ((1, 9), (2, 1), (3, 1)):
        add_provider(db, number, VCPU=total)
    for order, named in (((1, 3, 2), 3), ((2, 1, 3), 2), ((3, 2, 1), 3)):
        with pytest.raises(CapacityExceeded) as refusal:
            claim(db, holding(1, {number: {"VCPU": 2} for number in order}))
        assert provider(named) in str(refusal.value)
