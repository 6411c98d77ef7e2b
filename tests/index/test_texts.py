# SPDX-License-Identifier: Apache-2.0
"""Texts of providers in the index."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.index import texts
from berth.index.fleet import Fleet
from berth.index.provider_texts import Field, ProviderList
from berth.index.records import json_of
from berth.index.texts import Template, numbers_length
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetPart, FleetRows
from tests.index.rows import provider_row

CLASSES = {name: ClassId(each) for each, name in enumerate(("VCPU", "MEMORY_MB", "DISK_GB"))}


# --- Texts ---------------------------------------------------------------------------------------


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
    fleet.load([FleetPart(None, lambda: rows)])
    snapshot = fleet.snapshot()
    form = Template[Field].of(
        [
            b"%{",
            (Field.UUID, b"%b"),
            b" ",
            (Field.NAME, b"%b"),
            b" ",
            (Field.GENERATION, b"%d"),
            b" ",
            (Field.PARENT, b"%b"),
            b" ",
            (Field.ROOT, b"%b"),
            b"}",
        ]
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


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([0, 128]))
def test_numbers_are_written_as_one_by_one(numbers: list[float], many: int) -> None:
    """Whatever their signs and sizes, and however many digits the others have; from how many on
    they are written by columns."""
    expected = [b"<%d>" % number for number in numbers]
    template = Template[str].of([b"<", ("number", b"%d"), b">"])
    columns = {"number": np.array(numbers)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "MANY_ROWS", 0)
        patched.setattr(texts, "MANY_NUMBERS", many)
        assert template.joined(columns, len(numbers)) == b"".join(expected)
        assert template.each(columns, len(numbers)) == expected
    lengths = {"number": numbers_length(np.array(numbers))}
    assert template.length(lengths, len(numbers)) == len(b"".join(expected))
