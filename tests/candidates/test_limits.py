# SPDX-License-Identifier: Apache-2.0
"""How many candidates are returned, and which: limit, cap, generation strategy, randomisation.

The API leaves open which candidates are chosen, so these tests check subsets and counts. One rule
is berth's own: below 1.29, candidates that an old client cannot use are dropped before the cap is
applied, so a capped request does not come back empty if there is a usable candidate.

Source: spec/allocation-candidates.md 6.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.candidates import assignments, filter
from berth.candidates.request import GenerationStrategy, SearchSettings
from tests.answers import providers_of
from tests.brute_force import answer, summaries
from tests.candidates.engine import ask, ask_raw, snapshot_of
from tests.candidates.strategies import Question, worlds_with_questions
from tests.effort import SEED, repeat_with, scaled
from tests.queries import parse_query, query_text
from tests.worlds import SHARING_TRAIT, World, world

STRATEGIES: tuple[GenerationStrategy, ...] = ("depth-first", "breadth-first")

#: Eight hosts, alike but for their names.
ALIKE = world("\n".join(f"host{number}  VCPU=8" for number in range(8)))

#: Two trees, each of which can serve one group in three ways.
TWO_TREES = world("""
    one
      one_a  VGPU=1
      one_b  VGPU=1
      one_c  VGPU=1
    two
      two_a  VGPU=1
      two_b  VGPU=1
      two_c  VGPU=1
""")


@st.composite
def search_settings(draw: st.DrawFn) -> SearchSettings:
    """All combinations of the operator's settings."""
    return SearchSettings(
        randomize=draw(st.booleans()),
        candidates_max=draw(st.sampled_from((-7, -1, 0, 1, 2, 3, 5))),
        strategy=draw(st.sampled_from(STRATEGIES)),
    )


@seed(SEED)
@settings(max_examples=scaled(25))
@given(worlds_with_questions(), search_settings(), st.none() | st.integers(1, 6), st.integers(0, 9))
def test_fewer_candidates_are_some_of_all(
    prepared: Path,
    asked: tuple[World, list[Question]],
    chosen: SearchSettings,
    limit: int | None,
    dice: int,
) -> None:
    """As many candidates as the limit and the cap allow, all of them valid, each once; the
    summaries describe exactly their trees."""
    fleet, questions = asked
    note(f"{fleet}\n{chosen} limit={limit} rng={dice}; {repeat_with()}")
    cap = None if chosen.candidates_max < 0 else max(1, chosen.candidates_max)
    with snapshot_of(fleet, prepared) as snapshot:
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            query = replace(question.query, limit=limit)
            full = answer(fleet, query, question.minor)
            candidates = ask(snapshot, fleet, query, question.minor, settings=chosen, seed=dice)
            assert Counter(candidates.candidates) <= Counter(full.candidates)
            bounds = [bound for bound in (limit, cap) if bound is not None]
            assert len(candidates.candidates) == min([len(full.candidates), *bounds])
            used = providers_of(candidates.candidates)
            assert candidates.summaries == summaries(fleet, query, used, question.minor)


@pytest.mark.parametrize(("strategy", "due"), [("depth-first", [1, 3]), ("breadth-first", [2, 2])])
def test_a_capped_search_goes_deep_or_wide(
    prepared: Path, strategy: GenerationStrategy, due: list[int]
) -> None:
    """Two trees have three candidates each: a cap of four takes 3 + 1 depth first, 2 + 2 breadth
    first."""
    chosen = SearchSettings(candidates_max=4, strategy=strategy)
    query = parse_query("resources=VGPU:1", 39)
    with snapshot_of(TWO_TREES, prepared) as snapshot:
        candidates = ask(snapshot, TWO_TREES, query, 39, settings=chosen)
    assert sorted(per_tree(candidates.candidates)) == due


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("assignments_max", [1, 64])
def test_a_limit_takes_the_first_places_of_a_tree(
    prepared: Path,
    monkeypatch: pytest.MonkeyPatch,
    assignments_max: int,
    strategy: GenerationStrategy,
) -> None:
    """A limit takes the first candidates in tree order, whether the search tries all combinations
    or walks. The rule is berth's own."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    fleet = world("""
        host
          a  VGPU=1
          b  VGPU=1
          c  VGPU=1
    """)
    query = parse_query("resources=VGPU:1&limit=2", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39, settings=SearchSettings(strategy=strategy))
    assert providers_of(candidates.candidates) == {"a", "b"}


@pytest.mark.parametrize("limit", [None, 1, 2, 8])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_hosts_are_found_in_every_window_of_a_block(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, rows: int, limit: int | None
) -> None:
    """Hosts of one shape are filtered in windows of some rows; full hosts in any window are left
    out."""
    for name in ("ROWS_MAX", "WINDOW_MIN", "SHARED_WINDOW_MIN"):
        monkeypatch.setattr(filter, name, rows)
    fleet = world(
        "\n".join(
            f"host{number}\n"
            f"  a{number}  VCPU=8(used:{8 if number in (0, 1, 4) else 0})\n"
            f"  b{number}  VCPU=8(used:{8 if number in (0, 1, 5) else 0})"
            for number in range(8)
        )
        + "\n"
        + "\n".join(f"flat{number}  VCPU=8(used:{8 * (number != 5)})" for number in range(8))
    )
    query = replace(parse_query("resources=VCPU:1", 39), limit=limit)
    full = answer(fleet, replace(query, limit=None), 39)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39, settings=SearchSettings())
    assert set(candidates.candidates) <= set(full.candidates)
    assert len(candidates.candidates) == min(limit or 100, len(full.candidates))


@seed(SEED)
@settings(max_examples=scaled(15))
@given(worlds_with_questions(), st.sampled_from((1, 64)), st.sampled_from((1, 4096)))
def test_breadth_first_gives_no_tree_a_second_candidate_before_each_has_a_first(
    prepared: Path, asked: tuple[World, list[Question]], assignments_max: int, rows_max: int
) -> None:
    """With a cap or only a limit, in both enumerators, in one part or tree by tree."""
    fleet, questions = asked
    fleet = without_sharing(fleet)
    note(f"{fleet}\n{repeat_with()}")
    with snapshot_of(fleet, prepared) as snapshot, pytest.MonkeyPatch.context() as patched:
        patched.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
        patched.setattr(filter, "ROWS_MAX", rows_max)
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            for chosen, limit in (
                (SearchSettings(candidates_max=1000, strategy="breadth-first"), None),
                (SearchSettings(), 1000),
            ):
                query = replace(question.query, limit=limit)
                body = json.loads(ask_raw(snapshot, query, question.minor, settings=chosen))
                roots = [root_of(fleet, request) for request in body["allocation_requests"]]
                first = roots[: len(set(roots))]
                assert len(set(first)) == len(first)


@pytest.mark.parametrize("assignments_max", [1, 64])
@pytest.mark.parametrize(
    ("chosen", "limit"),
    [(SearchSettings(candidates_max=9, strategy="breadth-first"), None), (SearchSettings(), 9)],
    ids=["cap", "limit"],
)
def test_every_tree_comes_before_any_comes_again(
    prepared: Path,
    monkeypatch: pytest.MonkeyPatch,
    assignments_max: int,
    chosen: SearchSettings,
    limit: int | None,
) -> None:
    """Also for a tree whose first device is taken, and for one of another shape."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    fleet = world("""
        one
          one_a  VGPU=1
          one_b  VGPU=1
        two
          two_a  VGPU=1(used:1)
          two_b  VGPU=1
        three
          three_a  VGPU=1
          three_b  VGPU=1
        four
          four_a  VGPU=1
          four_b  VGPU=1
          four_c  VGPU=1
    """)
    query = replace(parse_query("resources=VGPU:1", 39), limit=limit)
    with snapshot_of(fleet, prepared) as snapshot:
        body = json.loads(ask_raw(snapshot, query, 39, settings=chosen))
    roots = [root_of(fleet, request) for request in body["allocation_requests"]]
    assert len(roots) == 8
    assert set(roots[:4]) == {"one", "two", "three", "four"}


def without_sharing(fleet: World) -> World:
    """The world without its sharing providers, so that each candidate is from one tree."""
    return replace(
        fleet,
        providers=tuple(
            replace(provider, traits=provider.traits - {SHARING_TRAIT})
            for provider in fleet.providers
        ),
    )


def root_of(fleet: World, candidate: Any) -> str:
    """The root of a candidate's tree, in any form of the response."""
    allocations = candidate["allocations"]
    one = allocations[0]["resource_provider"] if isinstance(allocations, list) else None
    provider = fleet.by_name[fleet.names[one["uuid"] if one else next(iter(allocations))]]
    while provider.parent is not None:
        provider = fleet.by_name[provider.parent]
    return provider.name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_limit_that_is_not_reached_leaves_nothing_out(
    prepared: Path, strategy: GenerationStrategy
) -> None:
    """Two hosts have one, different, assignment each, and a host of another shape has one too: a
    limit of more returns all three."""
    fleet = world("""
        one
          one_a  VGPU=2
          one_b  VGPU=1
        two
          two_a  VGPU=1
          two_b  VGPU=2
        three  VGPU=2
    """)
    query = replace(parse_query("resources=VGPU:2", 39), limit=10)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39, settings=SearchSettings(strategy=strategy))
    assert candidates == answer(fleet, query, 39)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_a_cap_the_strategy_changes_nothing(
    prepared: Path, strategy: GenerationStrategy
) -> None:
    """Every generation strategy generates the same set of candidates."""
    query = parse_query("resources=VGPU:1", 39)
    with snapshot_of(TWO_TREES, prepared) as snapshot:
        candidates = ask(snapshot, TWO_TREES, query, 39, settings=SearchSettings(strategy=strategy))
    assert candidates == answer(TWO_TREES, query, 39)


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_randomisation_gives_every_host_its_turn(prepared: Path, limit: int) -> None:
    """Over many requests with a limit, every host is among the results, and the choices differ."""
    query = parse_query(f"resources=VCPU:1&limit={limit}", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(ALIKE, prepared) as snapshot:
        picks = [
            tuple(ask(snapshot, ALIKE, query, 39, settings=chosen, seed=number).candidates)
            for number in range(120)
        ]
    assert {len(pick) for pick in picks} == {limit}
    assert {host for pick in picks for host in pick} == set(answer(ALIKE, query, 39).candidates)
    assert len(set(picks)) > 1


def test_randomisation_chooses_among_the_candidates_of_one_host_too(prepared: Path) -> None:
    """With a limit of one, each assignment in each tree is returned at some time."""
    query = parse_query("resources=VGPU:1&limit=1", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(TWO_TREES, prepared) as snapshot:
        picked = {
            candidate
            for number in range(120)
            for candidate in ask(
                snapshot, TWO_TREES, query, 39, settings=chosen, seed=number
            ).candidates
        }
    assert picked == set(answer(TWO_TREES, query, 39).candidates)


@pytest.mark.parametrize("limit", ["", "&limit=100"])
def test_randomisation_shuffles_what_it_need_not_choose_from(prepared: Path, limit: str) -> None:
    """If all candidates are returned, their order differs from request to request."""
    query = parse_query(f"resources=VCPU:1{limit}", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(ALIKE, prepared) as snapshot:
        bodies = {
            ask_raw(snapshot, query, 39, settings=chosen, seed=number) for number in range(20)
        }
        candidates = ask(snapshot, ALIKE, query, 39, settings=chosen)
    assert candidates == answer(ALIKE, query, 39)
    assert len(bodies) > 1


def test_the_same_dice_give_the_same_answer(prepared: Path) -> None:
    """Randomness is an argument: the same seed gives the same answer."""
    query = parse_query("resources=VCPU:1&limit=3", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(ALIKE, prepared) as snapshot:
        first, second = (ask_raw(snapshot, query, 39, settings=chosen, seed=SEED) for _ in range(2))
    assert first == second, repeat_with()


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_old_clients_lose_nothing_to_the_cap(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """Below 1.29, a cap of one still returns the one candidate that needs no second provider, in
    both enumerators."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    fleet = world("""
        nested    VCPU=4
          child1  VGPU=1
          child2  VGPU=1
        flat      VCPU=4  VGPU=1
    """)
    query = parse_query("resources=VCPU:1,VGPU:1", 28)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 28, settings=SearchSettings(candidates_max=1))
    assert candidates.candidates == ["flat:VCPU=1,VGPU=1"]


@pytest.mark.parametrize("policy", ["none", "isolate"])
def test_a_limit_spares_the_search_the_product(prepared: Path, policy: str) -> None:
    """Sixteen groups over 64 devices have 64 to the power of 16 combinations; ten are returned at
    once.

    A search that built the product or tried all combinations would never end.
    """
    devices = "\n".join(f"          device{number}  VGPU=1" for number in range(64))
    fleet = world(f"""
        host
{devices}
    """)
    wanted = "&".join(f"resources{number}=VGPU:1" for number in range(1, 17))
    query = parse_query(f"{wanted}&group_policy={policy}&limit=10", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert len(set(candidates.candidates)) == 10
    for candidate in candidates.candidates:
        assert len(providers_of([candidate])) == 16


def test_too_few_devices_are_noticed_without_trying_all_ways(prepared: Path) -> None:
    """Twelve isolated groups on eleven identical devices: the search returns nothing, without
    trying 11 to the power of 12 combinations."""
    devices = "\n".join(f"          device{number}  VGPU=4" for number in range(11))
    fleet = world(f"""
        host
{devices}
    """)
    wanted = "&".join(f"resources{number}=VGPU:1" for number in range(1, 13))
    query = parse_query(f"{wanted}&group_policy=isolate&limit=10", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        assert ask(snapshot, fleet, query, 39).candidates == []


def per_tree(candidates: list[str]) -> list[int]:
    """The number of candidates of each tree, by the first part of the provider's name."""
    return list(Counter(candidate.partition("_")[0] for candidate in candidates).values())
