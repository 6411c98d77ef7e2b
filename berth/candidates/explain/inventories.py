# SPDX-License-Identifier: Apache-2.0
"""What the providers of one host have of a class that it lacks. Source: spec/beyond.md 3.5."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import Atom, bits
from berth.candidates.explain.explanation import Inventory, Shortage
from berth.candidates.filter import filter_trees
from berth.candidates.fitting import unsplit
from berth.candidates.resolve import NothingFits, plan_of
from berth.index.named import named_provider
from berth.index.snapshot import Location
from berth.model.ids import ClassId
from berth.model.inventory import Reason


class Shortages:
    """What some hosts lack of classes.

    Args:
        hosts: those that are asked about.
    """

    def __init__(self, asking: Asking, hosts: Iterable[int]) -> None:
        self._asking = asking
        self._hosts = {
            (span.block_id, row): n for n in hosts for span, row in (asking.fleet.place(n),)
        }
        self._among = asking.fleet.none()
        self._among[[*self._hosts.values()]] = True
        #: (atom, kept atoms) -> host -> see `_having`.
        self._had: dict[tuple[str, int], Mapping[int, set[Location]]] = {}

    def of(self, atom: Atom, kept: int, host: int, *, possible: int) -> Shortage:
        """What a host lacks of a class.

        The best provider is the one with most to give among those that meet the conditions of the
        atom's group that are kept; if none does, among all.
        """
        assert atom.asked is not None
        asking = self._asking
        name, asked = atom.asked
        class_id = asking.present.names.class_ids[name]
        conditions = [*asking.conditions_on(atom, kept)]
        met = self._having(atom, bits(conditions), host)
        unmet: dict[Location, list[str]] = {at: [] for at in met or self._having(atom, 0, host)}
        if not unmet:
            return Shortage(asked, possible, "no_inventory", None)
        # PERF bench, explain: what each lacks is asked only where none meets all.
        for number in () if met else conditions:
            for at in unmet.keys() - self._having(atom, 1 << number, host):
                unmet[at].append(asking.atoms[number].at)
        at = max(unmet, key=lambda at: (not unmet[at], _most(asking, at, class_id)))
        inventory, reason = _inventory(asking, at, class_id, asked)
        return Shortage(
            asked, possible, "conditions" if unmet[at] else reason, inventory, tuple(unmet[at])
        )

    def _having(self, atom: Atom, kept: int, host: int) -> set[Location]:
        """The providers that could serve a group on a host, if they had enough."""
        key = atom.at, kept
        if key not in self._had:
            # PERF bench, explain: the nearest hosts mostly lack the same, and are asked at once.
            self._had[key] = self._having_each(atom, kept)
        return self._had[key].get(host, set())

    def _having_each(self, atom: Atom, kept: int) -> Mapping[int, set[Location]]:
        asking = self._asking
        snapshot, budget = asking.offered(kept), asking.budget
        having: defaultdict[int, set[Location]] = defaultdict(set)
        try:
            plan = plan_of(
                snapshot, asking.reduction.request_of_group(atom, kept), one_per_tree=False
            )
        except NothingFits:
            return having
        trees = filter_trees(snapshot, plan, budget, among=asking.fleet.by_block(self._among))
        for batch in unsplit(snapshot, plan, trees, budget):
            block_id, choice = batch.trees.block_id, batch.choices[0]
            for position, row in zip(batch.positions.tolist(), batch.rows.tolist(), strict=True):
                at = snapshot.locate(batch.trees.provider_id(choice, position))
                if at is not None:
                    having[self._hosts[block_id, row]].add(at)
        return having


def _inventory(
    asking: Asking, at: Location, class_id: ClassId, asked: int
) -> tuple[Inventory, Reason]:
    """What a provider has of a class, and why it cannot give so much."""
    block = asking.present.block(at.block_id)
    columns, line = block.columns[class_id], block.shape.row_of_node[class_id][at.node]
    capacity, used = int(columns.capacity.item(line, at.row)), asking.used(columns, line, at.row)
    has = Inventory(
        provider=named_provider(block, at.node, at.row),
        free=max(capacity - used, 0),
        capacity=capacity,
        max_unit=columns.max_unit.item(line, at.row),
    )
    min_unit, step_size = (
        each.item(line, at.row) for each in (columns.min_unit, columns.step_size)
    )
    return has, _reason(asked, has, min_unit=min_unit, step_size=step_size)


def _most(asking: Asking, at: Location, class_id: ClassId) -> tuple[int, float]:
    """By what the best provider is chosen: what it could give, and what it has."""
    has, _ = _inventory(asking, at, class_id, 0)
    return min(has.free, has.max_unit), has.capacity


def _reason(asked: int, has: Inventory, *, min_unit: int, step_size: int) -> Reason:
    """Why a provider cannot give an amount, that which no release of other claims changes first."""
    if asked > has.capacity:
        return "capacity"
    if asked > has.max_unit:
        return "max_unit"
    if asked < min_unit:
        return "min_unit"
    if asked % step_size:
        return "step_size"
    # It may have enough for this group, but not next to the others.
    return "used" if asked > has.free else "conditions"
