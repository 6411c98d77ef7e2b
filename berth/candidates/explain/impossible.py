# SPDX-License-Identifier: Apache-2.0
"""What no host could hold even with nothing used: sets of atoms, each of them needed.

Source: spec/beyond.md 3.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.atoms import Atom
from berth.candidates.explain.derived import DerivedQuestions, fitting_if_split
from berth.candidates.explain.relaxations import Amount
from berth.candidates.references import UnknownReference
from berth.candidates.structural_rules import bits_of
from berth.model.explanation import Impossible
from berth.model.ids import ClassId

#: How many of these sets are named.
_NAMED_MAX: Final = 4


class _Together(NamedTuple):
    """The most that a host has on several providers."""

    on_host: int
    providers: int


def impossible_in(
    empty: DerivedQuestions,
    kept: int,
    unknown: Sequence[UnknownReference],
) -> Iterator[Impossible]:
    """The sets of some atoms that no host meets, without any atom in two of them.

    Args:
        empty: the fleet with nothing used.
        unknown: the references of the question that stand for nothing.
    """
    for _ in range(_NAMED_MAX):
        if empty.fit(kept).any():
            return
        core = _core_of(empty, kept)
        described = _described(empty, core, unknown) if core else None
        if described is None or empty.budget.is_spent():
            return
        kept &= ~core
        yield described


def _core_of(empty: DerivedQuestions, kept: int) -> int:
    """Some of the atoms, which no host meets, although some host meets all but any one of them."""
    for number in bits_of(kept):
        if not empty.atoms[number].is_relation and not empty.alone(number).any():
            return 1 << number
    before = 0
    while kept != before:
        before = kept
        for number in bits_of(kept):
            without = kept & ~(1 << number)
            if not empty.budget.is_spent() and not empty.fit(without).any():
                kept = without
    return kept


def _described(
    empty: DerivedQuestions,
    core: int,
    unknown: Sequence[UnknownReference],
) -> Impossible:
    atoms = [empty.atoms[number] for number in bits_of(core)]
    at = tuple(atom.at for atom in atoms)
    if len(atoms) == 1 and atoms[0].asked is not None:
        number = core.bit_length() - 1
        if empty.having(number).any():
            return _of_amount(empty, number)
        return Impossible(at, "no_inventory", f"No provider has {atoms[0].asked[0]}.")
    if any(atom.is_relation for atom in atoms):
        *others, last = atoms
        if others and all(atom.asked for atom in others):
            where = last.text.partition(":")[0]
            return Impossible(at, "relation", f"No host can give {_listed(others)} {where}.")
        return Impossible(at, "relation", _met_by_none(atoms, unknown))
    groups = {atom.group for atom in atoms}
    if all(atom.asked for atom in atoms):
        whose = "provider" if len(groups) == 1 and "" not in groups else "host"
        return Impossible(at, "classes", f"No {whose} can give {_listed(atoms)} together.")
    return Impossible(at, "conditions", _met_by_none(atoms, unknown))


def _of_amount(empty: DerivedQuestions, number: int) -> Impossible:
    """More of a class than any provider, or any host that splits it, can give."""
    atom = empty.atoms[number]
    assert atom.asked is not None
    largest = Amount(empty, number).largest(1 << number, empty.fleet.all())
    most = largest.amount if largest else 0
    who = "host" if empty.reduction.split_of(atom) else "provider"
    text = f"No {who} can give {_words(atom)} at once; the most is {most:,}."
    together = _together(empty, number)
    if together is None:
        return Impossible((atom.at,), "amount", text, most)
    on_host, providers = together
    text += (
        f" One host has {on_host:,} on {providers:,} providers: use several groups, or split it."
    )
    return Impossible((atom.at,), "amount", text, most, on_host, providers)


def _together(empty: DerivedQuestions, number: int) -> _Together | None:
    """The most that a host has that would fit if the amount were split; None if none would."""
    asked = empty.atoms[number].asked
    assert asked is not None
    hosts = fitting_if_split(empty, 1 << number)
    if hosts is None or not hosts.any():
        return None
    class_id: ClassId = empty.present.names.class_ids[asked[0]]
    best = _Together(0, 0)
    for _, block, span in empty.fleet.spans:
        if hosts[span].any():
            each = empty.at_once(block.columns[class_id])[:, hosts[span]]
            sums = each.sum(axis=0, dtype=np.float64)
            row = int(sums.argmax())
            best = max(best, _Together(int(sums[row]), int(np.count_nonzero(each[:, row]))))
    return best


def _met_by_none(atoms: list[Atom], unknown: Sequence[UnknownReference]) -> str:
    if len(atoms) > 1:
        return f"No host can meet {_listed(atoms)} together."
    at = atoms[0].at
    missing = [each for each in unknown if each.at == at or each.at.startswith(f"{at}/")]
    why = [f"There is no {each.kind} {each.reference}." for each in missing[:_NAMED_MAX]]
    return " ".join([f"No host meets {_listed(atoms)}.", *why])


def _listed(atoms: list[Atom]) -> str:
    *others, last = (_words(atom) for atom in atoms)
    return f"{', '.join(others)} and {last}" if others else last


def _words(atom: Atom) -> str:
    """`8 PGPU for _A`, and `"in zone=z1"`."""
    if atom.asked is None:
        return f'"{atom.text}"'
    name, amount = atom.asked
    return f"{amount:,} {name}" + (f" for {atom.group}" if atom.group else "")
