# SPDX-License-Identifier: Apache-2.0
"""Relations between groups, from names of groups and levels to numbers of demands and traits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from berth.candidates.plan import PlannedRelation
from berth.candidates.request import CandidatesRequest
from berth.model.ids import TraitId


class Relations(NamedTuple):
    """The relations of a request.

    Attributes:
        subtrees: see `Plan.subtrees`.
        others: all other relations.
    """

    subtrees: tuple[tuple[int, ...], ...]
    others: tuple[PlannedRelation, ...]

    def among(self, count: int) -> Relations:
        """What they ask of the first `count` demands alone, whatever serves the others."""
        # The common ancestor may be the provider of another demand.
        subtrees = (numbers for numbers in self.subtrees if max(numbers) < count)
        return Relations(
            tuple(subtrees),
            tuple(
                relation
                for relation in (_among(count, each) for each in self.others)
                if len(relation.groups) > 1
            ),
        )

    def isolates(self, suffixed: set[int]) -> bool:
        """Whether no two of the suffixed groups may be on one provider."""
        return any(_isolates(relation, suffixed) for relation in self.others)

    def without_isolation(self, suffixed: set[int]) -> tuple[PlannedRelation, ...]:
        """`others`, without those that say only what `isolates` says."""
        return tuple(each for each in self.others if not _isolates(each, suffixed))


def relations_of(
    request: CandidatesRequest,
    demands_of: Mapping[str, tuple[int, ...]],
    levels: Mapping[str, TraitId],
) -> Relations:
    """The relations of a request, each once.

    Args:
        demands_of: suffix -> the demands of the group.
        levels: the ids of the traits that relations name.
    """
    subtrees = [*request.same_subtree]
    others = []
    for relation in dict.fromkeys(request.relations):
        if relation.is_together and relation.at == "subtree":
            subtrees.append(frozenset(relation.suffixes))
        else:
            at = levels.get(relation.at, relation.at)
            groups = tuple(demands_of[suffix] for suffix in relation.suffixes)
            others.append(PlannedRelation(relation.is_together, at, groups))
    # One suffix alone restricts nothing, and a restriction holds no more for being repeated.
    return Relations(
        tuple(
            tuple(sorted(number for suffix in suffixes for number in demands_of[suffix]))
            for suffixes in dict.fromkeys(subtrees)
            if len(suffixes) > 1
        ),
        tuple(others),
    )


def _among(count: int, relation: PlannedRelation) -> PlannedRelation:
    groups = [tuple(n for n in group if n < count) for group in relation.groups]
    return PlannedRelation(relation.is_together, relation.at, tuple(filter(None, groups)))


def _isolates(relation: PlannedRelation, suffixed: set[int]) -> bool:
    apart = not relation.is_together and relation.at == "provider"
    return apart and suffixed == set(relation.demands)
