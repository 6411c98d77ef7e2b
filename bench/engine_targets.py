# SPDX-License-Identifier: Apache-2.0
"""The targets of the benchmark on real databases, and whether a run meets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bench.claim_floor import BY_HAND, BY_STORE
from bench.results import BERTH, ORIGINAL, Result, find
from bench.targets import Verdict

#: The rate of claim loops as a multiple of Placement's, on one server; no target for a cluster.
_TIMES_MIN: Final = 50
_FLOORS_MAX: Final = 2
_ENGINES_WITH_TARGET: Final = ("postgresql", "mariadb")


def engine_verdicts(results: Sequence[Result]) -> list[Verdict]:
    """By engine: the rate compared with Placement's, and that no client sees a failure."""
    engines = dict.fromkeys(result.scenario for result in results if result.server == BERTH)
    return [
        verdict
        for engine in engines
        for verdict in (
            *(_rates(results, engine) if engine in _ENGINES_WITH_TARGET else ()),
            *_near_the_floor(results, engine),
            *_failures(results, engine),
        )
    ]


def _rates(results: Sequence[Result], engine: str) -> Iterator[Verdict]:
    for result in results:
        if (result.scenario, result.server, result.quantity) != (engine, BERTH, "claim loop"):
            continue
        theirs = find(results, result.key, ORIGINAL)
        measured, met = "", None
        if theirs is not None and theirs.rate and result.rate:
            times = result.rate / theirs.rate
            measured = f"{times:,.0f} × ({result.rate:,.0f} and {theirs.rate:,.1f} a second)"
            met = times >= _TIMES_MIN
        target = f"≥ {_TIMES_MIN} × Placement's rate"
        yield Verdict(f"{engine}: claim loop, {result.case}", target, measured, met)


def _near_the_floor(results: Sequence[Result], engine: str) -> Iterator[Verdict]:
    """A claim of the store, compared with the same writes by hand."""
    medians = {
        result.quantity: result.median
        for result in results
        if result.scenario == engine and result.quantity in (BY_STORE, BY_HAND)
    }
    store, by_hand = medians.get(BY_STORE), medians.get(BY_HAND)
    if store and by_hand:
        times = store / by_hand
        target = f"≤ {_FLOORS_MAX} × the same by hand"
        yield Verdict(f"{engine}: {BY_STORE}", target, f"{times:.2f} ×", times <= _FLOORS_MAX)


def _failures(results: Sequence[Result], engine: str) -> Iterator[Verdict]:
    """Lost claims, and conflicts that a retry could have hidden."""
    ours = [result for result in results if (result.scenario, result.server) == (engine, BERTH)]
    claims = [
        result
        for result in ours
        if result.quantity in ("claim loop", "") and result.rate is not None
    ]
    if not claims:
        return
    lost = sum(result.lost for result in ours)
    yield Verdict(f"{engine}: all claims", "none lost, none doubled", f"{lost}", lost == 0)
    failed = sum(result.conflicts + sum(result.failures.values()) for result in claims)
    counted = f"{failed} of {sum(result.count for result in claims) + failed:,}"
    yield Verdict(f"{engine}: claims", "no conflict, no failure", counted, failed == 0)
