# SPDX-License-Identifier: Apache-2.0
"""Decoding a candidates query: what is read, and the faults that need no data."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from berth.api.allocation_candidates import decode
from berth.api.schema import Schema
from berth.candidates.request import CandidatesRequest, HostConditions, RequestGroup
from tests.api import configured
from tests.api.worlds import provider
from tests.client import Client
from tests.worlds import EXAMPLES_PATH

A1 = "a1111111-1111-1111-1111-111111111111"
A2 = "a2222222-2222-2222-2222-222222222222"
ROOT = "c0000000-0000-0000-0000-000000000000"

#: Faults that only the data shows.
BY_DATA = ("No such trait", "No such resource class")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with three hosts."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    for _ in range(3):
        provider(client, {"VCPU": 8})
    return client


def test_everything_at_once() -> None:
    """Each parameter ends up in its field, normalised; groups stand in the order of their first
    keys, in which unknown names are reported."""
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
    wanted = decode("required2=T&resources1=A:1&resources=B:1&resources2=C:1&group_policy=none", 25)
    assert [group.suffix for group in wanted.groups] == ["2", "1", ""]


def groups(count: int) -> str:
    """A query with so many groups, one of them unsuffixed."""
    suffixed = "&".join(f"resources{number}=VCPU:1" for number in range(1, count))
    return f"resources=VCPU:1&{suffixed}&group_policy=none"


def subtrees(pairs: int) -> str:
    """A query with so many different values of same_subtree, each twice; it has no candidates."""
    names = list(combinations(range(1, 31), 2))[:pairs]
    values = "".join(f"&same_subtree={first},{other}" for first, other in names * 2)
    return f"{groups(31).replace('VCPU:1', 'VCPU:99', 1)}{values}"


@pytest.mark.parametrize(
    ("query", "versions", "status", "says"),
    [
        # Below 1.39 only the last `required` is read.
        ("resources=VCPU:1&required=,,&required=!HW_NUMA_ROOT", ["1.38"], 200, ""),
        # Each limit is judged; OpenStack Placement checks the last and uses the first (D5).
        ("resources=VCPU:1&limit=x&limit=1", ["1.16", "1.24", "1.25", "1.39"], 400, "not match"),
        ("resources=VCPU:1&limit=1&limit=0", ["1.16", "1.39"], 400, "not match"),
        (groups(64).replace("VCPU:1", "VCPU:99", 1), ["1.39"], 200, ""),
        (groups(65), ["1.39"], 400, "at most 64 request groups. Got: 65"),
        (subtrees(400), ["1.36"], 200, ""),
        (subtrees(401), ["1.36"], 400, "at most 400 different `same_subtree` values. Got: 401"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_bounds_and_what_is_repeated(
    fleet: Client, query: str, versions: list[str], status: int, says: str
) -> None:
    """A repeated value counts once."""
    for version in versions:
        answer = fleet.get(f"/allocation_candidates?{query}", version=version)
        assert answer.status == status, answer.text
        assert not says or says in answer.detail
        if "Got" in says:
            assert answer.code == "placement.query.bad_value"


@pytest.mark.parametrize("limits", ["limit=2&limit=1", f"limit={'9' * 5000}"])
def test_the_first_limit_counts(fleet: Client, limits: str) -> None:
    """One of thousands of digits limits nothing: Python does not convert such a number."""
    answer = fleet.get(f"/allocation_candidates?resources=VCPU:1&{limits}").json
    assert len(answer["allocation_requests"]) == (2 if "&" in limits else 3)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=example["id"])
        for example in json.loads(EXAMPLES_PATH.read_text())["examples"]
        if example["expected"]["status"] == 400
        and not example["expected"]["detail_has"].startswith(BY_DATA)
    ],
)
def test_a_fault_is_told_as_the_original_tells_it(fleet: Client, example: dict[str, Any]) -> None:
    """The fragment that clients match, and the code."""
    query = example["query"].replace("<agg:g>", A1).replace("<agg:h>", A1)
    query = query.replace("<unknown>", A2).replace("<rp:R>", ROOT)
    answer = fleet.get(f"/allocation_candidates?{query}", version=example["microversion"])
    assert answer.status == 400
    assert example["expected"]["detail_has"] in answer.detail
    assert answer.code == example["expected"].get("code", answer.code)


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
    assert decode(groups(61) + limits, 39).limit == 1
    assert sum(judged) < 5000
