# SPDX-License-Identifier: Apache-2.0
"""From counts to reports: quantiles, rates, factors, verdicts, tables, charts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.charts import Bars, Line, Panel, Row, bar_chart, line_chart, panel_chart
from bench.claim_floor import BY_HAND, BY_STORE
from bench.engine_targets import engine_verdicts
from bench.growth import exponent, growths
from bench.node_loss import Story, samples_of
from bench.pages import write_engine_pages, write_pages
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
from bench.scaling_tables import (
    CANDIDATES,
    CLAIMS,
    DATABASE,
    POLLS,
    START,
    WARM,
    named,
    scaling_tables,
)
from bench.targets import verdicts

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}
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


@pytest.mark.parametrize(("wanted", "due"), [(0.0, 0.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
def test_a_quantile_is_the_value_nearest_to_it(wanted: float, due: float) -> None:
    """Of 0 to 100, each percentile is itself; nothing has none."""
    assert quantile([float(number) for number in range(101)], wanted) == due
    assert quantile([], wanted) is None


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


@pytest.mark.parametrize(
    ("results", "is_met"),
    [([OURS, THEIRS], True), ([replace(OURS, median=3.0), THEIRS], False), ([OURS], None)],
)
def test_a_query_with_a_limit_is_held_to_a_factor_of_100(
    results: list[Result], is_met: bool | None
) -> None:
    """It is met or not, or was not measured."""
    (verdict,) = verdicts(results, [])
    assert verdict.is_met is is_met


@pytest.mark.parametrize(("median", "is_met"), [(2.0, True), (2.1, False)])
def test_a_read_of_one_provider_is_held_to_twice_the_floor(median: float, is_met: bool) -> None:
    """By its median and by its processor time; many clients at once are not in it."""
    case = "traits of a provider"
    ours = replace(OURS, scenario="reads", case=case, median=median, processor_ms=0.1)
    many = replace(ours, case=f"{case}, 16 clients", median=90.0)
    floors = [replace(one, server=FLOOR, median=1.0) for one in (ours, many)]
    met = {
        one.case: one.is_met for one in verdicts([ours, many, *floors], []) if "floor" in one.target
    }
    assert met == {f"reads, 1,000: {case}, median": is_met, f"reads, 1,000: {case}, CPU time": True}


@pytest.mark.parametrize(("rate", "is_met"), [(10.0, True), (10.1, False), (0.0, None)])
def test_a_claim_loop_is_held_to_fifty_times_the_originals_rate(
    rate: float, is_met: bool | None
) -> None:
    """By the claims a second of all clients together, if the original has done any."""
    verdict, *_ = engine_verdicts([LOOP, replace(THEIR_LOOP, rate=rate)])
    assert verdict.is_met is is_met
    assert engine_verdicts([LOOP])[0].is_met is None


def test_a_cluster_is_judged_by_what_clients_see_only() -> None:
    """A conflict that a client sees, or a lost claim, is a fault."""
    galera = replace(LOOP, scenario="galera", conflicts=2, failures={500: 1}, lost=3)
    lost, shown = engine_verdicts([galera, replace(THEIR_LOOP, scenario="galera")])
    assert (lost.measured, lost.is_met) == ("3", False)
    assert (shown.measured, shown.is_met) == ("3 of 103", False)


@pytest.mark.parametrize(("median", "is_met"), [(4.0, True), (4.1, False)])
def test_a_claim_is_held_to_twice_the_same_writes_by_hand(median: float, is_met: bool) -> None:
    """Both in one process, in turns."""
    ours = replace(LOOP, quantity=BY_STORE, median=median, rate=None)
    verdict, *_ = engine_verdicts([ours, replace(ours, quantity=BY_HAND, median=2.0)])
    assert (verdict.is_met, verdict.measured) == (is_met, f"{median / 2:.2f} ×")


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


def shown(*results: Result) -> list[list[str]]:
    """The cells of all rows of the tables of `bench.scaling`, without headings."""
    run = new_run({})
    run.results.extend(results)
    lines = [line for line in scaling_tables(run).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0][0].isdigit()]


def test_tables_of_scaling() -> None:
    """A row for each size and number of workers; what was not measured is empty. A claim shows the
    time of berth and of the database; hosts that poll fill one processor of 60 seconds; a large
    fleet is divided into services of the measured size."""
    larger = replace(STARTED, size=10_000, case=named(START, 4), median=2500.0)
    assert shown(STARTED, larger) == [
        ["1,000", "2", "1.50", "", ""],
        ["10,000", "4", "2.50", "", ""],
    ]
    claims = replace(STARTED, case=named(CLAIMS[1], 1), median=9.0, rate=2000.0, processor_ms=0.7)
    database = replace(claims, quantity=DATABASE, median=0.4, processor_ms=None)
    assert shown(claims, database) == [
        ["1,000", "1", "", "", "", "", "", "2,000"],
        ["1,000", "1", "", "", "0.70", "0.40", "", ""],
    ]
    polls = replace(
        STARTED, case=named(POLLS, 1), quantity="a request", median=1.0, processor_ms=0.3
    )
    assert shown(polls) == [["1,000", "1", "", "", "", "", "0.30", "200,000"]]
    large = [
        replace(
            STARTED, size=100_000, case=named(case, 1), quantity=quantity, median=median, **more
        )
        for case, quantity, median, more in (
            (START, "", 2000.0, {}),
            (WARM, "PSS of a worker", 250.0, {}),
            (POLLS, "a request", 1.0, {"processor_ms": 0.6}),
            (CLAIMS[1], "", 5.0, {"rate": 2000.0}),
        )
    ]
    assert shown(*large)[-1] == [
        *("100,000", "100", "250", "2.00", "1,667", "1.00", "2,000", "200,000")
    ]


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


def test_charts() -> None:
    """Equal factors are equal distances; bars of a panel begin at zero, in proportion to the
    longest; a missing value has no bar; and nothing leaves the picture."""
    lines = [Line("a & b", [(1, 2), (10, 20), (100, 200)])]
    picture = ElementTree.fromstring(line_chart("a <title>", lines, x_name="x", y_name="y"))
    circles = picture.findall("svg:circle", NAMESPACE)
    xs, ys = ([float(circle.attrib[axis]) for circle in circles] for axis in ("cx", "cy"))
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2
    assert abs((ys[1] - ys[0]) - (ys[2] - ys[1])) < 0.2
    assert xs[0] < xs[1] and ys[0] > ys[1]
    values = [Bars("a", (0.02, 99_000)), Bars("b", (3, None))]
    assert len(_bars(bar_chart("t", ("berth", "original"), values, unit="ms"))) == 3
    panels = [
        Panel("many", [Row("x", [(0, 300), (1, 100)], "400"), Row("y", [(1, 200)], "200")]),
        Panel("few", [Row("x", [(0, 2)], "2"), Row("none", [(0, 0)], "0")]),
    ]
    bars = _bars(panel_chart("t", ("a <b>", "c"), panels))
    x, width = ([float(bar.attrib[name]) for bar in bars] for name in ("x", "width"))
    assert [round(each / width[3], 2) for each in width] == [0.75, 0.25, 0.5, 1, 0]
    assert x == [x[0], x[0] + width[0], x[0], x[0], x[0]]
    assert [bar.attrib["class"] for bar in bars] == ["f0", "f1", "f1", "f0", "f0"]


def _bars(text: str) -> list[ElementTree.Element]:
    """The bars of a chart, without those of its legend; they are inside the picture."""
    picture = ElementTree.fromstring(text)
    bars = [one for one in picture.findall("svg:rect", NAMESPACE) if "y" in one.attrib][2:]
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for bar in bars:
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) < height
    texts = picture.findall("svg:text", NAMESPACE)
    assert max(float(each.attrib["y"]) for each in texts) < height
    return bars
