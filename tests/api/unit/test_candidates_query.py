# SPDX-License-Identifier: Apache-2.0
"""Decoding a candidates query, before any data is read."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from berth.api.allocation_candidates import decode
from berth.api.errors import Refused
from berth.api.schema import Schema
from berth.candidates.request import CandidatesRequest, HostConditions, RequestGroup

A1 = "a1111111-1111-1111-1111-111111111111"
A2 = "a2222222-2222-2222-2222-222222222222"
ROOT = "c0000000-0000-0000-0000-000000000000"

FIXTURE = Path(__file__).parents[2] / "data" / "candidates-examples.json"
#: Faults that only the data shows.
BY_DATA = ("No such trait", "No such resource class")


def test_everything_at_once() -> None:
    """Each parameter ends up in its field, normalised."""
    wanted = decode(
        f"resources=VCPU:1,VCPU:2&required=T1,!T2&required=in:T3,%20T4&resources_N=SRIOV_NET_VF:1"
        f"&member_of=in:{A1},{A2.upper()}&member_of=!{A1}&in_tree_N=%20{ROOT.replace('-', '')}"
        f"&required_M=T5&group_policy=isolate&limit=5&root_required=R1,!R2"
        f"&same_subtree=_N,%20_M,_N",
        39,
    )
    assert wanted == CandidatesRequest(
        groups=(
            RequestGroup(
                suffix="",
                resources=(("VCPU", 2),),
                required=(frozenset({"T1"}), frozenset({"T3", "T4"})),
                forbidden=frozenset({"T2"}),
                member_of=(frozenset({A1, A2}),),
                not_member_of=frozenset({A1}),
            ),
            RequestGroup(suffix="_N", resources=(("SRIOV_NET_VF", 1),), in_tree=frozenset({ROOT})),
            RequestGroup(suffix="_M", required=(frozenset({"T5"}),)),
        ),
        group_policy="isolate",
        limit=5,
        host=HostConditions(required=(frozenset({"R1"}),), forbidden=frozenset({"R2"})),
        same_subtree=(frozenset({"_N", "_M"}),),
    )


def test_groups_stand_in_the_order_of_their_first_keys() -> None:
    """The search reports unknown names in this order."""
    wanted = decode("required2=T&resources1=A:1&resources=B:1&resources2=C:1&group_policy=none", 25)
    assert [group.suffix for group in wanted.groups] == ["2", "1", ""]


def test_below_1_39_only_the_last_required_is_read() -> None:
    """An earlier one may be malformed."""
    (group,) = decode("resources=VCPU:1&required=,,&required=T", 38).groups
    assert group.required == (frozenset({"T"}),)


@pytest.mark.parametrize("query", ["limit=x&limit=1", "limit=1&limit=0"])
def test_every_limit_must_be_good_and_the_first_counts(query: str) -> None:
    """OpenStack Placement checks the last, uses the first, and fails if they differ (D5)."""
    with pytest.raises(Refused):
        decode(f"resources=VCPU:1&{query}", 39)
    assert decode("resources=VCPU:1&limit=7&limit=2", 39).limit == 7


def test_a_request_may_have_64_groups_and_no_more() -> None:
    """The unsuffixed group counts as one."""

    def asked(count: int) -> str:
        suffixed = "&".join(f"resources{n}=VCPU:1" for n in range(1, count))
        return f"resources=VCPU:1&{suffixed}&group_policy=none"

    assert len(decode(asked(64), 39).groups) == 64
    with pytest.raises(Refused, match=r"at most 64 request groups\. Got: 65") as refused:
        decode(asked(65), 39)
    assert (refused.value.status, refused.value.code) == (400, "placement.query.bad_value")


def test_a_request_may_have_400_different_subtrees_and_no_more() -> None:
    """A repeated value counts once."""
    groups = "&".join(f"resources{n}=VCPU:1" for n in range(1, 31)) + "&group_policy=none"
    pairs = [f"&same_subtree={first},{other}" for first, other in combinations(range(1, 31), 2)]
    assert len(decode(groups + "".join(pairs[:400] * 2), 36).same_subtree) == 400
    with pytest.raises(Refused, match=r"at most 400 different `same_subtree` values\. Got: 401"):
        decode(groups + "".join(pairs[:401]), 36)


def test_a_limit_of_thousands_of_digits_limits_nothing() -> None:
    """Python does not convert such a number, and no fleet has that many candidates."""
    assert decode(f"resources=VCPU:1&limit={'9' * 5000}", 39).limit is None


def faulty_examples() -> list[Any]:
    """The recorded examples with a fault in the query itself."""
    examples = json.loads(FIXTURE.read_text())["examples"]
    return [
        pytest.param(example, id=example["id"])
        for example in examples
        if example["expected"]["status"] == 400
        and not example["expected"]["detail_has"].startswith(BY_DATA)
    ]


@pytest.mark.parametrize("example", faulty_examples())
def test_a_fault_is_told_as_the_original_tells_it(example: dict[str, Any]) -> None:
    """The fragment that clients match, and the code."""
    query = example["query"].replace("<agg:g>", A1).replace("<agg:h>", A1)
    query = query.replace("<unknown>", A2).replace("<rp:R>", ROOT)
    with pytest.raises(Refused) as refused:
        decode(query, int(example["microversion"].partition(".")[2]))
    assert refused.value.status == 400
    assert example["expected"]["detail_has"] in refused.value.message
    assert refused.value.code == example["expected"].get("code", refused.value.code)


def test_a_key_is_judged_once_however_often_others_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand limits beside sixty groups are not sixty thousand checks."""
    judged: list[int] = []
    check = Schema.check

    def counting(schema: Schema, value: dict[str, str]) -> None:
        judged.append(len(value))
        check(schema, value)

    monkeypatch.setattr(Schema, "check", counting)
    limits = "".join(f"&limit={number}" for number in range(1, 1001))
    groups = "".join(f"&resources{number}=VCPU:1" for number in range(1, 61))
    assert decode(f"group_policy=none{limits}{groups}", 39).limit == 1
    assert sum(judged) < 5000


@pytest.mark.parametrize("microversion", [16, 24, 25, 39])
def test_each_of_several_limits_is_judged(microversion: int) -> None:
    """The first one is used, so it must be valid too."""
    assert decode("resources=VCPU:1&limit=2&limit=1", microversion).limit == 2
    with pytest.raises(Refused, match="does not match"):
        decode("resources=VCPU:1&limit=x&limit=1", microversion)
