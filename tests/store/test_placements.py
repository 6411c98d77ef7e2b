# SPDX-License-Identifier: Apache-2.0
"""Placements: written with their claims, replaced, and swept when their consumers are gone."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from berth.model.consumer import ConsumerWrite
from berth.model.errors import CapacityExceeded
from berth.store.allocations import delete_allocations, replace_allocations
from berth.store.engine.database import Database
from berth.store.engine.placement_sweep import PlacementSweep
from berth.store.placements import Placement, standings
from berth.upkeep import schema
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def place(db: Database, write: ConsumerWrite, digest: str = "a") -> None:
    """Claim for a consumer, and keep where it was placed."""
    placement = Placement(digest * 64, provider(1), {"": [*write.allocations]})
    replace_allocations(db, [write], attempts=10, placed={write.uuid: placement})


def digest_of(db: Database, number: int) -> str | None:
    """The first letter of the digest of a consumer's placement, None if it has none."""
    placement = standings(db, [consumer(number)])[consumer(number)].placement
    return None if placement is None else placement.digest[0]


def rows(db: Database) -> int:
    """How many placements are stored."""
    with db.read() as tx:
        query = "SELECT count(*) FROM berth_placements"
        count: int = tx.connection.exec_driver_sql(query).scalar_one()
    return count


def commits_of(db: Database) -> int:
    """How many commits all processes have noted."""
    with db.read() as tx:
        query = "SELECT sum(seq) FROM berth_writer"
        count = int(tx.connection.exec_driver_sql(query).scalar_one())
    return count


@pytest.mark.engines("sqlite")
def test_a_placement_costs_one_statement_more_than_a_claim(db: Database) -> None:
    """Whatever the number of consumers."""
    add_provider(db, 1, VCPU=100)
    place(db, holding(1, {1: {"VCPU": 1}}))
    counts = []
    for first, placed in ((2, False), (12, True)):
        writes = [holding(number, {1: {"VCPU": 1}}) for number in range(first, first + 5)]
        placement = Placement("b" * 64, provider(1), {"": [provider(1)]})
        several = {write.uuid: placement for write in writes} if placed else {}
        with counted_statements(db) as sent:
            replace_allocations(db, writes, attempts=1, placed=several)
        counts.append(len(sent))
        own = [text for text in sent if "berth_placements" in text]
        assert [re.split(r"\s", text)[0] for text in own] == (["INSERT"] if placed else [])
    assert counts[1] == counts[0] + 1


def test_a_placement_counts_while_the_consumer_holds_what_it_got(db: Database) -> None:
    """A later one of the same consumer replaces it."""
    add_provider(db, 1, VCPU=100)
    place(db, holding(1, {1: {"VCPU": 1}}))
    assert digest_of(db, 1) == "a"
    claim(db, holding(1, {1: {"VCPU": 2}}))
    assert digest_of(db, 1) is None
    claim(db, holding(1, {1: {"VCPU": 1}}))
    assert digest_of(db, 1) == "a"
    delete_allocations(db, consumer(1))
    assert digest_of(db, 1) is None
    place(db, holding(1, {1: {"VCPU": 1}}), digest="b")
    assert (digest_of(db, 1), rows(db)) == ("b", 1)
    assert schema.check(db) == []


def test_placements_and_claims_share_a_transaction(db: Database) -> None:
    """They are one kind of write; what is refused leaves no placement."""
    add_provider(db, 1, VCPU=100)
    place(db, holding(1, {1: {"VCPU": 1}}))
    before = commits_of(db)
    with together(db) as ask:
        done = [
            ask(place, db, holding(2, {1: {"VCPU": 1}})),
            ask(claim, db, holding(3, {1: {"VCPU": 1}})),
            ask(place, db, holding(4, {1: {"VCPU": 1}}), "c"),
            ask(place, db, holding(5, {1: {"VCPU": 101}})),
        ]
    errors = [type(each.exception()) for each in done]
    assert errors == [type(None)] * 3 + [CapacityExceeded]
    assert commits_of(db) == before + 1
    assert [digest_of(db, number) for number in (2, 3, 4, 5)] == ["a", None, "c", None]
    assert rows(db) == 3


def test_placements_of_consumers_that_are_gone_are_swept(db: Database) -> None:
    """Once they are old, part by part."""
    add_provider(db, 1, VCPU=100)
    for number in range(6):
        place(db, holding(number, {1: {"VCPU": 1}}))
    for number in (1, 3, 4):
        delete_allocations(db, consumer(number))
    sweep = PlacementSweep()

    def swept(older_by: timedelta) -> int:
        return db.write_unnoted(lambda tx: sweep.run(tx, tx.now + older_by))

    assert swept(timedelta(hours=-1)) == 0
    assert swept(timedelta()) == 0, "the part behind the last row is empty"
    assert swept(timedelta(hours=1)) == 3
    assert rows(db) == 3
    assert [digest_of(db, number) for number in (0, 2, 5)] == ["a", "a", "a"]


@pytest.mark.engines("sqlite")
def test_a_damaged_placement_is_told(db: Database, fresh_url: str) -> None:
    """The consumer keeps its allocations."""
    add_provider(db, 1, VCPU=100)
    place(db, holding(1, {1: {"VCPU": 1}}))
    run(fresh_url, "UPDATE berth_placements SET mappings = '[]'")
    (fault,) = schema.check(db)
    assert fault.startswith(f"the placement of consumer {consumer(1)} is damaged")
