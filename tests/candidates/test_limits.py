# SPDX-License-Identifier: Apache-2.0
"""How many candidates come back, and which: limit, cap, generation strategy, randomisation.

Which ones is left open by the API, so the rules here are about subsets and counts. One rule is
berth's own: below 1.29 the candidates that an old client cannot take are dropped before the cap
counts, so that a capped request never comes back empty without need.

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

from berth.candidates import anchors, ways
from berth.candidates.request import GenerationStrategy, SearchSettings
from tests.answers import providers_of
from tests.brute_force import answer, summaries
from tests.candidates.engine import ask, ask_raw, snapshot_of
from tests.candidates.seeds import SEED, repeat_with, worlds_to_draw
from tests.candidates.strategies import Question, worlds_with_questions
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
    """All combinations of what an operator can set."""
    return SearchSettings(
        randomize=draw(st.booleans()),
        candidates_max=draw(st.sampled_from((-7, -1, 0, 1, 2, 3, 5))),
        strategy=draw(st.sampled_from(STRATEGIES)),
    )


@seed(SEED)
@settings(max_examples=worlds_to_draw(60), deadline=None, print_blob=True)
@given(worlds_with_questions(), search_settings(), st.none() | st.integers(1, 6), st.integers(0, 9))
def test_fewer_candidates_are_some_of_all(
    prepared: Path,
    asked: tuple[World, list[Question]],
    chosen: SearchSettings,
    limit: int | None,
    dice: int,
) -> None:
    """As many as the smaller of limit and cap allow, all of them valid, none of them twice.

    The summaries tell of exactly the trees of the candidates that are returned.
    """
    fleet, questions = asked
    note(f"{fleet}\n{chosen} limit={limit} rng={dice}; {repeat_with()}")
    cap = None if chosen.candidates_max < 0 else max(1, chosen.candidates_max)
    with snapshot_of(fleet, prepared) as snapshot:
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            query = replace(question.query, limit=limit)
            full = answer(fleet, query, question.minor)
            found = ask(snapshot, fleet, query, question.minor, settings=chosen, seed=dice)
            assert Counter(found.candidates) <= Counter(full.candidates)
            bounds = [bound for bound in (limit, cap) if bound is not None]
            assert len(found.candidates) == min([len(full.candidates), *bounds])
            used = providers_of(found.candidates)
            assert found.summaries == summaries(fleet, query, used, question.minor)


@pytest.mark.parametrize(("strategy", "due"), [("depth-first", [1, 3]), ("breadth-first", [2, 2])])
def test_a_capped_search_goes_deep_or_wide(
    prepared: Path, strategy: GenerationStrategy, due: list[int]
) -> None:
    """Of two trees with three candidates each, a cap of four takes 3 + 1, or 2 + 2."""
    chosen = SearchSettings(candidates_max=4, strategy=strategy)
    query = parse_query("resources=VGPU:1", 39)
    with snapshot_of(TWO_TREES, prepared) as snapshot:
        found = ask(snapshot, TWO_TREES, query, 39, settings=chosen)
    assert sorted(per_tree(found.candidates)) == due


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("ways_max", [1, 64])
def test_a_limit_takes_the_first_places_of_a_tree(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, ways_max: int, strategy: GenerationStrategy
) -> None:
    """In tree order, tried out and walked: how a search goes must not show. The rule is berth's
    own."""
    monkeypatch.setattr(ways, "WAYS_MAX", ways_max)
    fleet = world("""
        host
          a  VGPU=1
          b  VGPU=1
          c  VGPU=1
    """)
    query = parse_query("resources=VGPU:1&limit=2", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        found = ask(snapshot, fleet, query, 39, settings=SearchSettings(strategy=strategy))
    assert providers_of(found.candidates) == {"a", "b"}


@seed(SEED)
@settings(max_examples=worlds_to_draw(30), deadline=None, print_blob=True)
@given(worlds_with_questions(), st.sampled_from((1, 64)), st.sampled_from((1, 4096)))
def test_breadth_first_gives_no_tree_a_second_candidate_before_each_has_a_first(
    prepared: Path, asked: tuple[World, list[Question]], ways_max: int, rows_max: int
) -> None:
    """With a cap, and with a limit alone; tried out and walked, in one part and tree by tree."""
    fleet, questions = asked
    fleet = without_sharing(fleet)
    note(f"{fleet}\n{repeat_with()}")
    with snapshot_of(fleet, prepared) as snapshot, pytest.MonkeyPatch.context() as patched:
        patched.setattr(ways, "WAYS_MAX", ways_max)
        patched.setattr(anchors, "ROWS_MAX", rows_max)
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            for chosen, limit in (
                (SearchSettings(candidates_max=1000, strategy="breadth-first"), None),
                (SearchSettings(), 1000),
            ):
                query = replace(question.query, limit=limit)
                found = json.loads(ask_raw(snapshot, query, question.minor, settings=chosen))
                roots = [root_of(fleet, one) for one in found["allocation_requests"]]
                first = roots[: len(set(roots))]
                assert len(set(first)) == len(first)


@pytest.mark.parametrize("ways_max", [1, 64])
@pytest.mark.parametrize(
    ("chosen", "limit"),
    [(SearchSettings(candidates_max=9, strategy="breadth-first"), None), (SearchSettings(), 9)],
    ids=["cap", "limit"],
)
def test_every_tree_comes_before_any_comes_again(
    prepared: Path,
    monkeypatch: pytest.MonkeyPatch,
    ways_max: int,
    chosen: SearchSettings,
    limit: int | None,
) -> None:
    """Also a tree whose first device is taken, and one of another shape."""
    monkeypatch.setattr(ways, "WAYS_MAX", ways_max)
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
        found = json.loads(ask_raw(snapshot, query, 39, settings=chosen))
    roots = [root_of(fleet, one) for one in found["allocation_requests"]]
    assert len(roots) == 8
    assert set(roots[:4]) == {"one", "two", "three", "four"}


def without_sharing(fleet: World) -> World:
    """The world without sharing providers: a candidate is then of one tree."""
    return replace(
        fleet,
        providers=tuple(
            replace(provider, traits=provider.traits - {SHARING_TRAIT})
            for provider in fleet.providers
        ),
    )


def root_of(fleet: World, candidate: Any) -> str:
    """The root of the tree that a candidate is of, in any form of the answer."""
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
    """Two hosts can serve in one way each, which differ; a third, of another shape, in one."""
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
        found = ask(snapshot, fleet, query, 39, settings=SearchSettings(strategy=strategy))
    assert found == answer(fleet, query, 39)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_a_cap_the_strategy_changes_nothing(
    prepared: Path, strategy: GenerationStrategy
) -> None:
    """The set of all candidates is the same in whatever order it is generated."""
    query = parse_query("resources=VGPU:1", 39)
    with snapshot_of(TWO_TREES, prepared) as snapshot:
        found = ask(snapshot, TWO_TREES, query, 39, settings=SearchSettings(strategy=strategy))
    assert found == answer(TWO_TREES, query, 39)


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_randomisation_gives_every_host_its_turn(prepared: Path, limit: int) -> None:
    """Over many requests each host is among the limited few, and the picks differ."""
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
    """With a limit of one, each of the ways into each tree comes up at some time."""
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
    """Where all candidates come back, their order differs from request to request."""
    query = parse_query(f"resources=VCPU:1{limit}", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(ALIKE, prepared) as snapshot:
        bodies = {
            ask_raw(snapshot, query, 39, settings=chosen, seed=number) for number in range(20)
        }
        found = ask(snapshot, ALIKE, query, 39, settings=chosen)
    assert found == answer(ALIKE, query, 39)
    assert len(bodies) > 1


def test_the_same_dice_give_the_same_answer(prepared: Path) -> None:
    """Chance comes in as an argument, so that every answer can be had again."""
    query = parse_query("resources=VCPU:1&limit=3", 39)
    chosen = SearchSettings(randomize=True)
    with snapshot_of(ALIKE, prepared) as snapshot:
        first, second = (ask_raw(snapshot, query, 39, settings=chosen, seed=SEED) for _ in range(2))
    assert first == second, repeat_with()


def test_old_clients_lose_nothing_to_the_cap(prepared: Path) -> None:
    """Below 1.29 a cap of one still finds the one candidate that needs no second provider."""
    fleet = world("""
        nested    VCPU=4
          child1  VGPU=1
          child2  VGPU=1
        flat      VCPU=4  VGPU=1
    """)
    query = parse_query("resources=VCPU:1,VGPU:1", 28)
    with snapshot_of(fleet, prepared) as snapshot:
        found = ask(snapshot, fleet, query, 28, settings=SearchSettings(candidates_max=1))
    assert found.candidates == ["flat:VCPU=1,VGPU=1"]


@pytest.mark.parametrize("policy", ["none", "isolate"])
def test_a_limit_spares_the_search_the_product(prepared: Path, policy: str) -> None:
    """Sixteen groups over 64 devices have 64 to the 16th combinations; ten are found at once.

    A search that built the product, or that tried it out, would never end.
    """
    devices = "\n".join(f"          device{number}  VGPU=1" for number in range(64))
    fleet = world(f"""
        host
{devices}
    """)
    wanted = "&".join(f"resources{number}=VGPU:1" for number in range(1, 17))
    query = parse_query(f"{wanted}&group_policy={policy}&limit=10", 39)
    with snapshot_of(fleet, prepared) as snapshot:
        found = ask(snapshot, fleet, query, 39)
    assert len(set(found.candidates)) == 10
    for candidate in found.candidates:
        assert len(providers_of([candidate])) == 16


def test_too_few_devices_are_noticed_without_trying_all_ways(prepared: Path) -> None:
    """Twelve isolated groups on eleven alike devices: none, and not after 11 to the 12th trials."""
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
    """How many candidates are of each tree, by the first part of the provider's name."""
    return list(Counter(candidate.partition("_")[0] for candidate in candidates).values())
