# SPDX-License-Identifier: Apache-2.0
"""What an explanation says. Source: spec/beyond.md 3.3 to 3.6.

`at_least` marks figures that the time has cut short: they are lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from berth.candidates.references import UnknownName, UnknownReference
from berth.index.named import NamedProvider


class Verdict(Enum):
    """Why nothing fits, or that something does."""

    UNKNOWN_NAME = "unknown_name"
    FITS = "fits"
    GAVE_UP = "gave_up"
    DRAINED = "drained"
    NEVER = "never"
    FRAGMENTED = "fragmented"
    USED_UP = "used_up"


class Count(NamedTuple):
    """A number of hosts."""

    hosts: int
    at_least: bool


class HostCounts(NamedTuple):
    """Attributes:
    total, pools: of the fleet.
    fit, fit_if_undrained, fit_if_empty: as asked, without drains, and with nothing used as well.
    """

    total: int
    pools: int
    fit: Count
    fit_if_undrained: Count
    fit_if_empty: Count


class Stage(NamedTuple):
    """One atom.

    Attributes:
        alone: the hosts that fit it alone; None for relations.
        left: the hosts that fit it and all atoms before it.
        has, if_empty: for a class: the hosts that have any inventory of it, and those that fit the
            atom alone with nothing used.
    """

    at: str
    text: str
    left: int
    alone: int | None
    has: int | None
    if_empty: int | None
    at_least: bool


class Relaxation(NamedTuple):
    """A change with which some host fits.

    Attributes:
        drop, texts: the atoms that are left out.
        hosts: how many hosts fit without them.
        reduce_to, hosts_reduced: for one class: the largest smaller amount with which some host
            fits, and how many fit; None if there is none.
    """

    drop: tuple[str, ...]
    texts: tuple[str, ...]
    hosts: int
    reduce_to: int | None
    hosts_reduced: int | None
    at_least: bool


Reason = Literal["used", "capacity", "max_unit", "min_unit", "step_size", "no_inventory"]


class Inventory(NamedTuple):
    """What the provider that could give most has of a class."""

    provider: NamedProvider
    free: int
    capacity: int
    max_unit: int


class Shortage(NamedTuple):
    """What a host lacks of a class.

    Attributes:
        possible: the largest smaller amount with which the host fits, 0 if there is none.
        best: None if no provider has any inventory.
    """

    asked: int
    possible: int
    reason: Reason
    best: Inventory | None


class Lack(NamedTuple):
    """An atom that a host lacks; `shortage` if it asks for a class."""

    at: str
    text: str
    shortage: Shortage | None


class NearHost(NamedTuple):
    """A host that fits if nothing of what it lacks is asked for; it needs all of that."""

    host: NamedProvider
    lacks: tuple[Lack, ...]


class Ineffective(NamedTuple):
    """A relation that all hosts that fit meet whatever it says; `at` is its JSON pointer."""

    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why nothing fits.

    Attributes:
        binding: the atoms of which each alone keeps every host from fitting.
        relaxations, split_would_fit, nearest: None if some host fits, or if not asked for.
        split_would_fit: the hosts that fit if every amount could come from several providers.
        paint: one byte for each host, in ascending order of root uuids: see spec/beyond.md 3.6.
        is_complete: whether no figure was cut short.
    """

    verdict: Verdict
    summary: str
    hosts: HostCounts
    stages: tuple[Stage, ...]
    binding: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] | None = None
    split_would_fit: Count | None = None
    nearest: tuple[NearHost, ...] | None = None
    unknown_names: tuple[UnknownName, ...] = ()
    unknown_references: tuple[UnknownReference, ...] = ()
    ineffective: tuple[Ineffective, ...] = ()
    paint: bytes | None = None
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts of an explanation are wanted.

    Attributes:
        nearest_max: how many of the nearest hosts.
    """

    nearest_max: int = 5
    relaxations: bool = True
    paint: bool = False
