# SPDX-License-Identifier: Apache-2.0
"""What berth is held to on real databases, and whether the results of a run meet it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bench.results import BERTH, ORIGINAL, Result, find
from bench.targets import Verdict

#: How many times the original's rate of claim loops, on one server; a cluster's is only reported.
_TIMES_MIN: Final = 50
_TIMES_OF: Final = ("postgresql", "mariadb")


def engine_verdicts(results: Sequence[Result]) -> list[Verdict]:
    """The rates beside the original's, and what no client must see, engine by engine."""
    engines = dict.fromkeys(one.scenario for one in results if one.server == BERTH)
    return [
        verdict
        for engine in engines
        for verdict in (
            *(_rates(results, engine) if engine in _TIMES_OF else ()),
            *_faults(results, engine),
        )
    ]


def _rates(results: Sequence[Result], engine: str) -> Iterator[Verdict]:
    for one in results:
        if (one.scenario, one.server, one.what) != (engine, BERTH, "claim loop"):
            continue
        theirs = find(results, one.key, ORIGINAL)
        measured, met = "", None
        if theirs is not None and theirs.rate and one.rate:
            times = one.rate / theirs.rate
            measured = f"{times:,.0f} × ({one.rate:,.0f} and {theirs.rate:,.1f} a second)"
            met = times >= _TIMES_MIN
        target = f"≥ {_TIMES_MIN} × the original's rate"
        yield Verdict(f"{engine}: claim loop, {one.case}", target, measured, met)


def _faults(results: Sequence[Result], engine: str) -> Iterator[Verdict]:
    """Lost claims, and conflicts that a retry could have hidden."""
    ours = [one for one in results if (one.scenario, one.server) == (engine, BERTH)]
    claims = [one for one in ours if one.what in ("claim loop", "") and one.rate is not None]
    if not claims:
        return
    lost = sum(one.lost for one in ours)
    yield Verdict(f"{engine}: all claims", "none lost, none doubled", f"{lost}", lost == 0)
    shown = sum(one.conflicts + sum(one.failures.values()) for one in claims)
    counted = f"{shown} of {sum(one.count for one in claims) + shown:,}"
    yield Verdict(f"{engine}: claims", "no conflict or failure shown", counted, shown == 0)
