# SPDX-License-Identifier: Apache-2.0
"""Providers as lines, and `GET /berth/v1/fleet`, which shows every one. Source: spec/beyond.md 6.1.

The whole fleet, its changes and single trees show providers as lines. Those of the fleet are made
many at a time: the same node of many trees of one shape has the same members, so a line is a
template that is filled with one value of each column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from berth.api import examples, shapes
from berth.api.answers import SENT, LongBody, Sent, encode, lines
from berth.api.berth_v1.consumers import END
from berth.api.berth_v1.fleet_questions import WARNING
from berth.api.berth_v1.inputs import include_parameter, included
from berth.api.berth_v1.revisions import is_unchanged, lists, set_tag, tag_of
from berth.api.contract import Contract, Query, component, ref
from berth.api.errors import Refused, overloaded
from berth.api.media_types import JSON_LINES
from berth.api.placement.inventories import render
from berth.api.request import Call
from berth.api.shapes import (
    CLASS_NAME_PATTERN,
    COUNT,
    INVENTORY,
    PROVIDER_NAME,
    SHOWN_TRAITS,
    SUMS,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    UUID_OR_NULL,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.struct_schema import REVISION, REVISION_EXAMPLE
from berth.index.block import Block
from berth.index.draining import drains_of_set
from berth.index.providers import IndexedProvider
from berth.index.sets import NO_DRAINS
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Snapshot
from berth.index.texts import Template
from berth.model.ids import ProviderId, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.store.allocations import allocations_of
from berth.store.engine.transaction import Tx

GENERATION: Final = "generation"
INVENTORIES: Final = "inventories"
USAGES: Final = "usages"
TRAITS: Final = "traits"
AGGREGATES: Final = "aggregates"
DRAINS: Final = "drains"
#: What a line may show of a provider beside its place in its tree, in the order of its members.
PARTS: Final = (GENERATION, INVENTORIES, USAGES, TRAITS, AGGREGATES, DRAINS)

PROVIDER_LINE_EXAMPLE: Final = {
    "uuid": examples.PROVIDER,
    "name": "cn1",
    "parent": None,
    "root": examples.PROVIDER,
    "generation": 17,
    "inventories": {"VCPU": examples.RECORD},
    "usages": {"VCPU": 16},
    "traits": ["HW_CPU_X86_AVX2"],
    "aggregates": [examples.AGGREGATE],
    "drains": [],
}
PROVIDER_LINE: Final = component(
    "ProviderLine",
    open_object(
        {
            "uuid": UUID,
            "name": PROVIDER_NAME,
            "parent": described(UUID_OR_NULL, "Its parent's UUID; null for a root."),
            "root": described(UUID, "The UUID of the root of its tree."),
        },
        optional={
            "generation": shapes.GENERATION,
            "inventories": object_by(CLASS_NAME_PATTERN, open_object(INVENTORY)),
            "usages": described(SUMS, "What is used of each inventory."),
            "traits": SHOWN_TRAITS,
            "aggregates": list_of(UUID),
            "drains": described(list_of(TEXT), "The drains in effect that name it."),
        },
    ),
    example=PROVIDER_LINE_EXAMPLE,
)


#: The part of a line that is not shown unless the client asks for it.
ALLOCATIONS: Final = "allocations"
INCLUDED: Final = (INVENTORIES, USAGES, TRAITS, AGGREGATES, DRAINS)
_INCLUDABLE: Final = (*INCLUDED, ALLOCATIONS)

_FLEET_QUERY: Final = Query(
    include_parameter(
        _INCLUDABLE,
        "inventories,usages",
        f"The default is all but `{ALLOCATIONS}`, which adds `consumers`: what each consumer holds "
        "of the provider.",
    )
)

_HEADER: Final = component(
    "FleetHeader",
    open_object(
        {
            "berth": {
                "type": "string",
                "enum": ["fleet"],
                "description": "What the lines are.",
            },
            "revision": REVISION,
            "providers": described(COUNT, "How many lines of providers follow."),
        }
    ),
    example={"berth": "fleet", "revision": REVISION_EXAMPLE, "providers": 100_000},
)
_OF_FLEET: Final[dict[str, Any]] = {
    "allOf": [
        ref("ProviderLine"),
        open_object(
            {},
            optional={
                "consumers": described(
                    object_by(UUID_36_PATTERN, SUMS),
                    "What each consumer holds of it, by the consumer's UUID; with "
                    f"`include={ALLOCATIONS}`.",
                )
            },
        ),
    ]
}
_FLEET_LINE: Final = component(
    "FleetLine",
    {"anyOf": [ref("FleetHeader"), _OF_FLEET, ref("End")]},
    example=PROVIDER_LINE_EXAMPLE,
    parts=(_HEADER, PROVIDER_LINE, END, WARNING),
)


Line = dict[str, Any]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ProviderLines:
    """Makes the lines of one answer.

    Args:
        parts: those of `PARTS` that the lines show.
    """

    def __init__(self, snapshot: Snapshot, parts: Collection[str]) -> None:
        self._snapshot = snapshot
        self._parts = frozenset(parts)
        # By the set of each: most providers have the same ones.
        self._traits: dict[object, list[str]] = {}
        self._aggregates = _Made(partial(aggregates_of_set, snapshot))
        self._drains = _Made(partial(drains_of_set, snapshot, in_effect=True))

    def line(self, block: Block, node: int, row: int) -> Line:
        """The line of one provider."""
        parent = block.shape.parents[node]
        line: Line = {
            "uuid": block.uuid(node, row),
            "name": msgspec.json.decode(block.names.item(node, row)),
            "parent": None if parent == NO_PARENT else block.uuid(parent, row),
            "root": block.uuid(0, row),
        }
        provider = IndexedProvider(self._snapshot, block, node, row)
        if GENERATION in self._parts:
            line[GENERATION] = provider.generation
        if INVENTORIES in self._parts:
            inventories = provider.inventories()
            line[INVENTORIES] = {name: render(each) for name, each in inventories.items()}
        if USAGES in self._parts:
            line[USAGES] = provider.usages()
        if TRAITS in self._parts:
            line[TRAITS] = self._traits_of(provider)
        if AGGREGATES in self._parts:
            line[AGGREGATES] = self._aggregates[block.aggregate_sets.item(node, row)]
        if DRAINS in self._parts:
            sets = block.drain_sets
            line[DRAINS] = self._drains[NO_DRAINS if sets is None else sets.item(node, row)]
        return line

    def _traits_of(self, provider: IndexedProvider) -> list[str]:
        own = provider.block.shape.node_types[provider.node].traits
        names = self._traits.get(own)
        if names is None:
            names = self._traits[own] = msgspec.json.decode(provider.traits().names, type=list[str])
        return names


class _Made(dict[K, V]):
    """Values by the keys that they are made from. A missing value is made when it is looked up; to
    look up one that is there calls no Python function."""

    def __init__(self, make: Callable[[K], V]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> V:
        value = self[key] = self._make(key)
        return value


def aggregates_of_set(snapshot: Snapshot, number: int) -> list[str]:
    """The aggregates of a set, in canonical form, whatever the spelling that created them."""
    spellings = snapshot.aggregate_sets.spellings(number)
    return [parse_uuid_lax(each) or each for each in spellings]


#: Lines that are in memory at a time.
_PART: Final = 1000

#: Makes the lines of consecutive trees of a block.
_Rendering = Callable[[Block, range], list[msgspec.Raw]]


@Contract(
    summary="Show every provider",
    details="As of one state: a line with its revision, a line for each provider, trees "
    "together and parents before their children, and a line with `end`, without which the "
    "answer is incomplete. Then `GET /changes` tells what has changed since. A worker makes "
    "two such answers at a time; further requests get 503.",
    query=_FLEET_QUERY,
    answers=lists(_FLEET_LINE, means="The fleet, as JSON lines.", media_type=JSON_LINES),
)
def show_fleet(call: Call) -> LongBody | Sent:
    """Show every provider, as of one state."""
    parts = included(call.query, INCLUDED)
    snapshot = call.services.index.snapshot()
    if is_unchanged(call, snapshot):
        return SENT
    until = time.monotonic() + call.services.settings.fleet_seconds_max
    if not call.services.fleet_answers.acquire(blocking=False):
        raise overloaded()
    try:
        if ALLOCATIONS in parts:
            with call.services.index.reading() as (snapshot, tx):
                # It may be a later one.
                set_tag(call, tag_of(snapshot))
                return _all_lines(snapshot, _with_consumers(snapshot, parts, tx), until)
        return _all_lines(snapshot, _plain(snapshot, parts), until)
    finally:
        call.services.fleet_answers.release()


def _all_lines(snapshot: Snapshot, render: _Rendering, until: float) -> LongBody:
    """Everything is read before the first byte is sent: a slow client holds no transaction."""
    header = {"berth": "fleet", "revision": snapshot.revision, "providers": _size(snapshot)}
    return lines(_lines(snapshot, render, until), header=header)


def _lines(snapshot: Snapshot, render: _Rendering, until: float) -> Iterator[list[msgspec.Raw]]:
    """The lines in parts: trees together, parents before children."""
    for _, block in snapshot.occupied():
        rows = max(1, _PART // block.shape.size)
        for begin in range(0, block.rows, rows):
            if time.monotonic() > until:
                raise _too_slow()
            yield render(block, range(begin, min(begin + rows, block.rows)))


def _plain(snapshot: Snapshot, parts: Collection[str]) -> _Rendering:
    return FleetText(snapshot, {GENERATION, *parts}).lines


def _with_consumers(snapshot: Snapshot, parts: Collection[str], tx: Tx) -> _Rendering:
    text = FleetText(snapshot, {GENERATION, *parts})
    class_names = snapshot.names.class_names

    def render(block: Block, rows: range) -> list[msgspec.Raw]:
        ids = block.provider_ids[:, rows.start : rows.stop].ravel().tolist()
        consumers: dict[ProviderId, dict[str, dict[str, int]]] = {}
        for provider, consumer, class_id, used in allocations_of(tx, map(ProviderId, ids)):
            amounts = consumers.setdefault(provider, {}).setdefault(consumer, {})
            amounts[class_names[class_id]] = used
        return text.lines(block, rows, consumers)

    return render


def _size(snapshot: Snapshot) -> int:
    return sum(block.rows * block.shape.size for _, block in snapshot.occupied())


def _too_slow() -> Refused:
    return Refused(
        503,
        "The fleet could not be read within the time that the service allows"
        " ([berth]fleet_seconds_max).",
        code=overloaded().code,
        headers={"retry-after": "10"},
    )


# --- The lines of many providers, made from the arrays of blocks ----------------------------------


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
        parts: those of `PARTS` that the lines show.
    """

    def __init__(self, snapshot: Snapshot, parts: Collection[str]) -> None:
        self._snapshot = snapshot
        self._parts = frozenset(parts)
        self._lines = ProviderLines(snapshot, parts)
        self._inventories = _Made(_inventory_text)
        self._aggregates = _Made[int, bytes](
            lambda number: encode(aggregates_of_set(snapshot, number))
        )
        self._drains = _Made[int, bytes](
            lambda number: encode(drains_of_set(snapshot, number, in_effect=True))
        )

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
        line = _Object()
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
        return line.texts()

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


class _Object:
    """A JSON object whose members are the same ones in many rows."""

    def __init__(self) -> None:
        self._pieces: list[bytes | tuple[int, bytes]] = []
        self._columns: dict[int, Sequence[object]] = {}

    def add(self, name: str, form: bytes, column: Sequence[object]) -> None:
        """A member with a value for each row, which `%` writes in some form."""
        self._pieces += b",", encode(name), b":", (len(self._columns), form)
        self._columns[len(self._columns)] = column

    def add_same(self, name: str, text: bytes) -> None:
        """A member that is the same JSON in all rows."""
        self._pieces += b",", encode(name), b":", text

    def add_members(self, name: str, form: bytes, columns: Mapping[str, Sequence[object]]) -> None:
        """A member that is an object itself, with a column for each of its members."""
        self.add_same(name, b"{")
        first = len(self._pieces)
        for inner, column in columns.items():
            self.add(inner, form, column)
        # No comma is before the first.
        self._pieces[first:] = [*self._pieces[first + 1 :], b"}"]

    def texts(self) -> list[bytes]:
        """The text of each row."""
        return Template.of([b"{", *self._pieces[1:], b"}"]).formatted(self._columns)


def _inventory_text(fields: _Fields) -> bytes:
    return encode(render(Inventory(*fields)))
