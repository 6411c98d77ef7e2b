# SPDX-License-Identifier: Apache-2.0
"""Orders, placements and counts by example: one row a rule (spec/beyond.md 2.6, 2.7, 4 and 5.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from berth.candidates import capacity as capacity_package
from berth.candidates import ranking
from berth.candidates.capacity import fragments, packing, per_host
from berth.candidates.capacity.packing import Steps
from berth.candidates.place import pool
from tests.brute_order import strategy
from tests.candidates.engine import ALL, Request, Stand, Standing, wants
from tests.candidates.strategies import Body, new_consumer
from tests.worlds import aggregate_uuid, world

ONE_VCPU = wants("VCPU=1")
SHARES = "MISC_SHARES_VIA_AGGREGATE"


def hosts_and_scores(standing: Standing, request: Request, **body: Any) -> list[tuple[str, float]]:
    """The hosts of candidates in their order, with the scores."""
    answer = standing.ask("candidates", request=request, **{"limit": ALL, **body})
    names = standing.fleet.names
    return [
        (names[each["host"]], each.get("score", {}).get("total", 0.0))
        for each in answer["candidates"]
    ]


FLEET = """
    cn1   VCPU=10(used:8)  MEMORY_MB=100          CUSTOM_GREEN
    cn2   VCPU=10(used:2)  MEMORY_MB=100(used:90)
    cn3   VCPU=10          MEMORY_MB=100          @A
"""
GREEN = {"weight": 1, "required": ["CUSTOM_GREEN"]}
TWO_SHELVES = f"""
    cn1      VCPU=10  @A
    pool     VGPU=10
      shelf  DISK_GB=100(used:50)  CUSTOM_VF=10  {SHARES}  @A
      ssd    DISK_GB=60            CUSTOM_SSD    {SHARES}  @A
"""
OF_SHELVES = wants("VCPU=1; _A DISK_GB=10 CUSTOM_VF=5; _B DISK_GB=20 CUSTOM_SSD")
#: A host with more reserved than there is on one node.
RESERVED = "cn1\n  numa0  VCPU=6(reserved:{})\n  numa1  VCPU=3"


@pytest.mark.parametrize(
    ("drawing", "request_", "order", "due"),
    [
        (FLEET, wants("VCPU=1 MEMORY_MB=10"), order, due)
        for order, due in (
            ({"by": "pack"}, {"cn2": 0.65, "cn1": 0.5, "cn3": 0.1}),
            ({"by": "spread"}, {"cn3": 0.9, "cn1": 0.5, "cn2": 0.35}),
            ({"by": "pack", "classes": {"MEMORY_MB": 0}}, {"cn1": 0.9, "cn2": 0.3, "cn3": 0.1}),
            ({"by": "pack", "prefer": [GREEN]}, {"cn1": 1.5, "cn2": 0.65, "cn3": 0.1}),
            (
                {"by": "pack", "prefer": [{"weight": -1, "member_of": ["!name=x"]}]},
                {"cn2": -0.35, "cn1": -0.5, "cn3": -0.9},
            ),
            (
                {
                    "by": "spread",
                    "weight": 0.1,
                    "prefer": [{"weight": 1, "required": ["!CUSTOM_GREEN"]}],
                },
                {"cn3": 1.09, "cn2": 1.035, "cn1": 0.05},
            ),
            ({"by": "any", "prefer": [{**GREEN, "of": ""}]}, {"cn1": 1, "cn2": 0, "cn3": 0}),
        )
    ]
    + [
        (TWO_SHELVES, OF_SHELVES, {"by": "pack"}, {"cn1": (1 / 10 + 80 / 160 + 5 / 10) / 3}),
        (RESERVED.format(7), ONE_VCPU, {"by": "pack"}, {"cn1": 1 / 3}),
        (RESERVED.format(9), ONE_VCPU, {"by": "pack"}, {"cn1": 1 / 3}),
        ("cn1\n  n0  VCPU=4(used:1)\n  n1  VCPU=4  !d", ONE_VCPU, {"by": "pack"}, {"cn1": 0.5}),
        ("cn1\n  n0  VCPU=4(used:1)\n  n1  VCPU=4  !d", ONE_VCPU, {"by": "spread"}, {"cn1": 0.5}),
        # By the formula of 2.7.
        ("cn1  VCPU=1\ncn2  VCPU=1", ONE_VCPU, {"by": "random", "seed": 7}, None),
    ],
)
def test_candidates_come_in_an_order(
    stand: Stand, drawing: str, request_: Request, order: Body, due: dict[str, float] | None
) -> None:
    """Fullness counts all classes, or those with a weight, and of each the trees that give it once;
    drained nodes and what is reserved beyond the total count nothing. Preferences are added."""
    standing = stand(drawing)
    got = hosts_and_scores(standing, request_, order=order)
    if due is None:
        empty: Any = None
        scores = {h: strategy(standing.fleet, order, empty, h) for h in ("cn1", "cn2")}
        due = dict(sorted(scores.items(), key=lambda each: -each[1]))
    assert dict(got) == pytest.approx(due)
    assert [score for _, score in got] == sorted(dict(got).values(), reverse=True)


def test_the_seed_decides_between_equal_scores(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same seed gives the same order, and another seed another one; at every limit, though the
    search drops candidates between hosts, each of which is of another shape."""
    monkeypatch.setattr(ranking, "KEPT_MAX", 0)
    standing = stand("\n".join(f"cn{n}  VCPU=4  CUSTOM_T{n}" for n in range(40)))
    orders = [{"by": "pack", "seed": seed} for seed in range(10)]
    wholes = [hosts_and_scores(standing, ONE_VCPU, order=order) for order in orders]
    assert len({tuple(whole) for whole in wholes}) == 10
    for order, whole in zip(orders, wholes, strict=True):
        assert hosts_and_scores(standing, ONE_VCPU, order=order) == whole
        for limit in (1, 10):
            some = hosts_and_scores(standing, ONE_VCPU, order=order, limit=limit)
            assert some == whole[:limit]


def test_among_scores_only_so_many_hosts(stand: Stand) -> None:
    """All candidates of each, and other hosts for another seed; and the only one that fits, where
    it is the first of the fleet, and the search goes on there after the last one."""
    standing = stand("\n".join(f"cn{n}\n  a{n}  VCPU=4\n  b{n}  VCPU=4(used:1)" for n in range(40)))
    seen: set[str] = set()
    for seed in range(10):
        order = {"by": "pack", "among": 7, "seed": seed}
        hosts = Counter(host for host, _ in hosts_and_scores(standing, ONE_VCPU, order=order))
        assert [*hosts.values()] == [2] * 7
        seen.update(hosts)
    assert len(seen) > 20
    order = {"by": "any", "among": 7}
    assert len(hosts_and_scores(standing, ONE_VCPU, order=order)) == 14
    standing = stand("\n".join(f"cn{n}  VCPU=4(used:{4 * (n > 0)})" for n in range(8)))
    for seed in range(10):
        order = {"by": "pack", "among": 1, "seed": seed}
        assert [h for h, _ in hosts_and_scores(standing, ONE_VCPU, order=order)] == ["cn0"]


# --- Placements

POOLED = f"""
    cn1    VCPU=4  @A  @r1
    cn2    VCPU=4  @A  @r1
    cn3    VCPU=4  @B  @r2
    cn4    VCPU=4  @B  @r2
    pool1  DISK_GB=3  {SHARES}  @A
    pool2  DISK_GB=9  {SHARES}  @B
"""
#: The rack has the disks, and neither the processors nor the host that they serve.
RACK_OF_DISKS = f"""
    cn1     @A
    cpus    VCPU=8  {SHARES}  @A
    disks1  DISK_GB=3  {SHARES}  @A  @r1
    disks2  DISK_GB=4  {SHARES}  @A  @r1
"""
#: The pool gives the first amount alone, and cn2 is the host; the second comes from the pool and
#: its part, which is the pool's own. Found by brute force, with BERTH_SEED=1 BERTH_EFFORT=15.
DIVIDED = f"cn2  @A\npool  VCPU=7  {SHARES}  @A\n  part  VCPU=3"
DISK_FIRST, ONE_DISK = wants("DISK_GB=1 VCPU=1"), wants("VCPU=1 DISK_GB=1")
RACK = {"within": "rack"}


def per(**most: int) -> Body:
    """`max_per`."""
    return {"max_per": most}


@pytest.mark.parametrize(
    ("drawing", "request_", "limits", "most"),
    [
        # 3 of pool1, and 8 of the VCPUs beside pool2.
        (POOLED, ONE_DISK, {}, 11),
        # 3 of the 4 that cn1 and cn2 may have.
        (POOLED, ONE_DISK, per(host=2), 7),
        (POOLED, ONE_DISK, per(host=1), 4),
        (POOLED, ONE_DISK, RACK, 8),
        (POOLED, ONE_DISK, per(host=1) | RACK, 2),
        (POOLED, ONE_DISK, {"within": "host"}, 4),
        (RACK_OF_DISKS, DISK_FIRST, RACK, 7),
        (RACK_OF_DISKS, DISK_FIRST, per(host=1), 1),
        (DIVIDED, wants("VCPU=4/min:2,parts:2"), per(host=1), 2),
    ],
)
@pytest.mark.parametrize("scored_max", [1, 64])
def test_no_more_than_these_can_be_placed(
    stand: Stand,
    monkeypatch: pytest.MonkeyPatch,
    drawing: str,
    request_: Request,
    limits: Body,
    most: int,
    scored_max: int,
) -> None:
    """What hosts share, the ways in which they serve a request, and limits count together, and not
    how many candidates are looked at. A refusal says how many could be placed."""
    for module in (pool, ranking):
        monkeypatch.setattr(module, "SCORED_PER_HOST_MAX", scored_max)
    standing = stand(replace(world(drawing), labels={"r1": {"rack": "r1"}, "r2": {"rack": "r2"}}))
    body = {"request": request_, "order": {"by": "spread", "among": 512}, "explain": False}

    def place(count: int) -> Any:
        consumers = [new_consumer(f"c{number}") for number in range(count)]
        sent = {**body, **limits, "consumers": consumers}
        return standing.client.post("/berth/v1/place?dry_run=true", json=sent)

    (error,) = place(most + 1).json["errors"]
    if scored_max == 1 and drawing == RACK_OF_DISKS:
        # What could be placed beside other disks is not looked at.
        assert error["code"] in ("berth.place.undecided", "berth.place.does_not_fit")
        return
    assert (error["code"], error["at_most"]) == ("berth.place.does_not_fit", most)
    if scored_max > 1:
        assert place(most).status == 200


@pytest.mark.parametrize(
    ("drawing", "order", "hosts"),
    [
        # The others have room too, if few are scored.
        ("\n".join(f"cn{n}  VCPU=1" for n in range(8)), {"by": "spread", "among": 1}, 4),
        # The first costs no room for the flavor, and a second one beside it would.
        (
            "\n".join(f"cn{n}  VCPU=5" for n in range(4)),
            {"by": "preserve", "preserve": {"large": 1}},
            4,
        ),
    ],
)
def test_consumers_are_spread_over_hosts(
    stand: Stand, drawing: str, order: Body, hosts: int
) -> None:
    """Each of four is on a host of its own."""
    standing = stand(replace(world(drawing), flavors={"large": wants("VCPU=4")}))
    consumers = [new_consumer(f"c{number}") for number in range(4)]
    answer = standing.ask("place", request=ONE_VCPU, consumers=consumers, order=order)
    assert len({each["host"] for each in answer["placements"].values()}) == hosts


# --- Counts

FILLED = f"cn1  VCPU=9  @A\ncn2  VCPU=9  @A\npool  DISK_GB=100  CUSTOM_VF=3  {SHARES}  @A"
APART = wants("_A VCPU=1; _B VCPU=1", apart="_A _B at provider")


@pytest.mark.parametrize(
    ("drawing", "request_", "most"),
    [
        # Two hosts of two VCPUs each, and a pool for a hundred; one of three hosts has another.
        (
            f"cn1  VCPU=2  @A\ncn2  VCPU=2  @A\ncn3  VCPU=9  @B\npool1  DISK_GB=100  {SHARES}  @A\n"
            f"pool2  DISK_GB=5  {SHARES}  @B",
            ONE_DISK,
            9,
        ),
        # Both classes come from the pool: it has a hundred of one, and three of the other.
        (FILLED, wants("VCPU=1; _P DISK_GB=1 CUSTOM_VF=1"), 3),
        # The root of cn1 is a pool too: what it gives to cn2 is gone for itself.
        (f"cn1  VCPU=4  {SHARES}  @A\ncn2  @A\ndisks  DISK_GB=100  {SHARES}  @A", ONE_DISK, 4),
        # The disk with the trait is for the group that needs it, the pool for the other one.
        (
            f"cn1  DISK_GB=2  CUSTOM_T  @A\npool  DISK_GB=2  {SHARES}  @A",
            wants("_A DISK_GB=1; _B DISK_GB=1 CUSTOM_T"),
            2,
        ),
        # cn1 uses the other pool and leaves the only one of cn2.
        (
            f"cn1  VCPU=4  @A  @B\ncn2  VCPU=4  @A\npool1  DISK_GB=4  {SHARES}  @A\n"
            f"pool2  DISK_GB=4  {SHARES}  @B",
            ONE_DISK,
            8,
        ),
        # Each placement takes of both pools.
        (
            f"cn1  VCPU=9  @A\npool1  DISK_GB=10  {SHARES}  @A\npool2  DISK_GB=3  {SHARES}  @A",
            wants("VCPU=1; _A DISK_GB=1; _B DISK_GB=1", apart="_A _B at provider"),
            3,
        ),
        # Two groups share the processors of the host.
        ("cn1  VCPU=8", wants("_A VCPU=1; _B VCPU=1"), 4),
        # One way takes more than another, and the second finds what the first has left.
        ("cn1\n  a  VCPU=5\n  b  VCPU=4", wants("_A VCPU=2; _B VCPU=1"), 3),
        # 3, 3 and 2 + 2.
        ("cn1\n  a  VCPU=5\n  b  VCPU=5", wants("VCPU=3/"), 3),
    ],
)
def test_exactly_so_often_a_request_fits(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, drawing: str, request_: Request, most: int
) -> None:
    """What several ways, hosts and pools hold together; bounds are true also where the ways are too
    many to list."""
    standing = stand(drawing)
    got = standing.ask("capacity", requests={"r": request_})["flavors"]["r"]
    assert (got["count"], got["at_most"]) == (most, most)
    standing.forget()
    for module in (per_host, packing, fragments):
        monkeypatch.setattr(module, "WAYS_MAX", 1)
    got = standing.ask("capacity", requests={"r": request_})["flavors"]["r"]
    assert got["count"] <= most <= got["at_most"]


@pytest.mark.parametrize("ways", [64, 65])
def test_no_way_of_a_host_with_many_is_left_out(stand: Stand, ways: int) -> None:
    """Whether they are as many as are listed, or one more."""
    devices = "\n".join(f"  d{number}  VCPU=1" for number in range(ways))
    got = stand(f"cn1\n{devices}").ask("capacity", requests={"r": ONE_VCPU})["flavors"]["r"]
    assert (got["count"], got["at_most"]) == (ways, ways)


def test_a_count_for_which_the_steps_did_not_suffice_is_not_exact(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the pairs of three nodes is a way: seven fit, and the first way alone has five."""
    monkeypatch.setattr(capacity_package, "Steps", partial(Steps, left=1))
    standing = stand("cn1\n  numa0  VCPU=5\n  numa1  VCPU=5\n  numa2  VCPU=5")
    got = standing.ask("capacity", requests={"r": APART})["flavors"]["r"]
    assert got["count"] < 7 <= got["at_most"]
    assert not got["exact"]


def test_a_count_of_two_thousand_million_units_takes_no_longer(stand: Stand) -> None:
    """What is left for the last way is taken at once, and not tried one unit less each time, which
    nothing ended. The most is a fifth of what the second device has of VGPU."""
    standing = stand("cn1\n  a  VGPU=2147483646\n  b  VGPU=2147483641  PGPU=2147483644")
    asked = wants("_A PGPU=4 VGPU=5; _B VGPU=3")
    got = standing.ask("capacity", requests={"r": asked})["flavors"]["r"]
    assert got["count"] <= 2147483641 // 5 <= got["at_most"]


def test_parts_are_no_multiples_of_what_another_group_takes(stand: Stand) -> None:
    """Two fit, if both pairs are left to _A; a part of _B may be one."""
    ones = "\n".join(f"  one{number}  VCPU=1" for number in range(6))
    standing = stand(f"cn1\n  pair0  VCPU=2\n  pair1  VCPU=2\n{ones}")
    request = wants("_A VCPU=2; _B VCPU=3/parts:3")
    assert standing.ask("capacity", requests={"r": request})["flavors"]["r"]["at_most"] >= 2


@pytest.mark.parametrize(
    ("drawing", "request_", "usable", "due"),
    [
        # A host that can only give three at a time cannot give two.
        ("cn1  VCPU=8(used:2,step:3)", wants("_A VCPU=2/min:2"), 0, 6),
        # Only the host with most room is looked at first, and it lacks the trait.
        (
            "cn1\n  numa0  VCPU=9\ncn2\n  numa1  VCPU=4  CUSTOM_T",
            wants("VCPU=1 CUSTOM_T"),
            *(4, 4),
        ),
        # One provider serves both: next to the one that _A takes, _B could have seven.
        ("cn1  VCPU=8", wants("_A VCPU=1; _B VCPU=3"), 8, 7),
    ],
)
def test_the_largest_amount(
    stand: Stand,
    monkeypatch: pytest.MonkeyPatch,
    drawing: str,
    request_: Request,
    usable: int,
    due: int,
) -> None:
    """That any one group could ask for, all else as it is; and what all of them can use (4.3)."""
    monkeypatch.setattr(fragments, "_FIRST", 1)
    got = stand(drawing).ask("capacity", requests={"r": request_})["flavors"]["r"]
    of_class = got["classes"]["VCPU"]
    assert (of_class["usable"], of_class["largest"]) == (usable, due)


@pytest.mark.parametrize(
    ("drawing", "what_if", "due"),
    [
        # A ratio is assumed of hosts whose root is in one aggregate, and not in another one.
        (
            "a  VCPU=4  @A\nab  VCPU=4  @A @B\nb  VCPU=4  @B\n  b0  @A\nn  VCPU=4\n  n0  @A",
            {
                "allocation_ratio": [
                    {
                        "resource_class": "VCPU",
                        "ratio": 2.0,
                        "member_of": [aggregate_uuid("A"), f"!{aggregate_uuid('B')}"],
                    }
                ]
            },
            {"a": 8, "ab": 4, "b": 4, "n": 4},
        ),
        # Copies of a drained host are not drained.
        (
            "cn1  VCPU=4  !d\ncn2  VCPU=3",
            {"add_hosts": [{"like": "cn1", "count": 2}]},
            {"cn1": 0, "cn1#1": 4, "cn1#2": 4, "cn2": 3},
        ),
    ],
)
def test_what_a_scenario_changes(
    stand: Stand, drawing: str, what_if: Body, due: dict[str, int]
) -> None:
    """How often one VCPU would fit on each host (4.4)."""
    body = {"requests": {"r": ONE_VCPU}, "by": ["host"], "what_if": what_if}
    hosts = stand(drawing).ask("capacity", **body)["flavors"]["r"]["by"]["host"]
    assert {each["name"]: each["count"] for each in hosts.values()} == due
