# SPDX-License-Identifier: Apache-2.0
"""What is made of a run on real databases: rates side by side, and what no client must see."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.claim_floor import BY_HAND, BY_STORE
from bench.engine_targets import engine_verdicts
from bench.pages import write_engine_pages
from bench.results import ORIGINAL, Result, new_run

OURS = Result(
    scenario="postgresql",
    fleet="flat",
    size=1000,
    case="spread, 16 clients",
    quantity="claim loop",
    server="berth",
    count=100,
    median=20.0,
    rate=500.0,
)
THEIRS = msgspec.structs.replace(OURS, server=ORIGINAL, median=900.0, rate=10.0)


@pytest.mark.parametrize(("rate", "is_met"), [(10.0, True), (10.1, False)])
def test_a_claim_loop_is_held_to_fifty_times_the_originals_rate(rate: float, is_met: bool) -> None:
    """By the claims a second of all clients together."""
    verdict, *_ = engine_verdicts([OURS, msgspec.structs.replace(THEIRS, rate=rate)])
    assert verdict.is_met is is_met
    assert "500 and 10" in verdict.measured


def test_without_the_original_a_rate_is_not_judged() -> None:
    """Nor where it has done nothing in the time."""
    for results in ([OURS], [OURS, msgspec.structs.replace(THEIRS, rate=0.0)]):
        assert engine_verdicts(results)[0].is_met is None


def test_a_cluster_is_judged_by_what_clients_see_only() -> None:
    """Its rates are reported; a conflict that a client sees, or a lost claim, is a fault."""
    galera = msgspec.structs.replace(
        OURS, scenario="galera", conflicts=2, failures={500: 1}, lost=3
    )
    lost, shown = engine_verdicts([galera, msgspec.structs.replace(THEIRS, scenario="galera")])
    assert (lost.measured, lost.is_met) == ("3", False)
    assert (shown.measured, shown.is_met) == ("3 of 103", False)


def test_the_page_has_every_engine_and_the_verdicts(tmp_path: Path) -> None:
    """And the results stand beside it, to be rendered again."""
    run = new_run({"rounds": 2})
    run.results.extend([OURS, THEIRS])
    write_engine_pages(run, tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert "### postgresql" in page
    assert "50 × (500 and 10.0 a second)" in page
    assert (tmp_path / "results.json").exists()


@pytest.mark.parametrize(("median", "is_met"), [(4.0, True), (4.1, False)])
def test_a_claim_is_held_to_twice_the_same_writes_by_hand(median: float, is_met: bool) -> None:
    """Both in one process, in turns."""
    ours = msgspec.structs.replace(OURS, quantity=BY_STORE, median=median, rate=None)
    by_hand = msgspec.structs.replace(ours, quantity=BY_HAND, median=2.0)
    verdict, *_ = engine_verdicts([ours, by_hand])
    assert (verdict.is_met, verdict.measured) == (is_met, f"{median / 2:.2f} ×")
