# SPDX-License-Identifier: Apache-2.0
"""Placements by plain loops (spec/beyond.md 5): what several consumers can get together.

Candidates are those of `tests.brute_question`; a placement of several is any selection of them
that fits together, since claims only add to what is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tests.brute_capacity import TooManyStates
from tests.brute_force import Candidate
from tests.brute_question import Request, capacity, found_at, read
from tests.worlds import World, provider_uuid

#: States of one fleet that are tried at most.
STATES_MAX: Final = 100

#: A group of hosts: the key, and the value of the label or the name of the host.
Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_per` and `within` as they are sent."""

    max_per: Mapping[str, int] = field(default_factory=dict)
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate, and its host."""

    candidate: Candidate
    host: str


def places(fleet: World, request: Request) -> list[Placed]:
    """Every candidate with its host (2.6, `host`)."""
    asked = read(fleet, request)
    anchors: dict[Candidate, set[str]] = {}
    for each in fleet.providers:
        if each.parent is None:
            for _, candidates in found_at(fleet, asked, each.name):
                for candidate in candidates:
                    anchors.setdefault(candidate, set()).add(each.name)
    return [
        Placed(candidate, min(several, key=provider_uuid)) for candidate, several in anchors.items()
    ]


def groups(fleet: World, key: str, host: str) -> frozenset[Group]:
    """The groups of a host by a key (5.2)."""
    members = fleet.by_name[host].aggregates
    having = [fleet.labels[each] for each in members if key in fleet.labels.get(each, {})]
    return frozenset((key, labels[key]) for labels in having) or frozenset({("", host)})


def after(fleet: World, placed: Iterable[Placed]) -> World:
    """The world when some placements have been claimed."""
    taken: Counter[tuple[str, str]] = Counter()
    for each in placed:
        taken.update(dict(each.candidate.amounts))
    providers = (
        replace(
            provider,
            stocks={
                name: replace(stock, used=stock.used + taken[provider.name, name])
                for name, stock in provider.stocks.items()
            },
        )
        for provider in fleet.providers
    )
    return replace(fleet, providers=tuple(providers))


def are_within_limits(fleet: World, limits: Limits, placed: Sequence[Placed]) -> bool:
    """Whether `max_per` and `within` hold for some placements."""
    for key, most in limits.max_per.items():
        counts = Counter(group for each in placed for group in groups(fleet, key, each.host))
        if counts and max(counts.values()) > most:
            return False
    if limits.within is None or not placed:
        return True
    common = frozenset.intersection(*(groups(fleet, limits.within, each.host) for each in placed))
    return bool(common)


def fit_together(
    fleet: World, limits: Limits, count: int, candidates: Sequence[Placed]
) -> Sequence[Placed] | None:
    """So many of some candidates that can be placed together, each any number of times; None if
    there are none. Not for amounts that are split."""
    return next(_selections(fleet, limits, count, candidates, []), None)


def fit_in_turn(fleet: World, request: Request, limits: Limits, count: int) -> bool:
    """Whether so many can be placed one after another. Also for amounts that are split, which
    depend on what is left.

    Raises:
        TooManyStates: it would take too long to find out.
    """
    states = [STATES_MAX]
    seen: set[tuple[frozenset[tuple[tuple[str, str], int]], tuple[str, ...]]] = set()

    def fit(placed: list[Placed]) -> bool:
        if len(placed) == count:
            return True
        taken: Counter[tuple[str, str]] = Counter()
        for each in placed:
            taken.update(dict(each.candidate.amounts))
        state = frozenset(taken.items()), tuple(sorted(each.host for each in placed))
        if state in seen:
            return False
        seen.add(state)
        states[0] -= 1
        if not states[0]:
            raise TooManyStates
        several = places(after(fleet, placed), request)
        return any(
            fit([*placed, each])
            for each in several
            if are_within_limits(fleet, limits, [*placed, each])
        )

    return fit([])


def _selections(
    fleet: World,
    limits: Limits,
    count: int,
    candidates: Sequence[Placed],
    chosen: list[Placed],
) -> Iterator[Sequence[Placed]]:
    if len(chosen) == count:
        yield chosen
        return
    for number, each in enumerate(candidates):
        several = [*chosen, each]
        if are_within_limits(fleet, limits, several) and _have_capacity(fleet, several):
            yield from _selections(fleet, limits, count, candidates[number:], several)


def _have_capacity(fleet: World, placed: Iterable[Placed]) -> bool:
    used = after(fleet, placed)
    touched = {name for each in placed for (name, _), _ in each.candidate.amounts}
    return all(
        stock.used <= capacity(stock) or stock.used == fleet.by_name[name].stocks[of].used
        for name in touched
        for of, stock in used.by_name[name].stocks.items()
    )
