# SPDX-License-Identifier: Apache-2.0
"""From batches of candidates to the bytes of the answer.

Candidates of one batch differ in uuids only: their text is made once, with a place for each uuid,
and filled in for each row. The summaries of whole trees (1.29 and later) are kept with their block
until the tree changes.

All texts that are put together here are made of uuids and of names in `[A-Za-z0-9_-]`, so nothing
needs escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from berth.candidates.anchors import Anchors
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.candidates.search import Batch
from berth.index.block import Block
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId

NO_CANDIDATES: Final = b'{"allocation_requests": [], "provider_summaries": {}}'


def render(snapshot: Snapshot, plan: Plan, form: ResponseForm, batches: Iterable[Batch]) -> bytes:
    """The body of the answer: `allocation_requests` and `provider_summaries` as UTF-8 JSON.

    Source: spec/allocation-candidates.md 7.
    """
    summaries = _Summaries(snapshot, plan, form)
    candidates: list[str] = []
    for batch in batches:
        candidates.extend(_candidates(snapshot, plan, form, batch))
        summaries.add(batch)
    return (
        f'{{"allocation_requests": [{", ".join(candidates)}],'
        f' "provider_summaries": {{{", ".join(summaries.texts())}}}}}'
    ).encode()


def _candidates(snapshot: Snapshot, plan: Plan, form: ResponseForm, batch: Batch) -> Iterator[str]:
    """The text of each candidate of a batch."""
    anchors = batch.anchors
    text = _Text(anchors)
    if form.allocations_as_list:
        entry = '{"resource_provider": {"uuid": "%s"}, "resources": {%s}}'
        begin, end = '{"allocations": [', "]"
    else:
        entry = '"%s": {"resources": {%s}}'
        begin, end = '{"allocations": {', "}"
    parts = []
    for choice, amounts in _amounts(plan, batch).items():
        resources = ", ".join(
            f'"{snapshot.names.class_names[class_id]}": {amount}'
            for class_id, amount in amounts.items()
        )
        parts.append(entry % (text.uuid(choice), resources))
    template = begin + ", ".join(parts) + end
    if form.mappings:
        parts = []
        for suffix, choices in _mappings(plan, batch).items():
            uuids = ", ".join(f'"{text.uuid(choice)}"' for choice in choices)
            parts.append(f'"{suffix}": [{uuids}]')
        template += ', "mappings": {' + ", ".join(parts) + "}"
    return text.filled(template + "}", batch)


def _amounts(plan: Plan, batch: Batch) -> dict[int, dict[ClassId, int]]:
    """choice -> class -> what the groups take of it together; providers that give nothing are left
    out."""
    amounts: dict[int, dict[ClassId, int]] = {}
    for slot, choice in zip(plan.slots, batch.choices, strict=True):
        for class_id, amount in slot.amounts:
            given = amounts.setdefault(choice, {})
            given[class_id] = given.get(class_id, 0) + amount
    return amounts


def _mappings(plan: Plan, batch: Batch) -> dict[str, dict[int, None]]:
    """suffix -> the choices that serve it, each once."""
    mappings: dict[str, dict[int, None]] = {}
    for slot, choice in zip(plan.slots, batch.choices, strict=True):
        mappings.setdefault(slot.suffix, {})[choice] = None
    return mappings


class _Text:
    """A candidate's text with places for the uuids of the row's own tree; `%s` in it means such a
    place."""

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._places: list[int] = []

    def uuid(self, choice: int) -> str:
        """What stands for a choice's uuid: must be put into the template in the order of the
        calls."""
        size = self._anchors.block.shape.size
        if choice >= size:
            return self._anchors.foreign[choice - size].uuid
        self._places.append(choice)
        return "%s"

    def filled(self, template: str, batch: Batch) -> Iterator[str]:
        """The template for each row of a batch."""
        rows = batch.rows.tolist()
        if not self._places:
            return (template for _ in rows)
        uuids = self._anchors.block.uuids
        columns = [[uuids[node][row] for row in rows] for node in self._places]
        return (template % line for line in zip(*columns, strict=True))


class _Summaries:
    """Collects which providers are to be described, and describes them."""

    def __init__(self, snapshot: Snapshot, plan: Plan, form: ResponseForm) -> None:
        self._snapshot = snapshot
        self._form = form
        self._class_names: Mapping[ClassId, str] = snapshot.names.class_names
        if not form.all_classes:
            asked = {class_id for slot in plan.slots for class_id, _ in slot.amounts}
            self._class_names = {number: self._class_names[number] for number in asked}
        self._plan = plan
        #: slot -> rows: whole trees.
        self._trees: dict[int, set[int]] = {}
        self._providers: set[Location] = set()

    def add(self, batch: Batch) -> None:
        """Note the providers of some candidates that give resources."""
        anchors = batch.anchors
        size = anchors.block.shape.size
        givers = {
            choice
            for slot, choice in zip(self._plan.slots, batch.choices, strict=True)
            if slot.amounts
        }
        foreign = [anchors.foreign[choice - size].location for choice in givers if choice >= size]
        local = [choice for choice in givers if choice < size]
        if self._form.trees:
            for location in foreign:
                self._trees.setdefault(location.slot, set()).add(location.row)
            if local:
                self._trees.setdefault(anchors.slot, set()).update(batch.rows.tolist())
        else:
            self._providers.update(foreign)
            self._providers.update(
                Location(anchors.slot, row, node) for row in batch.rows.tolist() for node in local
            )

    def texts(self) -> Iterator[str]:
        """The entries of `provider_summaries`."""
        for slot, rows in self._trees.items():
            block = self._snapshot.block(slot)
            for row in rows:
                summary = block.summaries[row]
                if summary is None:
                    summary = block.summaries[row] = ", ".join(
                        self._entry(block, row, node) for node in range(block.shape.size)
                    )
                yield summary
        for location in self._providers:
            yield self._entry(self._snapshot.block(location.slot), location.row, location.node)

    def _entry(self, block: Block, row: int, node: int) -> str:
        fields = [f'"resources": {{{", ".join(self._resources(block, row, node))}}}']
        if self._form.traits:
            names = self._snapshot.names.trait_names
            traits = sorted(names[trait] for trait in block.shape.kinds[node].traits)
            fields.append(
                f'"traits": [{", ".join(f"{chr(34)}{name}{chr(34)}" for name in traits)}]'
            )
        if self._form.trees:
            parent = block.shape.parents[node]
            uuid = "null" if parent == NO_PARENT else f'"{block.uuids[parent][row]}"'
            fields.append(f'"parent_provider_uuid": {uuid}')
            fields.append(f'"root_provider_uuid": "{block.uuids[0][row]}"')
        return f'"{block.uuids[node][row]}": {{{", ".join(fields)}}}'

    def _resources(self, block: Block, row: int, node: int) -> Iterator[str]:
        for class_id in block.shape.kinds[node].classes:
            name = self._class_names.get(class_id)
            if name is not None:
                columns = block.columns[class_id]
                at = block.shape.row_of_node[class_id][node], row
                capacity, used = int(columns.capacity[at]), int(columns.used[at])
                yield f'"{name}": {{"capacity": {capacity}, "used": {used}}}'
