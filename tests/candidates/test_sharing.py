# SPDX-License-Identifier: Apache-2.0
"""Sharing providers with traits and places of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.candidates.request import SearchSettings
from tests.brute_force import answer
from tests.candidates.engine import ask, snapshot_of
from tests.queries import parse_query
from tests.worlds import world

#: Two hosts that differ in their pool only, and the pools in their place and a trait.
RACKS = world("""
    host1  VCPU=8  @A
    host2  VCPU=8  @B
    pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    pool2  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  CUSTOM_SLOW  @B
""")


@pytest.mark.parametrize(
    ("conditions", "due"),
    [
        ("resources=VCPU:1,DISK_GB:10&required=!CUSTOM_SLOW", "host1:VCPU=1 pool1:DISK_GB=10"),
        (
            "resources=VCPU:1&resources_D=DISK_GB:10&required_D=!CUSTOM_SLOW",
            "host1:VCPU=1 pool1:DISK_GB=10",
        ),
        ("resources=VCPU:1,DISK_GB:10&required=CUSTOM_SLOW", "host2:VCPU=1 pool2:DISK_GB=10"),
    ],
)
def test_a_sharing_provider_is_held_to_the_traits_of_its_group(
    prepared: Path, conditions: str, due: str
) -> None:
    """A pool with a forbidden trait is not offered, in a group without a suffix as in one with."""
    query = parse_query(conditions, 39)
    with snapshot_of(RACKS, prepared) as snapshot:
        found = ask(snapshot, RACKS, query, 39)
    assert [text.partition(" <")[0] for text in found.candidates] == [due]
    assert found == answer(RACKS, query, 39)


@pytest.mark.parametrize("minor", [28, 39])
def test_each_pool_of_like_hosts_is_described(prepared: Path, minor: int) -> None:
    """Hosts that are searched together have pools that are alike, and not the same."""
    fleet = world("""
        host1  VCPU=8  @A
        host2  VCPU=8  @B
        host3  VCPU=8  @C
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=200  MISC_SHARES_VIA_AGGREGATE  @B
        pool3  DISK_GB=300  MISC_SHARES_VIA_AGGREGATE  @C
    """)
    query = parse_query("resources=VCPU:1,DISK_GB:10", minor)
    with snapshot_of(fleet, prepared) as snapshot:
        found = ask(snapshot, fleet, query, minor)
    assert found.summaries.keys() == {f"{kind}{n}" for kind in ("host", "pool") for n in (1, 2, 3)}
    assert found == answer(fleet, query, minor)


@pytest.mark.parametrize(
    "chosen",
    [
        SearchSettings(),
        SearchSettings(candidates_max=100),
        SearchSettings(candidates_max=100, strategy="breadth-first"),
        SearchSettings(randomize=True),
    ],
    ids=str,
)
def test_each_of_many_candidates_names_its_own_disk(prepared: Path, chosen: SearchSettings) -> None:
    """Twenty hosts have a disk below them and a pool beside, in candidates that look the same."""
    fleet = world(
        "\n".join(f"host{n}  VCPU=8  @A{n % 2}\n  disk{n}  DISK_GB=9" for n in range(20))
        + "\npool0  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A0"
        + "\npool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A1"
    )
    query = parse_query("resources=VCPU:1,DISK_GB:1", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        assert ask(snapshot, fleet, query, 39, settings=chosen) == answer(fleet, query, 39)
