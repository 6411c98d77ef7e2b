# SPDX-License-Identifier: Apache-2.0
"""Whether the structural rules of a request hold, amounts aside: which providers may serve its
groups together.

The choices for a demand are a set, an integer with a bit for each: one choice, or several where an
amount is split.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.candidates.plan import PlannedRelation, Rules
from berth.candidates.structure import Structure, bits_of


def allows(rules: Rules, structure: Structure, sets: Sequence[int]) -> bool:
    """Whether the sets of choices for all demands are allowed.

    Source: spec/allocation-candidates.md 5.3 and 5.4, spec/beyond.md 2.4.
    """
    if rules.isolate and _overlap([sets[number] for number in rules.suffixed]):
        return False
    if rules.one_per_tree and not _is_one_per_tree(structure, union_of(sets)):
        return False
    return (
        (not rules.union_traits.required or _union_holds(rules, structure, sets))
        and all(
            _is_subtree(structure, union_of([sets[number] for number in numbers]))
            for numbers in rules.subtrees
        )
        and all(_is_related(structure, relation, sets) for relation in rules.relations)
    )


def _union_holds(rules: Rules, structure: Structure, sets: Sequence[int]) -> bool:
    """Whether the providers of the unsuffixed group have the required traits together."""
    choices = bits_of(union_of([sets[number] for number in rules.unsuffixed]))
    traits = frozenset().union(*map(structure.traits, choices))
    return not any(wanted.isdisjoint(traits) for wanted in rules.union_traits.required)


def union_of(sets: Sequence[int]) -> int:
    """All choices of some sets."""
    union = 0
    for each in sets:
        union |= each
    return union


def _overlap(sets: Sequence[int]) -> bool:
    return union_of(sets).bit_count() < sum(each.bit_count() for each in sets)


def _is_one_per_tree(structure: Structure, together: int) -> bool:
    return all(structure.of_tree(choice) & together == 1 << choice for choice in bits_of(together))


def _is_subtree(structure: Structure, together: int) -> bool:
    """Whether one of some choices is an ancestor of all others."""
    tops = together
    for choice in bits_of(together):
        tops &= structure.lineage(choice)
    return tops != 0


def _is_related(structure: Structure, relation: PlannedRelation, sets: Sequence[int]) -> bool:
    """Whether the groups of a relation are together, or apart."""
    groups = [union_of([sets[number] for number in numbers]) for numbers in relation.groups]
    if not relation.is_together and _overlap(groups):
        return False
    everywhere = union_of(groups)
    for group in groups:
        for choice in bits_of(group):
            together = structure.on_level(relation.at, choice)
            excluded = everywhere & ~together if relation.is_together else together & ~group
            if not together or excluded & everywhere:
                return False
    return True
