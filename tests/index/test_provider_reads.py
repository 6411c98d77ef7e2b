# SPDX-License-Identifier: Apache-2.0
"""Reads of providers from the index: what the tables say, after every kind of write by another
process."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.candidates.providers import find_providers
from berth.index import Index
from berth.index.fleet import Fleet
from berth.index.provider_texts import Field, ProviderForm, ProviderList
from berth.index.records import json_of
from berth.index.snapshot import Snapshot
from berth.index.text_column import TextColumn
from berth.model.consumer import ConsumerWrite
from berth.model.filters import ProviderFilters
from berth.model.ids import AggregateUUID, ClassId, ConsumerUUID, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import delete_allocations, replace_allocations
from berth.store.engine.database import Database
from berth.store.index_feed import FleetRows
from berth.store.inventories import (
    create_inventory,
    delete_inventories,
    delete_inventory,
    replace_inventories,
    update_inventory,
)
from berth.store.providers import (
    create_provider,
    delete_provider,
    get_provider,
    update_provider,
)
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.traits import (
    create_trait,
    delete_provider_traits,
    delete_trait,
    replace_provider_traits,
)
from berth.store.usage_counts import recount_usages
from tests.fresh import Fresh, opened_at
from tests.index.checking import checked
from tests.index.reading import check_reads
from tests.index.rows import inventory_row, provider_row
from tests.servers.statements import run
from tests.world_in_store import build_in_store
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid, world

FLEET = """
    cn1       MEMORY_MB=1024  @A @B  HW_CPU_X86_VMX CUSTOM_T
      numa0   VCPU=4(used:3)
      numa1   VCPU=4
    cn2       VCPU=8
    pool      DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
"""
CN1, CN2, NUMA0, NUMA1, POOL = (
    ProviderUUID(provider_uuid(name)) for name in ("cn1", "cn2", "numa0", "numa1", "pool")
)
VM = ConsumerUUID(consumer_uuid("vm"))


@pytest.fixture
def workers(fresh: Fresh, tmp_path: Path) -> Iterator[tuple[Database, Database]]:
    """A database on each engine, opened by two processes."""
    url = fresh(tmp_path)
    here, there = opened_at(url), opened_at(url)
    yield here, there
    here.dispose()
    there.dispose()


def rename(db: Database, uuid: ProviderUUID, name: str) -> None:
    """Rename a provider, and leave it where it is."""
    update_provider(db, uuid, name=name, parent_uuid=UNSET, may_reparent=True)


def claim(db: Database, *amounts: int) -> None:
    """Replace what the consumer has of cn2, once for each amount."""
    for amount in amounts:
        allocations = {CN2: {"VCPU": amount}} if amount else {}
        write = ConsumerWrite(VM, allocations, "p", "u", generation=UNSET, consumer_type="INSTANCE")
        replace_allocations(db, [write], attempts=1)


def release(db: Database) -> None:
    """Claim, and delete the allocations."""
    claim(db, 2)
    delete_allocations(db, VM)


def make_again(db: Database) -> None:
    """Another provider gets the uuid, the name and, on SQLite, the id."""
    delete_provider(db, POOL)
    create_provider(db, uuid=POOL, name="pool", parent_uuid=CN1)


def exchange_names(db: Database) -> None:
    """Each provider has a name that another had at the last read."""
    rename(db, CN2, "for a while")
    rename(db, POOL, "cn2")
    rename(db, CN2, "pool")


def make_trait_again(db: Database) -> None:
    """The same name, and on SQLite the same id, with another time."""
    replace_provider_traits(db, CN1, [], get_provider(db, CN1).generation)
    delete_trait(db, "CUSTOM_T")
    create_trait(db, "CUSTOM_T")
    replace_provider_traits(db, CN1, ["CUSTOM_T"], get_provider(db, CN1).generation)


def seen(db: Database, uuid: ProviderUUID) -> ReshapedInventories:
    """Two VCPU more for a provider."""
    return ReshapedInventories(uuid, get_provider(db, uuid).generation, {"VCPU": Inventory(10)})


WRITES: dict[str, Callable[[Database], object]] = {
    "rename": lambda db: rename(db, NUMA1, 'a "name" \\ Straße \u2028\x07'),
    "exchange names": exchange_names,
    "reparent": lambda db: update_provider(
        db, NUMA1, name="numa1", parent_uuid=CN2, may_reparent=True
    ),
    "unparent": lambda db: update_provider(
        db, NUMA1, name="numa1", parent_uuid=None, may_reparent=True
    ),
    "create": lambda db: create_provider(
        db, uuid=ProviderUUID(provider_uuid("new")), name="new", parent_uuid=CN1
    ),
    "delete": lambda db: delete_provider(db, NUMA1),
    "delete and make again": make_again,
    "add an inventory": lambda db: create_inventory(
        db, CN2, "DISK_GB", Inventory(9, 2, 2, 8, 2, allocation_ratio=0.7)
    ),
    "update an inventory": lambda db: update_inventory(
        db, CN2, "VCPU", get_provider(db, CN2).generation, Inventory(16, reserved=3)
    ),
    "replace inventories": lambda db: replace_inventories(
        db,
        CN2,
        get_provider(db, CN2).generation,
        {"VCPU": Inventory(8, allocation_ratio=16.0), "MEMORY_MB": Inventory(7)},
    ),
    "replace inventories by the same": lambda db: replace_inventories(
        db, CN2, get_provider(db, CN2).generation, {"VCPU": Inventory(8)}
    ),
    "delete an inventory": lambda db: delete_inventory(db, CN2, "VCPU"),
    "delete inventories": lambda db: delete_inventories(db, CN2),
    "replace traits": lambda db: replace_provider_traits(
        db, CN1, ["HW_CPU_X86_AVX2", "CUSTOM_T"], get_provider(db, CN1).generation
    ),
    "delete traits": lambda db: delete_provider_traits(db, CN1),
    "make a trait again": make_trait_again,
    "join aggregates": lambda db: replace_aggregates(
        db, CN2, [aggregate_uuid("A"), UUID(aggregate_uuid("C")).hex.upper()], UNSET
    ),
    "join aggregates, with a generation": lambda db: replace_aggregates(
        db, CN2, [AggregateUUID(aggregate_uuid("D"))], get_provider(db, CN2).generation
    ),
    "leave aggregates": lambda db: replace_aggregates(db, CN1, [], UNSET),
    "claim": lambda db: claim(db, 2),
    "claim again": lambda db: claim(db, 2, 3),
    "empty": lambda db: claim(db, 2, 0),
    "release": release,
    "reshape": lambda db: reshape(db, [seen(db, CN2), seen(db, NUMA1)], []),
    "recount": recount_usages,
}


@pytest.mark.parametrize("name", WRITES)
def test_the_next_read_sees_what_another_process_wrote(
    name: str, workers: tuple[Database, Database]
) -> None:
    """Each field of each provider, times included, and lists with every filter."""
    database, other_worker = workers
    build_in_store(world(FLEET), database)
    # Whatever the clock says during the test, each time differs from the one before.
    for table in ("resource_providers", "inventories", "traits"):
        run(
            database.engine.url.render_as_string(hide_password=False),
            f"UPDATE {table} SET created_at = '2020-02-02 02:02:02', updated_at = NULL",
        )
    here, there = Index(database), Index(other_worker)
    for index in (here, there):
        check_reads(index, database)
    WRITES[name](database)
    for index in (here, there):
        check_reads(index, database)
        assert checked(index) == []


def test_a_claim_reads_no_tree_again(workers: tuple[Database, Database]) -> None:
    """Generation and time come with the usage."""
    database, other_worker = workers
    build_in_store(world(FLEET), database)
    index = Index(other_worker)
    index.snapshot()
    claim(database, 2)
    check_reads(index, database)
    assert (index.counts.trees, index.counts.usages, index.counts.loads) == (0, 1, 1)


# --- Memory --------------------------------------------------------------------------------------

#: What a host with three inventories takes beyond its uuid and its name, at most.
HOST_BYTES_MAX = 700

HOSTS = 20_000
CLASSES = {name: ClassId(each) for each, name in enumerate(("VCPU", "MEMORY_MB", "DISK_GB"))}
FORM = ProviderForm((b"<", b" ", b" ", b">"), (Field.UUID, Field.NAME, Field.GENERATION))


def hosts(count: int) -> FleetRows:
    """Hosts with three inventories each."""
    rows = FleetRows([], [], [], [], [])
    for number in range(1, count + 1):
        host = ProviderId(number)
        name, uuid = f"compute-{number:06}", str(UUID(int=number << 64))
        rows.providers.append(provider_row(host, uuid, None, host, name=name, generation=number))
        rows.inventories.extend(inventory_row(host, ClassId(each)) for each in (0, 1, 2))
    return rows


@pytest.fixture(scope="module")
def large() -> Snapshot:
    """Many hosts."""
    fleet = Fleet(class_ids=CLASSES, trait_ids={})
    fleet.load([hosts(HOSTS)])
    return fleet.snapshot()


def test_a_host_takes_some_hundred_bytes() -> None:
    """After the load, with maps, locations and columns."""
    rows = [hosts(HOSTS)]
    tracemalloc.start()
    try:
        fleet = Fleet(class_ids=CLASSES, trait_ids={})
        fleet.load(rows)
        snapshot = fleet.snapshot()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert snapshot.locate(ProviderId(HOSTS)) is not None
    assert size / HOSTS < HOST_BYTES_MAX


def test_a_list_takes_little_memory_while_it_is_made(large: Snapshot) -> None:
    """A tenth of its length, and its length is known before."""
    listing = ProviderList(large, find_providers(large, ProviderFilters()), FORM, b"[")
    tracemalloc.start()
    try:
        length = sum(len(piece) for piece in listing.pieces())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert length == listing.length
    assert peak < length / 2


# --- Texts ---------------------------------------------------------------------------------------


@given(st.data())
def test_a_text_column_is_what_its_texts_are(data: st.DataObject) -> None:
    """However it is cut, joined and changed."""
    nodes = data.draw(st.integers(1, 3))
    texts = st.binary(max_size=4)
    rows = st.lists(st.lists(texts, min_size=nodes, max_size=nodes), min_size=1, max_size=6)
    expected = data.draw(rows)
    column = column_of(expected)
    for more in data.draw(st.lists(rows, max_size=2)):
        expected = expected + more
        column = TextColumn.joined((column, column_of(more)))
    for row, changed in data.draw(
        st.dictionaries(st.integers(0, len(expected) - 1), rows.map(lambda each: each[0]))
    ).items():
        expected[row] = changed
        column = column.with_rows({row: changed})
    assert_is(column, expected)
    index = data.draw(st.lists(st.integers(0, len(expected) - 1), min_size=1))
    picked = column.take(np.array(index, dtype=np.int64))
    assert_is(picked, [expected[row] for row in index])


def assert_is(column: TextColumn, rows: list[list[bytes]]) -> None:
    """A column has these rows."""
    nodes = range(len(rows[0]))
    items = [[column.item(node, row) for node in nodes] for row in range(column.rows)]
    assert items == rows
    assert column.every() == [text for of_node in zip(*rows, strict=True) for text in of_node]


def column_of(rows: list[list[bytes]]) -> TextColumn:
    """A column of some rows."""
    return TextColumn.of(
        [text for of_node in zip(*rows, strict=True) for text in of_node], len(rows)
    )


@given(
    names=st.lists(st.sampled_from(["a", "bb", 'c"', "Straße"]), min_size=1, max_size=60),
    generations=st.lists(st.sampled_from([0, 9, 10, 99_999, 2**31 - 1]), min_size=60, max_size=60),
    dashes=st.booleans(),
)
def test_a_list_is_what_its_providers_are(
    names: list[str], generations: list[int], dashes: bool
) -> None:
    """In the order of their ids, whatever their lengths, and whether children or roots."""
    rows = FleetRows([], [], [], [], [])
    for number, (name, generation) in enumerate(zip(names, generations, strict=False), 1):
        uuid = UUID(int=number)
        parent = ProviderId(number - 1) if number % 3 == 2 else None
        rows.providers.append(
            provider_row(
                ProviderId(number),
                str(uuid) if dashes else uuid.hex,
                parent,
                parent or ProviderId(number),
                name=name,
                generation=generation,
            )
        )
    fleet = Fleet(class_ids=CLASSES, trait_ids={}, rows_max=25)
    fleet.load([rows])
    snapshot = fleet.snapshot()
    form = ProviderForm(
        (b"%{", b" ", b" ", b" ", b" ", b"}"),
        (Field.UUID, Field.NAME, Field.GENERATION, Field.PARENT, Field.ROOT),
    )
    listing = ProviderList(snapshot, snapshot.locations.ascending(), form, b"[")
    uuids = {row[0]: row[1] for row in rows.providers}
    expected = ",".join(
        f"%{{{uuid} {json_of(name).decode()} {generation} "
        f"{'null' if parent is None else json_of(uuids[parent]).decode()} {uuids[root]}}}"
        for _, uuid, parent, root, name, generation, _ in rows.providers
    )
    assert b"".join(listing.pieces()) == f"[{expected}]}}".encode()
    assert listing.length == len(f"[{expected}]}}".encode())
