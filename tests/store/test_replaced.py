# SPDX-License-Identifier: Apache-2.0
"""What writes replaced, as the audit log is told of it: each request of a commit its own, and
without a statement more. What the log says: tests/api/test_audit_log*.py."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pytest

from berth.model.ids import ClassId
from berth.store import lease_sweep
from berth.store.allocations import delete_allocations, replace_allocations
from berth.store.engine.database import Database
from berth.store.engine.write_record import Holder, Holdings, WriteRecord
from berth.store.inventories import Key
from berth.store.leases import put_lease
from berth.store.lookups import get_provider_row
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

#: Seconds for one write.
TIMEOUT: Final = 20

VCPU, MEMORY_MB = ClassId(0), ClassId(1)


@pytest.fixture
def fleet(db: Database) -> Database:
    """Two hosts; consumer 1 is web/job-17, and consumer 2 has the same name in another project."""
    add_provider(db, 1, VCPU=8, MEMORY_MB=64)
    add_provider(db, 2, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2, "MEMORY_MB": 8}}, project="web", name="job-17"))
    claim(db, holding(2, {2: {"VCPU": 1}}, project="attic", user="bob", name="job-17"))
    return db


HOLDERS = {
    consumer(1): Holder("web", "user", "job-17"),
    consumer(2): Holder("attic", "bob", "job-17"),
}


def held(db: Database) -> list[set[tuple[str, Key, int]]]:
    """What the two consumers hold."""
    with db.read() as tx:
        one, two = (get_provider_row(tx, provider(number)).id for number in (1, 2))
    return [
        {(consumer(1), Key(one, VCPU), 2), (consumer(1), Key(one, MEMORY_MB), 8)},
        {(consumer(2), Key(two, VCPU), 1)},
    ]


def test_writes_that_share_a_commit_are_told_apart(fleet: Database) -> None:
    """Each release gets its own consumer's allocations; claims of new consumers replace nothing,
    also if an earlier run has noted something, before they shared a commit."""
    expected = held(fleet)
    stale = WriteRecord(former=Holdings(holders=dict(HOLDERS)))
    with together(fleet) as ask:
        asked = [
            ask(
                partial(replace_allocations, attempts=1),
                fleet.recording(stale) if number == 11 else fleet,
                [holding(number, {1: {"VCPU": 1}})],
            )
            for number in (10, 11, 12)
        ]
    assert [each.result(TIMEOUT) for each in asked] == [None] * 3
    assert stale.former == Holdings()
    both = [WriteRecord(), WriteRecord()]
    with together(fleet) as ask:
        asked = [
            ask(delete_allocations, fleet.recording(record), consumer(number))
            for number, record in enumerate(both, start=1)
        ]
        ask(delete_allocations, fleet, consumer(9))
    assert [each.result(TIMEOUT) for each in asked] == [None, None]
    assert [{*record.former.allocations} for record in both] == expected
    assert [record.former.holders for record in both] == [
        {uuid: holder} for uuid, holder in HOLDERS.items()
    ]


def test_a_sweep_tells_what_the_consumers_of_each_commit_had(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is that commit's turn; and the consumers can be told apart."""
    noon = datetime(2026, 11, 24, 12)
    monkeypatch.setattr(Database, "clock", lambda db: noon)
    for number in (1, 2):
        put_lease(fleet, consumer(number), 60)
    monkeypatch.setattr(Database, "clock", lambda db: noon + timedelta(seconds=60))
    monkeypatch.setattr(lease_sweep, "_RELEASED_MAX", 1)
    expected = dict(zip(HOLDERS, held(fleet), strict=True))
    record, every = WriteRecord(), WriteRecord()
    for [expired] in lease_sweep.sweep(fleet.recording(record)):
        taken = record.taken()
        assert set(taken.allocations) == expected.pop(expired.consumer)
        assert taken.holders == {expired.consumer: HOLDERS[expired.consumer]}
        every.release_more(taken)
    assert (expected, every.former.holders) == ({}, HOLDERS)
    assert {*HOLDERS} == {uuid for each in every.former.each() for uuid in each.holders}
    assert sum(len(each.allocations) for each in every.former.each()) == 3


def test_telling_takes_no_statement_more(fleet: Database) -> None:
    """It only makes one wider: of a claim of a new consumer, of a move, and of a release."""
    counts = []
    for db in (fleet, fleet.recording(WriteRecord()), fleet):
        with counted_statements(fleet) as sent:
            for place in (1, 2):
                write = holding(4, {place: {"VCPU": 1}})
                replace_allocations(db, [write], attempts=1)
            delete_allocations(db, consumer(4))
        counts.append(len(sent))
    assert counts[1] == counts[2] > 6
