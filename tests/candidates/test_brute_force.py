# SPDX-License-Identifier: Apache-2.0
"""The twin is correct: it gives every answer that was recorded from OpenStack Placement."""

from __future__ import annotations

import pytest

from tests.brute_force import UnknownName, answer
from tests.candidates.examples import Example, recorded_examples
from tests.queries import parse_query, query_text
from tests.worlds import world

#: What a refusal says when the reason is a name that does not exist: the twin's only errors.
UNKNOWN_NAME_DETAILS = ("No such resource class", "No such trait(s)")

ANSWERED = [example for example in recorded_examples() if example.status == 200]
REFUSED_BY_NAME = [
    example for example in recorded_examples() if example.detail in UNKNOWN_NAME_DETAILS
]


@pytest.mark.parametrize("example", ANSWERED, ids=lambda example: example.id)
def test_the_twin_answers_what_was_recorded(example: Example) -> None:
    """The same candidates with their repetitions, and the same capacities and usages."""
    result = answer(example.world, parse_query(example.query, example.minor), example.minor)
    assert result.candidates == example.candidates
    if example.summaries is not None:
        assert {n: s.resources for n, s in result.summaries.items()} == example.summaries


@pytest.mark.parametrize("example", REFUSED_BY_NAME, ids=lambda example: example.id)
def test_the_twin_refuses_unknown_names_in_the_recorded_order(example: Example) -> None:
    """An unknown class or trait is an error only if no earlier condition decides the answer."""
    with pytest.raises(UnknownName):
        answer(example.world, parse_query(example.query, example.minor), example.minor)


@pytest.mark.parametrize("example", ANSWERED, ids=lambda example: example.id)
def test_a_query_survives_being_written_and_read_again(example: Example) -> None:
    """`query_text` turns random queries into text for HTTP, so decoding it must give the same
    query."""
    query = parse_query(example.query, example.minor)
    again = parse_query(query_text(query), example.minor)
    assert answer(example.world, again, example.minor) == answer(
        example.world, query, example.minor
    )


def test_a_drawing_survives_being_read_and_drawn_again() -> None:
    """Failing random worlds are printed as drawings, so parsing a drawing must give the same
    world."""
    fleet = world("""
        cn1       MEMORY_MB=1024  @A
          numa0   VCPU=4(used:3)
            pf    SRIOV_NET_VF=8(reserved:1,min:2,max:4,step:2,ratio:1.5)  CUSTOM_NET
          numa1   VCPU=4
        pool      DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A  @B
    """)
    assert [(p.name, p.parent) for p in fleet.providers] == [
        ("cn1", None),
        ("numa0", "cn1"),
        ("pf", "numa0"),
        ("numa1", "cn1"),
        ("pool", None),
    ]
    assert fleet.by_name["pf"].stocks["SRIOV_NET_VF"].allocation_ratio == 1.5
    assert world(str(fleet)) == fleet


def test_a_sharing_pool_completes_the_trees_of_its_aggregate() -> None:
    """A pool serves the disk of a tree without one if its aggregate contains the root."""
    fleet = world("""
        cn1       MEMORY_MB=1024  @A
          numa0   VCPU=4(used:3)
          numa1   VCPU=4
        cn2       MEMORY_MB=1024
          numa2   VCPU=4
        pool      DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    query = parse_query("resources=VCPU:2,DISK_GB:100", 33)
    assert answer(fleet, query, 33).candidates == ["numa1:VCPU=2 pool:DISK_GB=100"]
