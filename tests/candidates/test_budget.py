# SPDX-License-Identifier: Apache-2.0
"""Every search ends, and one that is ended early never reports that nothing fits.

The clock of these tests counts its calls, so a "second" is one step of the search.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations, count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from berth.candidates import Budget, filter, find_candidates
from berth.candidates.node_tests import NodeAnswer, NodeTests
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.shape_tests import ShapeTests, shape_tests
from berth.config import load
from berth.deploy import load_application
from berth.index import Snapshot
from berth.index.memory import Memory
from berth.index.shape import NodeType, Shape
from berth.model.errors import SearchGaveUp, UnknownTraits
from tests.brute_force import answer
from tests.candidates.engine import ask, ask_with, form_at, request_of, snapshot_of
from tests.client import Client
from tests.queries import Query, parse_query
from tests.worlds import World, world

STEPS = 400

WAYS = (
    SearchSettings(),
    SearchSettings(candidates_max=50),
    SearchSettings(candidates_max=50, strategy="breadth-first"),
    SearchSettings(randomize=True),
)


def counted(steps: int, *, answer_bytes_max: int = 0) -> Budget:
    """A budget of this many calls of the clock."""
    looks = count()
    return Budget(lambda: next(looks), seconds=steps, answer_bytes_max=answer_bytes_max)


def devices(number: int, resources: str) -> World:
    """A host with identical children."""
    return world("host\n" + "\n".join(f"  device{n}  {resources}" for n in range(number)))


def groups(*wanted: str) -> str:
    """Suffixed groups."""
    return "&".join(f"resources_{number}={resources}" for number, resources in enumerate(wanted))


SIXTEEN = devices(64, "VGPU=1"), groups(*["VGPU:1"] * 16) + "&group_policy=isolate"

#: Sums say that it could be; only trying tells that no device has room for three.
BINS = (
    devices(12, "VCPU=1000"),
    groups(*(f"VCPU:{amount}" for amount in range(334, 364))) + "&group_policy=none",
)

PAIRS = (
    devices(40, "VGPU=1000"),
    groups(*["VGPU:1"] * 500)
    + "&group_policy=none&"
    + "&".join(
        f"same_subtree=_{first},_{other}"
        for first, other in list(combinations(range(500), 2))[:5000]
    )
    + "&in_tree_0=<rp:device0>&required_499=!HW_NUMA_ROOT",
)


@contextmanager
def asked(
    story: tuple[World, str], prepared: Path, *, limit: int | None
) -> Iterator[tuple[World, Snapshot, Query]]:
    """The world of a case, as a snapshot, and its query."""
    fleet, text = story
    query = parse_query(text + (f"&limit={limit}" if limit else ""), 39)
    with snapshot_of(fleet, prepared) as snapshot:
        yield fleet, snapshot, query


def find(
    snapshot: Snapshot, query: Query, budget: Budget, *, chosen: SearchSettings = WAYS[0]
) -> bytes:
    """The body that a search returns within a budget."""
    return bytes(
        find_candidates(
            snapshot,
            request_of(query),
            settings=chosen,
            form=form_at(39),
            rng=Random(0),
            budget=budget,
        )
    )


@pytest.mark.parametrize("chosen", WAYS, ids=str)
def test_packing_bins_is_given_up(prepared: Path, chosen: SearchSettings) -> None:
    """If no candidate was found in time, it is an error and not an empty answer; the message says
    what helps."""
    with asked(BINS, prepared, limit=10) as (_, snapshot, query):
        budget = counted(STEPS)
        with pytest.raises(SearchGaveUp, match=r"after 400 s.*not mean that nothing fits.*in_tree"):
            find(snapshot, query, budget, chosen=chosen)
    assert budget.ended == "time"


def test_thousands_of_subtrees_are_given_up_or_answered(prepared: Path) -> None:
    """Five hundred groups in five thousand pairs: the walk ends when the time is over."""
    with asked(PAIRS, prepared, limit=10) as (_, snapshot, query):
        budget = counted(STEPS)
        with pytest.raises(SearchGaveUp):
            find(snapshot, query, budget)


@pytest.mark.parametrize("chosen", [WAYS[0], WAYS[3]], ids=str)
def test_what_was_found_in_time_is_answered(prepared: Path, chosen: SearchSettings) -> None:
    """Without a limit, 16 groups on 64 devices have more assignments than can be returned; those
    that were found in time are returned."""
    with asked(SIXTEEN, prepared, limit=None) as (_, snapshot, query):
        budget = counted(STEPS)
        candidates = json.loads(find(snapshot, query, budget, chosen=chosen))["allocation_requests"]
    assert budget.ended == "time"
    assert 0 < len(candidates) < STEPS
    assert len({json.dumps(candidate) for candidate in candidates}) == len(candidates)


def test_an_answer_is_no_larger_than_there_is_room_for(prepared: Path) -> None:
    """The response ends with the candidate that reaches the limit of its size."""
    with asked(SIXTEEN, prepared, limit=None) as (_, snapshot, query):
        budget = counted(10**9, answer_bytes_max=100_000)
        candidates = json.loads(find(snapshot, query, budget))["allocation_requests"]
    assert budget.ended == "size"
    length = len(json.dumps(candidates[0]))
    assert 100_000 - length <= length * len(candidates) <= 100_000 + length


def test_blocks_of_trees_that_do_not_fit_use_up_the_time_too(prepared: Path) -> None:
    """The clock is checked for each part of the fleet, even if none has a candidate."""
    fleet = world("\n".join(f"host{n}  VCPU=8(used:8)  CUSTOM_T{n}" for n in range(20)))
    with snapshot_of(fleet, prepared) as snapshot, pytest.raises(SearchGaveUp):
        find(snapshot, parse_query("resources=VCPU:1", 39), counted(10))


#: Twenty trees of twenty shapes, whose nodes are of five kinds; each has a place for every group.
TWENTY_SHAPES = world(
    "\n".join(
        f"host{number}  DISK_GB=8\n"
        + "\n".join(
            f"  host{number}_{place}  VCPU=8  CUSTOM_T{place if number >> place & 1 else 'X'}"
            for place in range(5)
        )
        for number in range(20)
    ),
    traits=" ".join(f"CUSTOM_T{place}" for place in range(5)),
)
MANY_GROUPS = (
    "resources=DISK_GB:9&group_policy=none&same_subtree="
    + ",".join(f"_{number}" for number in range(40))
    + "".join(f"&required_{n}=in:CUSTOM_TX,CUSTOM_T{n % 5}" for n in range(40))
)


def test_time_that_is_over_does_not_hide_an_unknown_name(prepared: Path) -> None:
    """The time ends before the second group is tested, but its unknown class is still reported."""
    fleet = world("host  VCPU=8")
    query = parse_query("resources=VCPU:1&resources_A=VCPU:1&required_A=CUSTOM_NOBODYS", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        budget = counted(1)
        with pytest.raises(UnknownTraits):
            find(snapshot, query, budget)
    assert budget.ended == "time"


def test_each_shape_uses_up_time_before_it_is_tested(prepared: Path) -> None:
    """Groups without resources, on trees that all have different shapes: this once took 130 s."""
    query = parse_query(MANY_GROUPS, 39)
    tested: list[Shape] = []

    def counting(plan: Plan, shape: Shape, *more: Any) -> ShapeTests:
        tested.append(shape)
        return shape_tests(plan, shape, *more)

    with snapshot_of(TWENTY_SHAPES, prepared) as snapshot, pytest.MonkeyPatch.context() as patched:
        patched.setattr(filter, "shape_tests", counting)
        with pytest.raises(SearchGaveUp):
            find(snapshot, query, counted(5))
        assert len(tested) <= 1
        tested.clear()
        assert json.loads(find(snapshot, query, Budget()))["allocation_requests"] == []
    assert len(tested) == 20


def test_the_tests_of_one_shape_end_with_the_time_and_leave_nothing_behind(prepared: Path) -> None:
    """Tests of a shape that were cut short are not cached: a later request gets its candidates."""
    query = parse_query(MANY_GROUPS.replace("DISK_GB:9", "DISK_GB:8"), 39)
    with snapshot_of(TWENTY_SHAPES, prepared) as snapshot:
        again = partial(
            find_candidates,
            snapshot,
            request_of(query),
            settings=WAYS[0],
            form=form_at(39),
            rng=Random(0),
        )
        for steps in (2, 20, 40):
            with pytest.raises(SearchGaveUp):
                again(budget=counted(steps))
        assert again() == find(snapshot, query, Budget())
        assert len(json.loads(bytes(again()))["allocation_requests"]) > 20


def test_a_kind_of_node_is_judged_once_however_many_shapes_have_it(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty shapes share six node types: the traits are tested at most six times."""
    judged: list[NodeType] = []
    answer_of = NodeTests._answer

    def counting(self: NodeTests, node_type: NodeType) -> NodeAnswer:
        judged.append(node_type)
        return answer_of(self, node_type)

    monkeypatch.setattr(NodeTests, "_answer", counting)
    with snapshot_of(TWENTY_SHAPES, prepared) as snapshot:
        find(snapshot, parse_query(MANY_GROUPS, 39), Budget())
        shapes = {block.shape for _, block in snapshot.occupied()}
    assert len(shapes) == 20
    assert (
        len(judged)
        == len(set(judged))
        == len({each for shape in shapes for each in shape.node_types})
    )


def test_what_searches_keep_is_bounded(prepared: Path) -> None:
    """A memory that is full drops everything, and the answers stay the same."""
    queries = [parse_query(f"resources=DISK_GB:{n},VCPU:{n}", 39) for n in (1, 2, 3)]
    memory = Memory(30_000)
    with snapshot_of(TWENTY_SHAPES, prepared, memory=memory) as snapshot:
        for query in [*queries, *queries]:
            assert ask(snapshot, TWENTY_SHAPES, query, 39) == answer(TWENTY_SHAPES, query, 39)
            assert 0 < kept_bytes(memory) <= 30_000
    with snapshot_of(TWENTY_SHAPES, prepared) as snapshot:
        for query in queries:
            ask(snapshot, TWENTY_SHAPES, query, 39)
        assert kept_bytes(snapshot.memory) > 60_000, "the bound above has not been met"


def kept_bytes(memory: Memory) -> int:
    """The size of all values in a memory, except texts of trees."""
    values: list[dict[Any, Any]] = [memory._values, *memory._tables.values()]
    return sum(sizes(each) for kept in values for each in kept.values())


def sizes(value: Any) -> int:
    """The size of one value: scopes are small, and assignments are stored several at once."""
    if isinstance(value, tuple) and not hasattr(value, "size"):
        return sum(getattr(each, "size", 0) for each in value)
    return getattr(value, "size", 0)


def test_many_plans_are_bounded(prepared: Path) -> None:
    """The plans of any number of different requests stay within the limit of the memory."""
    requests = [request_of(parse_query(f"resources=VCPU:1&limit={n}", 39)) for n in range(1, 41)]
    counts = []
    memory = Memory(100_000)
    with snapshot_of(TWENTY_SHAPES, prepared, memory=memory) as snapshot:
        for request in requests:
            ask_with(snapshot, request, form_at(39))
            assert kept_bytes(memory) <= 100_000
            counts.append(sum(isinstance(each, Plan) for each in memory._values.values()))
    assert 1 < max(counts) < len(requests)


def test_a_plan_that_is_larger_than_the_memory_is_not_kept(prepared: Path) -> None:
    """The request is answered without the cache."""
    query = parse_query("resources=VCPU:1", 39)
    memory = Memory(10)
    with snapshot_of(TWENTY_SHAPES, prepared, memory=memory) as snapshot:
        assert ask(snapshot, TWENTY_SHAPES, query, 39) == answer(TWENTY_SHAPES, query, 39)
        assert kept_bytes(memory) == 0


def test_a_search_whose_client_has_gone_ends(prepared: Path) -> None:
    """The search checks for a disconnected client four times a second by its own clock, not at
    every step."""
    looks: list[int] = []

    def gone() -> bool:
        looks.append(1)
        return len(looks) == 5

    with asked(BINS, prepared, limit=10) as (_, snapshot, query):
        steps = count()
        budget = Budget(lambda: next(steps) / 1000, seconds=STEPS, gone=gone)
        with pytest.raises(SearchGaveUp):
            find(snapshot, query, budget)
    assert budget.ended == "gone"
    assert next(steps) / 1000 == pytest.approx(1.0, abs=0.01)


def test_a_client_that_waits_does_not_make_a_search_longer(prepared: Path) -> None:
    """The search ends at its deadline, even if the next check for the client would come later."""
    with asked(BINS, prepared, limit=10) as (_, snapshot, query):
        steps = count()
        budget = Budget(lambda: next(steps) / 1000, seconds=0.1, gone=lambda: False)
        with pytest.raises(SearchGaveUp):
            find(snapshot, query, budget)
    assert budget.ended == "time"
    assert next(steps) / 1000 == pytest.approx(0.1, abs=0.01)


def test_a_search_whose_client_went_while_it_waited_does_nothing(prepared: Path) -> None:
    """A search whose client disconnected while it was queued ends at its first check."""
    with asked(SIXTEEN, prepared, limit=10) as (_, snapshot, query):
        budget = Budget(lambda: 0.0, seconds=STEPS, gone=lambda: True)
        with pytest.raises(SearchGaveUp):
            find(snapshot, query, budget)
    assert (budget.ended, budget.trees) == ("gone", 0)


def test_a_search_that_ends_in_time_is_whole(prepared: Path) -> None:
    """A budget that is not used up changes nothing."""
    fleet = devices(3, "VGPU=2")
    query = parse_query(groups("VGPU:1", "VGPU:1") + "&group_policy=isolate", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        budget = counted(STEPS, answer_bytes_max=10**6)
        body = find(snapshot, query, budget)
        assert len(ask(snapshot, fleet, query, 39).candidates) == 6
    assert len(json.loads(body)["allocation_requests"]) == 6
    assert budget.ended is None


def test_giving_up_has_an_error_code_of_its_own(tmp_path: Path) -> None:
    """503 `placement.search_gave_up`, if the option leaves no time at all."""
    configuration = tmp_path / "placement.conf"
    configuration.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.sqlite\n"
        "[berth]\ncandidates_time_budget = 1e-9\n"
    )
    client = Client.of(load_application(load([str(configuration)])))
    uuid = "00000000-0000-0000-0000-000000000001"
    client.post("/resource_providers", json={"name": "host", "uuid": uuid}, version="1.39")
    client.put(
        f"/resource_providers/{uuid}/inventories",
        json={"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}},
        version="1.39",
    )
    response = client.get("/allocation_candidates?resources=VCPU:1", version="1.39")
    assert (response.status, response.code) == (503, "placement.search_gave_up")
    assert "does not mean that nothing fits" in response.detail
