# SPDX-License-Identifier: Apache-2.0
"""From counts to reports: quantiles, rates, factors, verdicts, tables, charts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.engine_targets import engine_verdicts
from bench.growth import growths
from bench.node_loss import Story, samples_of
from bench.pages import write_engine_pages, write_pages
from bench.results import (
    FLOOR,
    ORIGINAL,
    Result,
    new_run,
    of_floor,
    read_run,
    summarise,
    times_cheaper,
    times_faster,
    write_run,
)
from bench.sample import Sample
from bench.scaling_tables import (
    CANDIDATES,
    START,
    named,
    scaling_tables,
)
from bench.targets import verdicts

OURS = Result(
    scenario="flat", fleet="flat", size=1000, case="all match, limit 10", server="berth", median=2.0
)
THEIRS = replace(OURS, server=ORIGINAL, median=240.0)
LOOP = replace(
    OURS,
    scenario="postgresql",
    case="spread, 16 clients",
    quantity="claim loop",
    count=100,
    median=20.0,
    rate=500.0,
)
THEIR_LOOP = replace(LOOP, server=ORIGINAL, median=900.0, rate=10.0)
STARTED = replace(OURS, scenario="mariadb", case=named(START, 2), median=1500.0)


def test_rounds_are_taken_together() -> None:
    """The rate is over the time of all rounds; other units stay as they are; processor time is of
    failed operations too, and not known where one round did not measure it."""
    rounds = [
        Sample([0.003, 0.001], elapsed=1.0, conflicts_count=1, failures=Counter({500: 2})),
        Sample([0.002], elapsed=0.5, lost_count=1, failures=Counter({0: 1, 500: 1})),
    ]
    got = summarise(OURS, "claims", rounds)
    assert (got.count, got.median, got.unit, got.rate) == (3, 2.0, "ms", 2.0)
    assert (got.conflicts, got.failures, got.lost) == (1, {500: 3, 0: 1}, 1)
    got = summarise(OURS, "", [Sample([100.0], unit="MiB")])
    assert (got.median, got.unit, got.rate) == (100.0, "MiB", None)
    timed = [
        Sample([0.003, 0.001], processor=0.5, failures=Counter({500: 1})),
        Sample([0.002], processor=0.3),
    ]
    assert summarise(OURS, "", timed).processor_ms == pytest.approx(200.0)
    assert summarise(OURS, "", [*timed, Sample([0.002])]).processor_ms is None


def test_factors() -> None:
    """Of the medians, and at least that of the time after which the original was given up; of
    processor times, against the original and the floor."""
    assert times_faster([OURS, THEIRS], OURS.key) == 120
    given_up = replace(THEIRS, median=None, gave_up_after_s=20.0)
    assert times_faster([OURS, given_up], OURS.key) == 10_000
    assert times_faster([OURS], OURS.key) is None
    ours, theirs = replace(OURS, processor_ms=0.2), replace(THEIRS, processor_ms=12.0)
    floor = replace(ours, server=FLOOR, median=1.0, processor_ms=0.1)
    assert times_cheaper([ours, theirs, floor], ours.key) == pytest.approx(60)
    assert of_floor([ours, theirs, floor], ours, "median") == 2.0
    assert of_floor([ours, theirs, floor], theirs, "processor_ms") == pytest.approx(120)
    assert of_floor([ours, theirs], ours, "median") is None
    assert times_cheaper([ours, floor], ours.key) is None


def test_verdicts() -> None:
    """A query with a limit is held to a factor of 100, a claim loop to fifty times the original's
    rate, and a cluster to what clients see of conflicts and lost claims."""
    for results, is_met in (
        ([OURS, THEIRS], True),
        ([replace(OURS, median=3.0), THEIRS], False),
        ([OURS], None),
    ):
        assert [verdict.is_met for verdict in verdicts(results, [])] == [is_met]
    for rate, is_met in ((10.0, True), (10.1, False), (0.0, None)):
        assert engine_verdicts([LOOP, replace(THEIR_LOOP, rate=rate)])[0].is_met is is_met
    galera = replace(LOOP, scenario="galera", conflicts=2, failures={500: 1}, lost=3)
    lost, shown = engine_verdicts([galera, replace(THEIR_LOOP, scenario="galera")])
    assert (lost.measured, lost.is_met) == ("3", False)
    assert (shown.measured, shown.is_met) == ("3 of 103", False)


def test_growth_is_against_hosts_with_a_limit_and_against_bytes_without() -> None:
    """An answer of ten times the bytes may take ten times as long."""
    limited, free = growths(
        [
            replace(OURS, size=size, case=f"all match, {case}", median=median, answer_bytes=length)
            for size, case, median, length in (
                (1000, "limit 10", 1.0, 5000),
                (1000, "no limit", 10.0, 500_000),
                (100_000, "limit 10", 10.0, 5000),
                (100_000, "no limit", 1000.0, 50_000_000),
            )
        ]
    )
    assert (limited.against, round(limited.exponent, 6)) == ("hosts", 0.5)
    assert (free.against, round(free.exponent, 6)) == ("bytes of the answer", 1.0)


def test_what_is_told_of_a_nodes_loss() -> None:
    """Only a write that was sent after the kill shows that writes go on; what the lost node answers
    is told apart; and the story ends a while after writes go on, not before the kill."""
    story = Story(begun_at=0.0)
    assert not story.is_over(1000.0)
    story.take(204, "a", sent_at=0.5, now=1.0, is_lost=False)
    story.killed_at = 2.0
    story.take(204, "b", sent_at=1.5, now=3.0, is_lost=False)
    story.take(204, "lost", sent_at=2.1, now=2.2, is_lost=True)
    story.take(503, "c", sent_at=2.3, now=2.4, is_lost=True)
    story.take(0, "d", sent_at=2.3, now=2.4, is_lost=False)
    assert story.recovered_at is None
    assert (story.is_over(32.0), story.is_over(63.0)) == (False, True)
    story.take(204, "e", sent_at=2.5, now=7.0, is_lost=False)
    samples = samples_of(story)
    assert samples["from the kill to the first write"].values == [5.0]
    assert samples["longest time without a write"].values == [4.0]
    of_lost = samples["writes through the lost node, from the kill on"]
    assert (of_lost.values, dict(of_lost.failures)) == ([1], {503: 1})
    others = samples["writes through the other nodes"]
    assert (others.values, dict(others.failures)) == ([3], {0: 1})
    assert story.acknowledged == ["a", "b", "lost", "e"]
    assert (story.is_over(9.0), story.is_over(11.0)) == (False, True)


def test_a_run_says_what_disturbed_it_and_what_is_missing() -> None:
    """By its load at the start, and with the reasons."""
    run = new_run({})
    failed = replace(STARTED, case="load", median=None, error="no memory")
    late = replace(STARTED, case=named(CANDIDATES, 1), median=None, gave_up_after_s=60.0)
    run.results.extend([STARTED, failed, late])
    for load, is_busy in ((0.4, False), (16.0, True)):
        run.machine["load at the start"] = load
        assert ("Other programs used the machine" in scaling_tables(run)) is is_busy
    text = scaling_tables(run)
    assert "Not measured: 1,000 hosts, load: no memory" in text
    assert "1 workers: candidates, limit 10: a request took longer than 60 s" in text


def test_a_run_leaves_its_pages_and_can_be_read_again(tmp_path: Path) -> None:
    """With the charts that the page shows, and none of an earlier run; and of engines the
    verdicts."""
    (tmp_path / "old.svg").write_text("<svg/>")
    run = new_run({"workers": 2})
    run.results.extend(
        replace(OURS, size=size, case="a ninth matches, limit 10", server=server, answer_bytes=1000)
        for size in (1000, 10_000)
        for server in ("berth", "original")
    )
    write_pages(run, tmp_path)
    pictures = re.findall(r"\]\(performance/(.*?)\)", (tmp_path / "results.md").read_text())
    assert sorted(pictures) == sorted(path.name for path in tmp_path.glob("*.svg"))
    assert "fleet-size.svg" in pictures
    write_run(run, tmp_path / "again.json")
    assert read_run(tmp_path / "again.json") == run
    engines = new_run({"rounds": 2})
    engines.results.extend([LOOP, THEIR_LOOP])
    write_engine_pages(engines, tmp_path / "engines")
    page = (tmp_path / "engines" / "results.md").read_text()
    assert "### postgresql" in page
    assert "50 × (500 and 10.0 a second)" in page
    assert (tmp_path / "engines" / "results.json").exists()
