# SPDX-License-Identifier: Apache-2.0
"""Scores of candidates by plain loops (spec/beyond.md 2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any
from uuid import UUID

from tests.brute_capacity import Counted, with_use
from tests.brute_force import Candidate
from tests.brute_question import Request, capacity, matches, root_of, tree_of
from tests.worlds import World, provider_uuid

#: An order as JSON.
Order = Mapping[str, Any]


def score(fleet: World, order: Order, candidate: Candidate, host: str) -> float:
    """The score of a candidate that is anchored at a host; more is better."""
    preferred = sum(
        each["weight"] for each in order.get("prefer", ()) if _holds(fleet, each, candidate, host)
    )
    return float(order.get("weight", 1) * strategy(fleet, order, candidate, host) + preferred)


def strategy(fleet: World, order: Order, candidate: Candidate, host: str) -> float:
    """What the strategy alone gives, within 0..1."""
    kind = order.get("by", "any")
    if kind == "random":
        seed = order.get("seed", 0)
        digest = blake2b(seed.to_bytes(8, "big") + UUID(provider_uuid(host)).bytes).digest()
        return int(int.from_bytes(digest[:8], "big")) / 2**64
    if kind in {"pack", "spread"}:
        full = fullness(fleet, candidate, order.get("classes", {}))
        return full if kind == "pack" else 1 - full
    return 0.0


def fullness(fleet: World, candidate: Candidate, weights: Mapping[str, int]) -> float:
    """How full the trees that give something are after the placement, as a weighted mean."""
    classes = sorted({name for (_, name), _ in candidate.amounts})
    weight = sum(weights.get(name, 1) for name in classes)
    full = sum(weights.get(name, 1) * _fullness_of(fleet, candidate, name) for name in classes)
    return full / weight if weight else 0.0


def _fullness_of(fleet: World, candidate: Candidate, name: str) -> float:
    given = {provider: n for (provider, each), n in candidate.amounts if each == name}
    roots = {root_of(fleet, provider) for provider in given}
    stocks = [
        each.stocks[name]
        for root in roots
        for each in tree_of(fleet, root)
        if name in each.stocks and each.name not in fleet.drained
    ]
    # Where more is reserved than there is, there is nothing.
    several = [(stock.used, max(0, capacity(stock))) for stock in stocks]
    used = sum(min(each) for each in several)
    return (used + sum(given.values())) / sum(most for _, most in several)


def _holds(fleet: World, item: Mapping[str, Any], candidate: Candidate, host: str) -> bool:
    """Whether a preference holds on the host's root, or on all providers of a group; that of
    a group that another alternative has does not."""
    of = item.get("of", "host")
    names = {host} if of == "host" else dict(candidate.mappings).get(of, frozenset())
    return bool(names) and all(matches(fleet, item, fleet.by_name[name]) for name in names)


def loss(
    fleet: World, candidate: Candidate, host: str, flavors: Iterable[tuple[Request, float]]
) -> float:
    """What a host loses for some flavors, by the true maxima."""
    after = with_use(fleet, dict(candidate.amounts))
    return sum(
        weight * (Counted(fleet, flavor).one(host) - Counted(after, flavor).one(host))
        for flavor, weight in flavors
    )
