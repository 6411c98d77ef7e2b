# SPDX-License-Identifier: Apache-2.0
"""The tables of `docs/scaling.md`: for each engine a row for each size and number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from bench.pages import about
from bench.report import Row, markdown_table, number
from bench.results import BERTH, Result, Run, find

#: The cases.
START: Final = "start"
CANDIDATES: Final = "candidates, limit 10"
READS: Final = "inventories of a provider"
CLAIMS: Final = ("PUT allocations, 1 client", "PUT allocations, 16 clients")
POLLS: Final = "poll"
MEMORY: Final = "after the start"
WARM: Final = "after requests"

#: The quantity of a case that is the processor time of the database's servers.
DATABASE: Final = "processor time of the database"

#: For people.
_ENGINES: Final = {
    "sqlite": "SQLite",
    "postgresql": "PostgreSQL",
    "mariadb": "MariaDB",
    "galera": "Galera: three nodes, and a service at each",
}

#: More than the run before has left behind.
_LOAD_MAX: Final = 1.5
_WAS_BUSY: Final = """\
Other programs used the machine at the same time.
CPU times are then up to twice those of an idle machine; times of a request, rates and starts say \
little.
"""

_MANY: Final = ", 16 clients"
#: Seconds between two reports of an agent.
_INTERVAL_S: Final = 60
#: Of a fleet that no single service carries.
_HOSTS: Final = 10_000_000


class Column(NamedTuple):
    """A column: which result it shows, and what of it."""

    heading: str
    case: str
    show: Callable[[Result], float | None]
    quantity: str = ""


class Table(NamedTuple):
    """A table of an engine."""

    title: str
    columns: Sequence[Column]


def named(case: str, workers_count: int) -> str:
    """The name of a case with a number of workers."""
    return f"{workers_count} workers: {case}"


def _median(result: Result) -> float | None:
    return result.median


def _seconds(result: Result) -> float | None:
    return None if result.median is None else result.median / 1000


def _rate(result: Result) -> float | None:
    return result.rate


def _processor(result: Result) -> float | None:
    return result.processor_ms


def _hosts_polled(result: Result) -> float | None:
    """How many hosts can poll once a minute before one processor is busy."""
    return None if not result.processor_ms else _INTERVAL_S * 1000 / result.processor_ms


TABLES: Final = (
    Table(
        "Start and memory",
        (
            Column("start, s", START, _seconds),
            Column("memory of a worker, MiB", MEMORY, _median, "PSS of a worker"),
            Column("after requests, MiB", WARM, _median, "PSS of a worker"),
        ),
    ),
    Table(
        "Time of a request by one client, and requests a second by 16",
        (
            Column("candidates, ms", CANDIDATES, _median),
            Column("per s", CANDIDATES + _MANY, _rate),
            Column("read, ms", READS, _median),
            Column("per s", READS + _MANY, _rate),
            Column("claim, ms", CLAIMS[0], _median),
            Column("per s", CLAIMS[1], _rate),
        ),
    ),
    Table(
        "CPU time of a request by 16 clients",
        (
            Column("candidates, ms", CANDIDATES + _MANY, _processor),
            Column("read, ms", READS + _MANY, _processor),
            Column("claim, ms", CLAIMS[1], _processor),
            Column("claim, database, ms", CLAIMS[1], _median, DATABASE),
            Column("poll, ms", POLLS, _processor, "a request"),
            Column("hosts that poll each minute, per CPU", POLLS, _hosts_polled, "a request"),
        ),
    ),
)


def scaling_tables(run: Run) -> str:
    """The tables of every engine that was measured, and what was not."""
    engines = dict.fromkeys(result.scenario for result in run.results)
    parts = [about(run)]
    if float(run.machine["load at the start"]) > _LOAD_MAX:
        parts.append(_WAS_BUSY)
    for engine in engines:
        results = [result for result in run.results if result.scenario == engine]
        parts.append(f"### {_ENGINES.get(engine, engine)}\n")
        parts += [f"{table.title}:\n\n{_rows(table, results)}" for table in TABLES]
        parts.append(f"{_HOSTS:,} hosts in equal services:\n\n{_divided(results)}")
        parts += [f"{problem}\n" for problem in _problems(results)]
    return "\n".join(parts)


def _rows(table: Table, results: Sequence[Result]) -> str:
    headings = ["hosts", "workers", *(column.heading for column in table.columns)]
    rows = [
        row
        for size in dict.fromkeys(result.size for result in results)
        for workers in _workers(results)
        if any((row := _row(table, results, size, workers))[2:])
    ]
    return markdown_table(headings, rows, numbers_from=0)


def _workers(results: Sequence[Result]) -> list[int]:
    """The numbers of workers, as the names of the cases have them."""
    starts = (result.case.partition(" ")[0] for result in results)
    return list(dict.fromkeys(int(start) for start in starts if start.isdigit()))


def _row(table: Table, results: Sequence[Result], size: int, workers: int) -> Row:
    return [
        f"{size:,}",
        str(workers),
        *(_cell(column, results, size, workers) for column in table.columns),
    ]


def _cell(column: Column, results: Sequence[Result], size: int, workers: int) -> str:
    value = _value(column, results, size, workers)
    return "" if value is None else number(value)


def _value(column: Column, results: Sequence[Result], size: int, workers: int) -> float | None:
    first = results[0]
    key = first.scenario, first.fleet, size, named(column.case, workers), column.quantity
    result = find(results, key, BERTH)
    return None if result is None else column.show(result)


def _divided(results: Sequence[Result]) -> str:
    """What a very large fleet needs if each service has as many hosts as were measured."""
    headings = (
        *("hosts of a service", "services", "memory of a worker, MiB", "start, s"),
        *("polls a second", "CPUs for them", "claims a second", "in all services"),
    )
    rows = [
        row
        for size in dict.fromkeys(result.size for result in results)
        if size and (row := _share(results, size)) is not None
    ]
    return markdown_table(headings, rows, numbers_from=0)


def _share(results: Sequence[Result], size: int) -> Row | None:
    """One service of several equal ones; None if it was not measured."""
    memory, start, poll = (
        _value(Column("", *of), results, size, 1)
        for of in (
            (WARM, _median, "PSS of a worker"),
            (START, _seconds),
            (POLLS, _processor, "a request"),
        )
    )
    rates = Column("", CLAIMS[1], _rate)
    claims = max(_value(rates, results, size, each) or 0.0 for each in _workers(results))
    if memory is None or start is None or poll is None or not claims:
        return None
    services, polls = _HOSTS / size, size / _INTERVAL_S
    figures = memory, start, polls, polls * poll / 1000, claims, claims * services
    return [f"{size:,}", f"{services:,.0f}", *map(number, figures)]


def _problems(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.error is not None:
            yield f"Not measured: {result.size:,} hosts, {result.case}: {result.error}"
        elif result.gave_up_after_s is not None:
            late = f"a request took longer than {result.gave_up_after_s:g} s"
            yield f"Not measured: {result.size:,} hosts, {result.case}: {late}"
        elif result.failures or result.conflicts or result.lost:
            faults = f"{result.conflicts} conflicts, failures {result.failures}, {result.lost} lost"
            yield f"{result.size:,} hosts, {result.name}: {faults}"
