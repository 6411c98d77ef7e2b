# SPDX-License-Identifier: Apache-2.0
"""From what was counted to what is reported: quantiles, rates, factors, exponents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.growth import exponent, growths
from bench.results import (
    ORIGINAL,
    Result,
    new_run,
    quantile,
    read_run,
    summarise,
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


@settings(deadline=None)
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
