# SPDX-License-Identifier: Apache-2.0
"""Orders of candidates: scores against plain loops, and the order against sorting by these.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.6 and 2.7.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.candidates import assignments, ranking
from tests.brute_order import Order, score, strategy
from tests.brute_place import Placed, places
from tests.brute_question import Request, find, tolerated
from tests.candidates.engine import snapshot_of
from tests.candidates.orders import Shown, orders, shown
from tests.candidates.question_strategies import fleets_with_requests
from tests.candidates.test_questions_against_brute_force import check, tell
from tests.effort import SEED, scaled
from tests.worlds import World, world

TOLERANCE = 1e-9


@seed(SEED)
@settings(max_examples=scaled(30))
@given(fleets_with_requests(), st.data())
def test_candidates_have_the_scores_of_plain_loops_and_come_in_their_order(
    prepared: Path, asked: tuple[World, list[Request]], data: st.DataObject
) -> None:
    """All of them, and the best of them with a limit and a bound of each host; whether the search
    tries all combinations or walks, and however few candidates it keeps meanwhile."""
    fleet, requests = asked
    tell(fleet)
    with snapshot_of(fleet, prepared) as snapshot:
        for request in requests:
            stored = fleet.flavors.get(request.get("flavor", ""), request)
            groups, tolerant = stored["groups"], fleet.tolerating(tolerated([stored, request]))
            order = data.draw(orders([*groups]))
            limit, per_host = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
            note(json.dumps([request, order, limit, per_host]))
            every, more = shown(snapshot, fleet, request, order)
            assert not more
            check(find(fleet, request), [each.candidate for each in every])
            due_hosts = set(places(fleet, request))
            for each in every:
                assert Placed(each.candidate, each.host) in due_hosts
                check_score(tolerant, order, each)
            scores = [total(each) for each in every]
            assert scores == sorted(scores, reverse=True)
            for kept_max in (ranking.KEPT_MAX, 0):
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(ranking, "KEPT_MAX", kept_max)
                    patched.setattr(assignments, "ASSIGNMENTS_MAX", kept_max)
                    best, more = shown(snapshot, fleet, request, order, limit=limit)
                    assert hosts_and_scores(best) == hosts_and_scores(every)[:limit] or not scored(
                        order
                    )
                    assert (len(best), more) == (min(limit, len(every)), len(every) > limit)
                    of_hosts = first_of_hosts(every, per_host)
                    best, more = shown(
                        snapshot, fleet, request, order, limit=limit, per_host=per_host
                    )
                    due = of_hosts[:limit]
                    assert hosts_and_scores(best) == hosts_and_scores(due) or not scored(order)
                    assert (len(best), more) == (len(due), len(every) > len(due))
                    assert max(Counter(each.host for each in best).values(), default=0) <= per_host


def scored(order: Order) -> bool:
    """Whether candidates have scores."""
    return order["by"] != "any" or bool(order.get("prefer"))


def total(each: Shown) -> float:
    """The score of a candidate; 0 without one."""
    return float(each.score["total"]) if each.score else 0.0


def hosts_and_scores(several: list[Shown]) -> list[tuple[str, float]]:
    """What the order of candidates depends on."""
    return [(each.host, total(each)) for each in several]


def first_of_hosts(several: list[Shown], per_host: int) -> list[Shown]:
    """The first candidates of each host."""
    counts: Counter[str] = Counter()
    first = []
    for each in several:
        counts[each.host] += 1
        if counts[each.host] <= per_host:
            first.append(each)
    return first


def check_score(fleet: World, order: Order, each: Shown) -> None:
    """The total, and what it consists of."""
    if not scored(order):
        assert each.score is None
        return
    assert each.score is not None
    due = score(fleet, order, each.candidate, each.host)
    assert each.score["total"] == pytest.approx(due, rel=TOLERANCE, abs=TOLERANCE)
    by = order["by"]
    assert set(each.score) == {"total", "prefer"} | ({by} - {"any"})
    if by != "any":
        due = strategy(fleet, order, each.candidate, each.host)
        assert each.score[by] == pytest.approx(due, abs=TOLERANCE)
    weights = [preference["weight"] for preference in order.get("prefer", ())]
    for weight, added in zip(weights, each.score["prefer"], strict=True):
        assert added in (0, weight)


FLEET = world("""
    cn1   VCPU=10(used:8)  MEMORY_MB=100          CUSTOM_GREEN
    cn2   VCPU=10(used:2)  MEMORY_MB=100(used:90)
    cn3   VCPU=10          MEMORY_MB=100          @A
""")
VCPU: Request = {"groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 10}}}}


@pytest.mark.parametrize(
    ("order", "due"),
    [
        ({"by": "pack"}, ["cn2", "cn1", "cn3"]),
        ({"by": "spread"}, ["cn3", "cn1", "cn2"]),
        ({"by": "pack", "classes": {"MEMORY_MB": 0}}, ["cn1", "cn2", "cn3"]),
        ({"by": "pack", "prefer": [{"weight": 1, "required": ["CUSTOM_GREEN"]}]}, "cn1 cn2 cn3"),
        ({"by": "pack", "prefer": [{"weight": -1, "member_of": ["!name=x"]}]}, "cn2 cn1 cn3"),
        (
            {
                "by": "spread",
                "weight": 0.1,
                "prefer": [{"weight": 1, "required": ["!CUSTOM_GREEN"]}],
            },
            "cn3 cn2 cn1",
        ),
        (
            {"by": "any", "prefer": [{"weight": 1, "of": "", "required": ["CUSTOM_GREEN"]}]},
            "cn1",
        ),
    ],
    ids=str,
)
def test_the_order_by_example(prepared: Path, order: Order, due: list[str] | str) -> None:
    """Fullness counts all classes, or those with a weight; preferences are added."""
    with snapshot_of(FLEET, prepared) as snapshot:
        several, _ = shown(snapshot, FLEET, VCPU, order)
    hosts = due.split() if isinstance(due, str) else due
    assert [each.host for each in several][: len(hosts)] == hosts


def test_a_pools_fullness_counts_where_its_disk_is_used(prepared: Path) -> None:
    """Of each class, the trees that give it count."""
    fleet = world("""
        cn1   VCPU=10  DISK_GB=100(used:80)  @A
        pool  DISK_GB=100(used:10)  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    request: Request = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 10}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        several, _ = shown(snapshot, fleet, request, {"by": "pack"})
    assert [each.score and each.score["pack"] for each in several] == [
        pytest.approx((0.1 + 0.9) / 2),
        pytest.approx((0.1 + 0.2) / 2),
    ]


def test_a_pool_counts_once_however_much_of_it_gives(prepared: Path) -> None:
    """Two shelves of one pool give the same class, and one of them gives two classes."""
    fleet = world("""
        cn1      VCPU=10  @A
        pool     VGPU=10
          shelf  DISK_GB=100(used:50)  CUSTOM_VF=10  MISC_SHARES_VIA_AGGREGATE  @A
          ssd    DISK_GB=60            CUSTOM_SSD    MISC_SHARES_VIA_AGGREGATE  @A
    """)
    request: Request = {
        "groups": {
            "": {"resources": {"VCPU": 1}},
            "_A": {"resources": {"DISK_GB": 10, "CUSTOM_VF": 5}},
            "_B": {"resources": {"DISK_GB": 20}, "required": ["CUSTOM_SSD"]},
        }
    }
    with snapshot_of(fleet, prepared) as snapshot:
        ((each,), _) = shown(snapshot, fleet, request, {"by": "pack"})
    check_score(fleet, {"by": "pack"}, each)
    assert each.score is not None
    assert each.score["pack"] == pytest.approx((1 / 10 + 80 / 160 + 5 / 10) / 3)


@pytest.mark.parametrize("reserved", [7, 9])
def test_what_is_reserved_beyond_the_total_takes_nothing_from_others(
    prepared: Path, reserved: int
) -> None:
    """Of one node, of what the other has; once the sum was 0, and nothing was placed by `pack`."""
    fleet = world(f"""
        cn1
          cn1_numa0  VCPU=6(reserved:{reserved})
          cn1_numa1  VCPU=3
    """)
    with snapshot_of(fleet, prepared) as snapshot:
        request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
        ((each,), _) = shown(snapshot, fleet, request, {"by": "pack"})
    check_score(fleet, {"by": "pack"}, each)
    assert each.score is not None
    assert each.score["pack"] == pytest.approx(1 / 3)


def test_the_seed_decides_between_equal_scores(prepared: Path) -> None:
    """The same seed gives the same order, and another seed another one."""
    fleet = world("\n".join(f"cn{number}  VCPU=4" for number in range(40)))
    request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    with snapshot_of(fleet, prepared) as snapshot:

        def first(seed: int) -> list[str]:
            order = {"by": "pack", "seed": seed}
            return [each.host for each in shown(snapshot, fleet, request, order, limit=10)[0]]

        assert first(1) == first(1)
        assert len({tuple(first(seed)) for seed in range(20)}) == 20


def test_drained_nodes_count_neither_as_used_nor_as_there(prepared: Path) -> None:
    """With what is asked, the only node that counts is half full."""
    fleet = world("cn1\n  numa0  VCPU=4(used:1)\n  numa1  VCPU=4  !d")
    request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        for by in ("pack", "spread"):
            (only,), _ = shown(snapshot, fleet, request, {"by": by})
            assert total(only) == 0.5


def test_hosts_of_equal_scores_are_the_same_at_every_limit(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each host is of another shape, and the search drops candidates between them."""
    monkeypatch.setattr(ranking, "KEPT_MAX", 0)
    fleet = world("\n".join(f"cn{n}  VCPU=4  CUSTOM_T{n}" for n in range(8)))
    request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        for seed_ in range(10):
            order = {"by": "pack", "seed": seed_}
            every, _ = shown(snapshot, fleet, request, order)
            best, _ = shown(snapshot, fleet, request, order, limit=1)
            assert hosts_and_scores(best) == hosts_and_scores(every)[:1]


def test_among_scores_only_so_many_hosts(prepared: Path) -> None:
    """All candidates of each, and other hosts for another seed."""
    fleet = world("\n".join(f"cn{n}\n  a{n}  VCPU=4\n  b{n}  VCPU=4(used:1)" for n in range(40)))
    request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        seen: set[str] = set()
        for seed_ in range(10):
            order = {"by": "pack", "among": 7, "seed": seed_}
            several, more = shown(snapshot, fleet, request, order)
            assert (len(several), more) == (14, False)
            assert set(Counter(each.host for each in several).values()) == {2}
            seen.update(each.host for each in several)
        assert len(seen) > 20
        assert len(shown(snapshot, fleet, request, {"by": "any", "among": 7})[0]) == 14


def test_among_finds_the_only_host_wherever_the_search_begins(prepared: Path) -> None:
    """It is the first of the fleet, and the search goes on there after the last one."""
    fleet = world("\n".join(f"cn{n}  VCPU=4(used:{4 * (n > 0)})" for n in range(8)))
    request: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        for seed_ in range(10):
            order = {"by": "pack", "among": 1, "seed": seed_}
            several, _ = shown(snapshot, fleet, request, order)
            assert [each.host for each in several] == ["cn0"]


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_the_bound_of_scored_candidates_of_a_host(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """Each host has some candidates, and the answer says that there are more."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    monkeypatch.setattr(ranking, "SCORED_PER_HOST_MAX", 5)
    fleet = world(
        "\n".join(
            f"cn{number}\n" + "\n".join(f"  p{number}{child}  VGPU=1" for child in range(4))
            for number in range(3)
        )
    )
    group = {"resources": {"VGPU": 1}}
    request: Request = {"groups": {"_A": group, "_B": group}}
    with snapshot_of(fleet, prepared) as snapshot:
        several, more = shown(snapshot, fleet, request, {"by": "pack"})
        assert Counter(each.host for each in several) == {"cn0": 5, "cn1": 5, "cn2": 5}
        assert more
        assert len({each.candidate for each in several}) == 15
