# SPDX-License-Identifier: Apache-2.0
"""Texts of providers in the index, and the memory that they take."""

from __future__ import annotations

import tracemalloc
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.candidates.providers import find_providers
from berth.index.fleet import Fleet
from berth.index.provider_texts import Field, ProviderForm, ProviderList
from berth.index.records import json_of
from berth.index.snapshot import Snapshot
from berth.index.text_column import TextColumn
from berth.index.text_columns import numbers_column, numbers_length, rows_text
from berth.model.filters import ProviderFilters
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetRows
from tests.index.rows import inventory_row, provider_row

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


# --- Columns ---

#: Amounts as they are; at the edges of digits and of int32; and what no sound database has.
NUMBERS = st.one_of(
    st.integers(0, 12),
    st.integers(0, 20).map(lambda digits: 10**digits),
    st.integers(0, 20).map(lambda digits: 10**digits - 1),
    st.integers(0, 2**53),
    st.integers(-(2**70), 2**70),
).map(float)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_are_written_as_one_by_one(numbers: list[float]) -> None:
    """Whatever their signs and sizes, and however many digits the others have."""
    texts = [b"%d" % number for number in numbers]
    column = numbers_column(np.array(numbers))
    assert rows_text([b"<", column, b">"], len(numbers)) == b"".join(b"<%b>" % t for t in texts)
    assert numbers_length(np.array(numbers)) == sum(map(len, texts))


def test_a_row_has_its_columns_in_order() -> None:
    """What all rows have, what each has, and a short text without its padding."""
    uuids = np.array([b"abc", b"d", b"ef"], dtype="S3").view("V3")
    columns = [b"{", uuids, b": ", numbers_column(np.array([7.0, 1234.0, 56.0])), b"}"]
    assert rows_text(columns, 3) == b"{abc: 7}{d: 1234}{ef: 56}"
