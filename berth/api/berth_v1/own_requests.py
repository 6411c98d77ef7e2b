# SPDX-License-Identifier: Apache-2.0
"""What a consumer has asked for: the request that was kept when it was placed, or else the one that
follows from what it holds. Source: spec/beyond.md 5.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from berth.api.berth_v1.fleet_questions import expanded, flavor_to_count, plans_of
from berth.api.berth_v1.grammar import REQUEST
from berth.api.berth_v1.inputs import PointedSchema
from berth.api.berth_v1.questions import Asked, JSONObject, read_request
from berth.api.body import decode
from berth.api.errors import Refused
from berth.candidates.order import Order
from berth.candidates.place import Chosen, choose
from berth.candidates.place.bounds import Limits
from berth.candidates.question import Question
from berth.candidates.references import References, unknown_names
from berth.candidates.render_ranked import Candidate, candidates_of
from berth.index.scenario import with_usage
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp
from berth.model.ids import ClassId, ProviderId, ProviderUUID
from berth.store.placements import Standing

#: A release may know less than the one that kept the request.
_KEPT: Final = PointedSchema(REQUEST)
#: Beyond so much, doubles do not hold every integer.
_CAPACITY_MAX: Final = 2**53


class Basis(StrEnum):
    """How it is known what a consumer has asked for."""

    #: The request was kept.
    PLACED = "placed"
    #: One stored flavor can be what it holds.
    FLAVOR = "flavor"
    #: What it holds is all that is known.
    ALLOCATIONS = "allocations"


class OwnRequest(NamedTuple):
    """What a consumer has asked for.

    Attributes:
        host: where it is: the root that anchors what it holds.
        mappings: request group -> the providers that serve it.
        kept: the request as it stays with the consumer; "" if it follows from what it holds.
    """

    basis: Basis
    request: JSONObject
    host: str
    mappings: Mapping[str, Sequence[str]]
    kept: str = ""

    def asked(self, fleet: Snapshot, at: str) -> tuple[Asked, ...]:
        """Its questions.

        Args:
            at: the pointer to the consumer in the body.
        """
        return tuple(
            each._replace(parts=tuple(part._replace(at=at, is_own=True) for part in each.parts))
            for each in expanded(read_request(self.request, at), fleet)
        )


def kept_request(standing: Standing, fleet: Snapshot) -> OwnRequest | None:
    """The request that was kept; None if there is none, or if it is no longer what the consumer
    holds: its flavor, or a name in it, has changed or is gone."""
    placement = standing.placement
    if placement is None or not placement.request:
        return None
    try:
        request = decode(placement.request.encode())
        _KEPT.check(request)
        assert isinstance(request, dict), "the schema admits objects only"
        asked = expanded(read_request(request, ""), fleet)
    except Refused:
        return None
    amounts = _amounts(standing)
    questions = [each.question for each in asked]
    if amounts not in map(_sums, questions):
        return None
    if any(unknown for each in questions for unknown in unknown_names(each, fleet)):
        return None
    host, mappings = placement.host, placement.mappings
    return OwnRequest(Basis.PLACED, request, host, mappings, placement.request)


def inferred_request(standing: Standing, fleet: Snapshot, budget: Budget) -> OwnRequest:
    """The request that follows from what a consumer holds: the only flavor that can be it, or else
    its amounts.

    Raises:
        SearchGaveUp: the budget is spent.
    """
    flavors = list(_flavors(standing, fleet, budget))
    if budget.is_spent():
        raise SearchGaveUp(budget.seconds)
    return flavors[0] if len(flavors) == 1 else _of_allocations(standing, fleet)


def host_of(standing: Standing, fleet: Snapshot) -> str:
    """The host on which a consumer is that holds something."""
    return (standing.placement or _of_allocations(standing, fleet)).host


def _amounts(standing: Standing) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for given in standing.allocations.values():
        amounts.update(given)
    return amounts


def _sums(question: Question) -> Counter[str]:
    sums: Counter[str] = Counter()
    for _, group in question.groups:
        sums.update(dict(group.resources))
    return sums


def _flavors(standing: Standing, fleet: Snapshot, budget: Budget) -> Iterator[OwnRequest]:
    """The flavors of which a candidate takes exactly what a consumer holds, were nothing used."""
    amounts, only_held = _amounts(standing), None
    for name in fleet.names.records.flavors:
        asked = flavor_to_count(fleet, name)
        if not isinstance(asked, Asked) or _sums(asked.question) != amounts:
            continue
        only_held = only_held or _with_only(fleet, standing.used)
        candidate = _candidate(asked.question, only_held, standing, budget)
        if candidate is not None:
            yield OwnRequest(Basis.FLAVOR, {"flavor": name}, candidate.host, candidate.mappings)


def _candidate(
    question: Question, only_held: Snapshot, standing: Standing, budget: Budget
) -> Candidate | None:
    """A candidate of a question that takes exactly what a consumer holds; None if there is none.

    Args:
        only_held: the fleet in which nothing else is free; so any candidate takes exactly that.
    """
    host = question.host
    own_host = host._replace(within=(*host.within, tuple(standing.allocations)))
    asked = Asked(replace(question, host=own_host, tolerate="*"), ())
    order = Order()
    for _, fleet, plan in plans_of(only_held, [asked], References(only_held)):
        chosen = choose(fleet, plan, order, 1, Limits(), budget)
        if isinstance(chosen, Chosen):
            (candidate,) = candidates_of(fleet, plan, order, chosen.ranked)
            if candidate.allocations == standing.allocations:
                return candidate
    return None


def _with_only(fleet: Snapshot, amounts: Mapping[tuple[ProviderId, ClassId], int]) -> Snapshot:
    """The fleet as if a consumer held nothing, and everything else that its trees could use were
    used."""
    classes = {class_id for _, class_id in amounts}
    change: Counter[tuple[ProviderId, ClassId]] = Counter()
    for provider in _reached(fleet, {provider for provider, _ in amounts}):
        if (at := fleet.locate(provider)) is None:
            continue
        block = fleet.block(at.block_id)
        for class_id in classes:
            line = block.shape.row_of_node.get(class_id, {}).get(at.node)
            if line is not None:
                columns, place = block.columns[class_id], (line, at.row)
                capacity = int(min(columns.capacity.item(place), _CAPACITY_MAX))
                used = max(capacity - amounts.get((provider, class_id), 0), 0)
                change[provider, class_id] = used - int(columns.used.item(place))
    return with_usage(fleet, change)


def _reached(fleet: Snapshot, providers: set[ProviderId]) -> set[ProviderId]:
    """All providers of the trees of some providers, and those that share with these trees."""
    reached = set(providers)
    for at in filter(None, map(fleet.locate, providers)):
        block = fleet.block(at.block_id)
        reached.update(map(ProviderId, block.provider_ids[:, at.row].tolist()))
        tree_set = int(block.tree_aggregate_sets[at.row])
        reached.update(fleet.sharing.serving(tree_set, fleet.aggregate_sets))
    return reached


def _of_allocations(standing: Standing, fleet: Snapshot) -> OwnRequest:
    """A group for each provider that gives something. Those of one tree stay on one tree; what a
    sharing provider gives to another tree stays there."""
    trees: dict[str, list[ProviderUUID]] = {}
    for provider in standing.allocations:
        trees.setdefault(_root(fleet, provider), []).append(provider)
    pools = {root for root, several in trees.items() if _all_share(fleet, several)}
    groups: dict[str, Any] = {}
    mappings: dict[str, list[str]] = {}
    together = []
    for root, providers in trees.items():
        names = [f"_{len(groups) + number}" for number in range(1, len(providers) + 1)]
        for name, provider in zip(names, providers, strict=True):
            stays = {"in_tree": [provider]} if root in pools else {}
            groups[name] = {"resources": standing.allocations[provider], **stays}
            mappings[name] = [provider]
        if len(names) > 1 and root not in pools:
            together.append({"groups": names, "at": "tree"})
    request = {"groups": groups, **({"together": together} if together else {})}
    host = next((root for root in trees if root not in pools), next(iter(trees)))
    return OwnRequest(Basis.ALLOCATIONS, request, host, mappings)


def _root(fleet: Snapshot, provider: ProviderUUID) -> str:
    at = fleet.locate_uuid(provider)
    return provider if at is None else fleet.block(at.block_id).uuid(0, at.row)


def _all_share(fleet: Snapshot, providers: Sequence[ProviderUUID]) -> bool:
    return all(_shares(fleet, fleet.locate_uuid(each)) for each in providers)


def _shares(fleet: Snapshot, at: Location | None) -> bool:
    if at is None:
        return False
    return fleet.sharing.trait in fleet.block(at.block_id).shape.node_types[at.node].traits
