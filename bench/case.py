# SPDX-License-Identifier: Apache-2.0
"""Cases: one thing to measure on a fleet that is there; and stages: a fleet with all its cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fleet import Fleet
from bench.sample import Round, Samples
from bench.server import RunningServer


@dataclass(frozen=True, slots=True)
class Case:
    """Something to measure on a running server, repeatable on the same server."""

    #: The scenario that it belongs to, as `--scenario` names it.
    scenario: str
    name: str
    measure: Callable[[RunningServer, Round], Samples]
    #: Cases of one ladder, in order, ask ever more: where one took too long, the later ones are
    #: not asked.
    ladder: str = ""
    #: False for what would wear out the original, or what it does not have.
    for_peer: bool = True


@dataclass(frozen=True, slots=True)
class AloneCase:
    """Something to measure on berth's database while nothing serves it."""

    scenario: str
    name: str
    measure: Callable[[Path, Round], Samples]
    #: Whether a second round would tell anything.
    is_repeated: bool = True


@dataclass(frozen=True, slots=True)
class Stage:
    """A fleet, and what is measured on it."""

    fleet: Fleet
    cases: Sequence[Case]
    alone: Sequence[AloneCase] = ()
    #: Loaded by `bulk` into berth alone; otherwise through the API, and into the original too.
    in_bulk: bool = False
    #: Worker processes; None for as many as were asked for.
    workers_count: int | None = None
