# SPDX-License-Identifier: Apache-2.0
"""Cases measure one thing on a loaded fleet; stages are fleets with their cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fleet import Fleet
from bench.sample import Round, Samples
from bench.server import RunningServer


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement on a running server, repeatable on the same server."""

    #: The scenario that it belongs to, as `--scenario` names it.
    scenario: str
    name: str
    measure: Callable[[RunningServer, Round], Samples]
    #: Cases of one ladder, in order, ask ever more: where one took too long, the later ones are
    #: not asked.
    ladder: str = ""
    #: False for what would wear out Placement, or what it does not have.
    for_peer: bool = True
    #: Whether the floor can answer it: for a GET.
    has_floor: bool = False


@dataclass(frozen=True, slots=True)
class AloneCase:
    """A measurement on berth's database while no service uses it."""

    scenario: str
    name: str
    measure: Callable[[Path, Round], Samples]
    #: Whether a second round would tell anything.
    is_repeated: bool = True


@dataclass(frozen=True, slots=True)
class Stage:
    """A fleet, and the cases to measure on it."""

    fleet: Fleet
    cases: Sequence[Case]
    alone: Sequence[AloneCase] = ()
    #: False for a fleet that is too large for Placement.
    for_peer: bool = True
    #: Worker processes; None for as many as were asked for.
    workers_count: int | None = None
