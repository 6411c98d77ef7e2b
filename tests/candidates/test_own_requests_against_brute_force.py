# SPDX-License-Identifier: Apache-2.0
"""The flavor that berth takes for what a consumer has asked for is the only one that can be it.

Source: spec/beyond.md 5.5.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, note, seed, settings

from berth.api.berth_v1.own_requests import Basis, inferred_request
from berth.candidates import Budget
from berth.index.snapshot import Snapshot
from berth.model.ids import ProviderId, ProviderUUID
from berth.store.placements import Standing
from tests.brute_question import Request, capacity, find
from tests.brute_scenario import what_if
from tests.candidates.engine import Stand
from tests.candidates.strategies import Dice, fleet, request, seeded
from tests.effort import SEED, scaled
from tests.worlds import World, provider_uuid

#: (provider, class) -> amount.
Amounts = Mapping[tuple[str, str], int]


def fleet_with_flavors(dice: Dice) -> World:
    """A world with several flavors."""
    world = fleet(dice)
    return replace(world, flavors={f"f{n}": request(dice, world) for n in range(6)})


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(fleet_with_flavors))
def test_a_flavor_takes_exactly_what_the_consumer_holds(stand: Stand, world: World) -> None:
    """It is the basis if it is the only one of which brute force finds such a candidate on this
    host; otherwise the groups add up to what the consumer holds."""
    standing = stand(world)
    standing.note()
    idle = what_if(world, {"nothing_used": True})
    snapshot = standing.index.snapshot()
    for flavor in world.flavors.values():
        for amounts in _some(idle, flavor):
            note(json.dumps([*map(str, amounts.items())]))
            due = [name for name in world.flavors if _takes(idle, world.flavors[name], amounts)]
            own = inferred_request(_standing(snapshot, amounts), snapshot, Budget())
            if len(due) == 1:
                assert (own.basis, own.request) == (Basis.FLAVOR, {"flavor": due[0]})
            else:
                assert own.basis is Basis.ALLOCATIONS
                assert _asked(own.request) == _by_class(amounts)
            providers = {provider_uuid(provider) for provider, _ in amounts}
            assert providers <= {each for group in own.mappings.values() for each in group}


def _some(idle: World, request: Request) -> Iterator[Amounts]:
    """What a few candidates of a request take."""
    candidates = [each for several in find(idle, request).values() for each in several]
    found = {each.amounts for each in candidates if each.amounts}
    for amounts in sorted(found, key=sorted)[:3]:
        yield dict(amounts)


def _takes(idle: World, flavor: Request, amounts: Amounts) -> bool:
    """Whether a candidate on the consumer's host takes exactly that, drained or not.

    How an amount is split follows from what else is free: then nothing is.
    """
    if any("split" in group for group in flavor["groups"].values()):
        idle = _only_free(idle, amounts)
    host = dict(flavor.get("host", {}))
    before = host.get("in")
    lists = [] if before is None else before if isinstance(before[0], list) else [before]
    there = sorted({provider_uuid(provider) for provider, _ in amounts})
    host["in"] = [*lists, there] if lists else there
    found = find(idle, {**flavor, "host": host, "tolerate": "*"})
    return any(dict(each.amounts) == amounts for several in found.values() for each in several)


def _only_free(idle: World, amounts: Amounts) -> World:
    """The world in which everything is used but some amounts."""
    return replace(
        idle,
        providers=tuple(
            replace(
                each,
                stocks={
                    name: replace(
                        stock, used=max(capacity(stock) - amounts.get((each.name, name), 0), 0)
                    )
                    for name, stock in each.stocks.items()
                },
            )
            for each in idle.providers
        ),
    )


def _standing(snapshot: Snapshot, amounts: Amounts) -> Standing:
    standing = Standing(generation=None)
    for (provider, name), amount in amounts.items():
        uuid = ProviderUUID(provider_uuid(provider))
        at = snapshot.locate_uuid(uuid)
        assert at is not None
        number = int(snapshot.block(at.block_id).provider_ids[at.node, at.row])
        standing.allocations.setdefault(uuid, {})[name] = amount
        standing.used[ProviderId(number), snapshot.names.class_ids[name]] = amount
    return standing


def _asked(request: Mapping[str, Any]) -> Counter[str]:
    asked: Counter[str] = Counter()
    for group in request["groups"].values():
        asked.update(group["resources"])
    return asked


def _by_class(amounts: Amounts) -> Counter[str]:
    sums: Counter[str] = Counter()
    for (_, name), amount in amounts.items():
        sums[name] += amount
    return sums
