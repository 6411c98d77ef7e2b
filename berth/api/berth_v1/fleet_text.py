# SPDX-License-Identifier: Apache-2.0
"""The lines of the whole fleet as JSON, made from the arrays of blocks.

They are the lines of `provider_lines`, many at a time: the same node of many trees of one shape has
the same members, so a line is a template that is filled with one value of each column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from berth.api.berth_v1.provider_lines import (
    AGGREGATES,
    DRAINS,
    GENERATION,
    INVENTORIES,
    TRAITS,
    USAGES,
    ProviderLines,
    aggregates_of_set,
)
from berth.api.inventories import render
from berth.api.rendering import encode
from berth.index import Snapshot
from berth.index.block import Block
from berth.index.drain_sets import NO_DRAINS
from berth.index.drained import drains_of_set
from berth.index.providers import IndexedProvider
from berth.index.shape import NO_PARENT
from berth.model.ids import ProviderId
from berth.model.inventory import Inventory

CONSUMERS: Final = "consumers"

#: Provider to consumer to class to amount.
Consumers = Mapping[ProviderId, Mapping[str, Mapping[str, int]]]

#: The six fields of an inventory, in the order of `Inventory`.
_Fields = tuple[int, int, int, int, int, float]

#: Texts of inventories that are kept at a time.
_INVENTORIES_MAX: Final = 4096

#: For fewer trees than this, a template takes longer than it saves.
_FEW: Final = 4


class FleetText:
    """Makes the lines of one answer.

    PERF bench, feed: a third of the processor time of a dictionary for each provider.

    Args:
        parts: those of `provider_lines.PARTS` that the lines show.
    """

    def __init__(self, snapshot: Snapshot, parts: Collection[str]) -> None:
        self._snapshot = snapshot
        self._parts = frozenset(parts)
        self._lines = ProviderLines(snapshot, parts)
        self._inventories = _InventoryTexts()
        self._aggregates = _AggregatesTexts(snapshot)
        self._drains = _DrainsTexts(snapshot)

    def lines(
        self, block: Block, rows: range, consumers: Consumers | None = None
    ) -> list[msgspec.Raw]:
        """The lines of consecutive trees of a block: trees together, parents before children.

        Args:
            consumers: what each provider's consumers hold, if the lines are to show it.
        """
        render = self._one_by_one if len(rows) < _FEW else self._lines_of_node
        by_node = [render(block, node, rows, consumers) for node in range(block.shape.size)]
        return [msgspec.Raw(line) for tree in zip(*by_node, strict=True) for line in tree]

    def _one_by_one(
        self, block: Block, node: int, rows: range, consumers: Consumers | None
    ) -> list[bytes]:
        lines = [self._lines.line(block, node, row) for row in rows]
        if consumers is not None:
            for row, line in zip(rows, lines, strict=True):
                provider = ProviderId(block.provider_ids.item(node, row))
                line[CONSUMERS] = consumers.get(provider, {})
        return [encode(line) for line in lines]

    def _lines_of_node(
        self, block: Block, node: int, rows: range, consumers: Consumers | None
    ) -> list[bytes]:
        if len(self._inventories) > _INVENTORIES_MAX:
            self._inventories.clear()
        line = _Template()
        part = slice(rows.start, rows.stop)
        parent = block.shape.parents[node]
        line.add("uuid", b'"%b"', block.uuid_texts[node, part].tolist())
        line.add("name", b"%b", block.names.texts(node, rows))
        if parent == NO_PARENT:
            line.add_same("parent", b"null")
        else:
            line.add("parent", b'"%b"', block.uuid_texts[parent, part].tolist())
        line.add("root", b'"%b"', block.uuid_texts[0, part].tolist())
        if GENERATION in self._parts:
            line.add(GENERATION, b"%d", block.generations[node, part].tolist())
        if INVENTORIES in self._parts:
            line.add_members(INVENTORIES, b"%b", self._inventories_of(block, node, part))
        if USAGES in self._parts:
            line.add_members(USAGES, b"%d", self._usages_of(block, node, part))
        if TRAITS in self._parts:
            traits = IndexedProvider(self._snapshot, block, node, rows.start).traits()
            line.add_same(TRAITS, traits.names)
        if AGGREGATES in self._parts:
            sets = block.aggregate_sets[node, part].tolist()
            line.add(AGGREGATES, b"%b", [self._aggregates[number] for number in sets])
        if DRAINS in self._parts and block.drain_sets is None:
            line.add_same(DRAINS, self._drains[NO_DRAINS])
        elif DRAINS in self._parts and block.drain_sets is not None:
            sets = block.drain_sets[node, part].tolist()
            line.add(DRAINS, b"%b", [self._drains[number] for number in sets])
        if consumers is not None:
            ids = block.provider_ids[node, part].tolist()
            line.add(CONSUMERS, b"%b", [encode(consumers.get(each, {})) for each in ids])
        return line.filled()

    def _inventories_of(self, block: Block, node: int, part: slice) -> dict[str, list[bytes]]:
        """By class name the inventory of each row, in the order of the classes."""
        names = self._snapshot.names.class_names
        texts: dict[str, list[bytes]] = {}
        for class_id in block.shape.node_types[node].classes:
            if class_id in names:
                columns = block.columns[class_id]
                at = block.shape.row_of_node[class_id][node], part
                fields = zip(
                    columns.total[at].tolist(),
                    columns.reserved[at].tolist(),
                    columns.min_unit[at].tolist(),
                    columns.max_unit[at].tolist(),
                    columns.step_size[at].tolist(),
                    columns.allocation_ratio[at].tolist(),
                    strict=True,
                )
                texts[names[class_id]] = [self._inventories[each] for each in fields]
        return texts

    def _usages_of(self, block: Block, node: int, part: slice) -> dict[str, list[float]]:
        """By class name what is used in each row, in the order of the classes."""
        names, lines = self._snapshot.names.class_names, block.shape.row_of_node
        return {
            names[class_id]: block.columns[class_id].used[lines[class_id][node], part].tolist()
            for class_id in block.shape.node_types[node].classes
            if class_id in names
        }


class _Template:
    """A JSON object whose members are the same ones in many rows."""

    def __init__(self) -> None:
        self._members: list[bytes] = []
        self._columns: list[Iterable[object]] = []

    def add(self, name: str, form: bytes, column: Iterable[object]) -> None:
        """A member with a value for each row."""
        self._members.append(_member(name, form))
        self._columns.append(column)

    def add_same(self, name: str, text: bytes) -> None:
        """A member that is the same JSON in all rows."""
        self._members.append(_member(name, text.replace(b"%", b"%%")))

    def add_members(self, name: str, form: bytes, columns: Mapping[str, Iterable[object]]) -> None:
        """A member that is an object itself, with a column for each of its members."""
        self._members.append(
            _member(name, b"{%b}" % b",".join(_member(inner, form) for inner in columns))
        )
        self._columns += columns.values()

    def filled(self) -> list[bytes]:
        """The text of each row."""
        template = b"{%b}" % b",".join(self._members)
        return [template % row for row in zip(*self._columns, strict=True)]


def _member(name: str, form: bytes) -> bytes:
    return b"%b:%b" % (encode(name).replace(b"%", b"%%"), form)


# Each makes what it does not have yet, which costs no call of ours for what it has.


class _InventoryTexts(dict[_Fields, bytes]):
    """The JSON of inventories."""

    def __missing__(self, fields: _Fields) -> bytes:
        text = self[fields] = encode(render(Inventory(*fields)))
        return text


class _AggregatesTexts(dict[int, bytes]):
    """The JSON of sets of aggregates."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self._snapshot = snapshot

    def __missing__(self, number: int) -> bytes:
        text = self[number] = encode(aggregates_of_set(self._snapshot, number))
        return text


class _DrainsTexts(dict[int, bytes]):
    """The JSON of sets of drains."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self._snapshot = snapshot

    def __missing__(self, number: int) -> bytes:
        text = self[number] = encode(drains_of_set(self._snapshot, number, in_effect=True))
        return text
