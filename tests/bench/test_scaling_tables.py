# SPDX-License-Identifier: Apache-2.0
"""A run of `bench.scaling` as tables: a row for each size and number of workers."""

from __future__ import annotations

import msgspec

from bench.results import Result, new_run
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

STARTED = Result(
    scenario="mariadb", fleet="flat", size=1000, case=named(START, 2), server="berth", median=1500.0
)


def shown(*results: Result) -> list[list[str]]:
    """The cells of all rows of all tables, without headings."""
    run = new_run({})
    run.results.extend(results)
    lines = [line for line in scaling_tables(run).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0][0].isdigit()]


def test_each_size_and_number_of_workers_has_a_row_of_what_was_measured() -> None:
    """A start is in seconds; what was not measured is empty, and without anything there is no
    row."""
    larger = msgspec.structs.replace(STARTED, size=10_000, case=named(START, 4), median=2500.0)
    assert shown(STARTED, larger) == [
        ["1,000", "2", "1.50", "", ""],
        ["10,000", "4", "2.50", "", ""],
    ]


def test_a_claim_shows_the_time_of_berth_and_of_the_database() -> None:
    """The rate is that of all clients; the database's time is a quantity of the same case."""
    claims = msgspec.structs.replace(
        STARTED, case=named(CLAIMS[1], 1), median=9.0, rate=2000.0, processor_ms=0.7
    )
    database = msgspec.structs.replace(claims, quantity=DATABASE, median=0.4, processor_ms=None)
    requests, processor = shown(claims, database)
    assert requests == ["1,000", "1", "", "", "", "", "", "2,000"]
    assert processor == ["1,000", "1", "", "", "0.70", "0.40", "", ""]


def test_hosts_that_poll_fill_one_processor() -> None:
    """60 seconds, divided by what one poll takes."""
    polls = msgspec.structs.replace(
        STARTED, case=named(POLLS, 1), quantity="a request", median=1.0, processor_ms=0.3
    )
    assert shown(polls) == [["1,000", "1", "", "", "", "", "0.30", "200,000"]]


def test_a_large_fleet_is_divided_into_services_of_the_measured_size() -> None:
    """Ten million hosts in services of 100,000: polls and claims of one, and of all 100."""
    started, warm, polls, claims = (
        msgspec.structs.replace(
            STARTED, size=100_000, case=named(case, 1), quantity=quantity, median=median
        )
        for case, quantity, median in (
            (START, "", 2000.0),
            (WARM, "PSS of a worker", 250.0),
            (POLLS, "a request", 1.0),
            (CLAIMS[1], "", 5.0),
        )
    )
    polls = msgspec.structs.replace(polls, processor_ms=0.6)
    claims = msgspec.structs.replace(claims, rate=2000.0)
    assert shown(started, warm, polls, claims)[-1] == [
        *("100,000", "100", "250", "2.00"),
        *("1,667", "1.00", "2,000", "200,000"),
    ]


def test_the_figures_of_a_busy_machine_say_so() -> None:
    """By its load at the start of the run."""
    run = new_run({})
    run.results.append(STARTED)
    for load, is_busy in ((0.4, False), (16.0, True)):
        run.machine["load at the start"] = load
        assert ("Other programs used the machine" in scaling_tables(run)) is is_busy


def test_what_could_not_be_measured_is_named() -> None:
    """With the reason, below the tables of its engine."""
    run = new_run({})
    failed = msgspec.structs.replace(STARTED, case="load", median=None, error="no memory")
    late = msgspec.structs.replace(
        STARTED, case=named(CANDIDATES, 1), median=None, gave_up_after_s=60.0
    )
    run.results.extend([failed, late])
    text = scaling_tables(run)
    assert "Not measured: 1,000 hosts, load: no memory" in text
    assert "1 workers: candidates, limit 10: a request took longer than 60 s" in text
