# SPDX-License-Identifier: Apache-2.0
"""Sharing providers with traits and trees of their own."""

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
    """A pool with a forbidden trait is left out, for groups with and without a suffix."""
    query = parse_query(conditions, 39)
    with snapshot_of(RACKS, prepared) as snapshot:
        candidates = ask(snapshot, RACKS, query, 39)
    assert [text.partition(" <")[0] for text in candidates.candidates] == [due]
    assert candidates == answer(RACKS, query, 39)


@pytest.mark.parametrize("minor", [28, 39])
def test_each_pool_of_like_hosts_is_described(prepared: Path, minor: int) -> None:
    """Hosts that are searched together have similar but different pools: each summary has its
    own."""
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
        candidates = ask(snapshot, fleet, query, minor)
    assert candidates.summaries.keys() == {
        f"{kind}{n}" for kind in ("host", "pool") for n in (1, 2, 3)
    }
    assert candidates == answer(fleet, query, minor)


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
    """Twenty hosts each have a disk and a pool; their candidates differ only in the disks'
    UUIDs."""
    fleet = world(
        "\n".join(f"host{n}  VCPU=8  @A{n % 2}\n  disk{n}  DISK_GB=9" for n in range(20))
        + "\npool0  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A0"
        + "\npool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A1"
    )
    query = parse_query("resources=VCPU:1,DISK_GB:1", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        assert ask(snapshot, fleet, query, 39, settings=chosen) == answer(fleet, query, 39)


@pytest.mark.parametrize("amount", [30, 60])
def test_pools_that_are_met_later_have_their_own_room(prepared: Path, amount: int) -> None:
    """Hosts of two shapes are searched one shape after the other, each with pools of its own; two
    groups together may take from a pool only what it has free."""
    fleet = world("""
        flat1  VCPU=8  @A
        flat2  VCPU=8  @B
        fast1  VCPU=8  HW_CPU_X86_AVX2  @C
        fast2  VCPU=8  HW_CPU_X86_AVX2  @D
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=50   MISC_SHARES_VIA_AGGREGATE  @B
        pool3  DISK_GB=50   MISC_SHARES_VIA_AGGREGATE  @C
        pool4  DISK_GB=130  MISC_SHARES_VIA_AGGREGATE  @D
    """)
    query = parse_query(
        f"resources=VCPU:1&resources_a=DISK_GB:{amount}&resources_b=DISK_GB:{amount}"
        "&group_policy=none",
        39,
    )
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert candidates == answer(fleet, query, 39)
    assert len(candidates.candidates) == {30: 2, 60: 1}[amount]


def test_a_pool_that_no_candidate_names_is_not_described(prepared: Path) -> None:
    """With a limit, only one of several similar hosts is returned, and only its pool is
    described."""
    fleet = world("""
        host1  VCPU=8  @A
        host2  VCPU=8  @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=200  MISC_SHARES_VIA_AGGREGATE  @B
    """)
    query = parse_query("resources=VCPU:1,DISK_GB:10&limit=1", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert len(candidates.candidates) == 1
    assert candidates.summaries.keys() in ({"host1", "pool1"}, {"host2", "pool2"})


def test_a_drained_pool_shares_nothing(prepared: Path) -> None:
    """Neither with a host that has no other, nor with one that has."""
    fleet = world("""
        host1  VCPU=8  @A
        host2  VCPU=8  @A @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A  !d
        pool2  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @B
    """)
    query = parse_query("resources=VCPU:1,DISK_GB:10", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert candidates.summaries.keys() == {"host2", "pool2"}
    assert candidates == answer(fleet, query, 39)


def test_groups_that_differ_only_in_what_they_may_not_be_in_differ(prepared: Path) -> None:
    """Two groups differ only in `member_of`: one may use any pool, the other none in the
    aggregate."""
    query = parse_query(
        "resources_a=DISK_GB:1&resources_b=DISK_GB:1&member_of_b=!<agg:A>&group_policy=isolate",
        39,
    )
    fleet = world("""
        host1  VCPU=8  @A @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @B
    """)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert len(candidates.candidates) == 1
    assert candidates == answer(fleet, query, 39)
