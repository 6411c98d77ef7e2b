# SPDX-License-Identifier: Apache-2.0
"""What an explanation says. Source: spec/beyond.md 3.3 to 3.6.

`at_least` marks figures that the time has cut short: they are lower bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple

from berth.candidates.references import UnknownName, UnknownReference
from berth.index.named import NamedProvider
from berth.model.inventory import Reason


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
        unmet: the conditions on its group that `best` does not meet; it could give the amount, or
            none there meets them.
    """

    asked: int
    possible: int
    reason: Reason
    best: Inventory | None
    unmet: tuple[str, ...] = ()


class Lack(NamedTuple):
    """An atom that a host lacks; `asked`, a class, and `shortage` if it asks for one."""

    at: str
    text: str
    asked: str | None = None
    shortage: Shortage | None = None


class NearHost(NamedTuple):
    """A host that fits if nothing of what it lacks is asked for; it needs all of that.

    Attributes:
        is_named: whether the request names it, or a provider of its tree.
    """

    host: NamedProvider
    lacks: tuple[Lack, ...]
    is_named: bool


class Impossible(NamedTuple):
    """Some atoms that no host meets together even with nothing used, each of them needed.

    Attributes:
        most: of one amount: the largest that any host could give.
        on_host, providers: if splitting it would help: what one host has, on how many providers.
    """

    at: tuple[str, ...]
    kind: Literal["amount", "no_inventory", "classes", "relation", "conditions"]
    text: str
    most: int | None = None
    on_host: int | None = None
    providers: int | None = None


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
        impossible: what no host could hold even with nothing used.
        instead: (pointer, suggestion) -> the hosts that fit with it instead of an unknown name, of
            those that were searched.
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
    impossible: tuple[Impossible, ...] = ()
    unknown_names: tuple[UnknownName, ...] = ()
    instead: Mapping[tuple[str, str], int] = field(default_factory=dict)
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
