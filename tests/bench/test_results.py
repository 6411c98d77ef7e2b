# SPDX-License-Identifier: Apache-2.0
"""From what was counted to what is reported: quantiles, rates, factors, exponents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.growth import exponent, growths
from bench.results import (
    FLOOR,
    ORIGINAL,
    Result,
    new_run,
    of_floor,
    quantile,
    read_run,
    summarise,
    times_cheaper,
    times_faster,
    write_run,
)
from bench.sample import Sample
from bench.targets import verdicts

BERTH_RESULT = Result(
    scenario="flat", fleet="flat", size=1000, case="all match, limit 10", server="berth", median=2.0
)
ORIGINAL_RESULT = msgspec.structs.replace(BERTH_RESULT, server=ORIGINAL, median=240.0)


@pytest.mark.parametrize(("wanted", "found"), [(0.0, 0.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
def test_a_quantile_is_the_value_nearest_to_it(wanted: float, found: float) -> None:
    """Of 0 to 100, each percentile is itself."""
    assert quantile([float(number) for number in range(101)], wanted) == found


def test_nothing_has_no_quantile() -> None:
    """Where every operation failed there is no median to show."""
    assert quantile([], 0.5) is None


def test_rounds_are_taken_together() -> None:
    """Values are put in one row, and the rate is over the time of all rounds."""
    rounds = [
        Sample([0.003, 0.001], elapsed=1.0, conflicts_count=1, failures=Counter({500: 2})),
        Sample([0.002], elapsed=0.5, lost_count=1, failures=Counter({0: 1, 500: 1})),
    ]
    found = summarise(BERTH_RESULT, "claims", rounds)
    assert (found.count, found.median, found.unit, found.rate) == (3, 2.0, "ms", 2.0)
    assert (found.conflicts, found.failures, found.lost) == (1, {500: 3, 0: 1}, 1)


def test_other_units_stay_as_they_are() -> None:
    """MiB are not milliseconds, and have no rate."""
    found = summarise(BERTH_RESULT, "", [Sample([100.0], unit="MiB")])
    assert (found.median, found.unit, found.rate) == (100.0, "MiB", None)


def test_processor_time_is_shared_out_to_all_operations() -> None:
    """Failed ones have taken some too; where one round did not measure it, it is not known."""
    rounds = [
        Sample([0.003, 0.001], processor=0.5, failures=Counter({500: 1})),
        Sample([0.002], processor=0.3),
    ]
    assert summarise(BERTH_RESULT, "", rounds).processor_ms == pytest.approx(200.0)
    assert summarise(BERTH_RESULT, "", [*rounds, Sample([0.002])]).processor_ms is None


def test_processor_times_are_compared_with_the_originals_and_the_floors() -> None:
    """More of the original's is better, less above the floor is."""
    ours = msgspec.structs.replace(BERTH_RESULT, processor_ms=0.2)
    theirs = msgspec.structs.replace(ORIGINAL_RESULT, processor_ms=12.0)
    floor = msgspec.structs.replace(ours, server=FLOOR, median=1.0, processor_ms=0.1)
    results = [ours, theirs, floor]
    assert times_cheaper(results, ours.key) == pytest.approx(60)
    assert of_floor(results, ours, "median") == 2.0
    assert of_floor(results, theirs, "processor_ms") == pytest.approx(120)
    assert of_floor([ours, theirs], ours, "median") is None
    assert times_cheaper([ours, floor], ours.key) is None


def test_the_factor_is_that_of_the_medians() -> None:
    """And at least that of the time after which the original was given up."""
    key = BERTH_RESULT.key
    assert times_faster([BERTH_RESULT, ORIGINAL_RESULT], key) == 120
    given_up = msgspec.structs.replace(ORIGINAL_RESULT, median=None, gave_up_after_s=20.0)
    assert times_faster([BERTH_RESULT, given_up], key) == 10_000
    assert times_faster([BERTH_RESULT], key) is None


def test_a_target_is_met_or_not_or_was_not_measured() -> None:
    """By the factor of 100 that a query with a limit is held to."""

    def met(*results: Result) -> bool | None:
        (verdict,) = verdicts(results, [])
        return verdict.is_met

    assert met(BERTH_RESULT, ORIGINAL_RESULT) is True
    slower = msgspec.structs.replace(BERTH_RESULT, median=3.0)
    assert met(slower, ORIGINAL_RESULT) is False
    assert met(BERTH_RESULT) is None


@pytest.mark.parametrize(("median", "is_met"), [(2.0, True), (2.1, False)])
def test_a_read_of_one_provider_is_held_to_twice_the_floor(median: float, is_met: bool) -> None:
    """By its median and by its processor time; many clients at once are not in it."""
    ours = msgspec.structs.replace(
        BERTH_RESULT, scenario="reads", case="traits of a provider", median=median, processor_ms=0.1
    )
    many = msgspec.structs.replace(ours, case="traits of a provider, 16 clients", median=90.0)
    floors = [msgspec.structs.replace(one, server=FLOOR, median=1.0) for one in (ours, many)]
    met = {
        one.case: one.is_met for one in verdicts([ours, many, *floors], []) if "floor" in one.target
    }
    assert met == {
        "reads, 1,000: traits of a provider, median": is_met,
        "reads, 1,000: traits of a provider, CPU time": True,
    }


@given(
    power=st.floats(min_value=-1, max_value=3),
    factor=st.floats(min_value=1e-3, max_value=1e3),
    sizes=st.sets(st.integers(min_value=1, max_value=10**7), min_size=2, max_size=6),
)
def test_the_exponent_of_a_power_law_is_found(power: float, factor: float, sizes: set[int]) -> None:
    """Whatever its factor, and at whichever sizes it was measured."""
    points = [(float(size), factor * size**power) for size in sizes]
    assert exponent(points) == pytest.approx(power, abs=1e-6)


def test_growth_is_against_hosts_with_a_limit_and_against_bytes_without() -> None:
    """An answer of ten times the bytes may take ten times as long."""

    def measured(size: int, case: str, median: float, answer_bytes: int) -> Result:
        return msgspec.structs.replace(
            BERTH_RESULT, size=size, case=case, median=median, answer_bytes=answer_bytes
        )

    limited, free = growths(
        [
            measured(1000, "all match, limit 10", 1.0, 5000),
            measured(1000, "all match, no limit", 10.0, 500_000),
            measured(100_000, "all match, limit 10", 10.0, 5000),
            measured(100_000, "all match, no limit", 1000.0, 50_000_000),
        ]
    )
    assert (limited.against, round(limited.exponent, 6)) == ("hosts", 0.5)
    assert (free.against, round(free.exponent, 6)) == ("bytes of the answer", 1.0)


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The page can be made anew from the JSON alone."""
    run = new_run({"workers": 2})
    run.results.extend([BERTH_RESULT, summarise(BERTH_RESULT, "x", [Sample([1.0], elapsed=2.0)])])
    write_run(run, tmp_path / "results.json")
    assert read_run(tmp_path / "results.json") == run
