# SPDX-License-Identifier: Apache-2.0
"""Trees of providers for people: a line for each, indented below its parent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from berth.cli.columns import amount, counted, print_columns, print_line
from berth.cli.fleet.labels import described
from berth.cli.output import say
from berth.model.paths import DRAINS, tree_path
from berth.model.refusals import Forbidden, NoOwnApi, NotThere, Refused

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


@dataclass(frozen=True, slots=True)
class _Tree:
    """The providers of a tree by UUID, and the consumers that hold something of them."""

    contents: Mapping[str, Contents]
    consumers: Collection[str]


def print_tree(client: Client, uuid: str) -> None:
    """Print the providers of the tree that contains one, and its sums.

    Raises:
        NotThere: there is no such provider.
    """
    try:
        tree = _read_whole(client, uuid)
    except (NoOwnApi, Forbidden):
        tree = _read_each(client, uuid)
    placed = list(in_order([each.provider for each in tree.contents.values()]))
    drains = _drains_of(client, uuid)
    width = max(2 * depth + len(item["name"]) for item, depth in placed)
    for item, depth in placed:
        name = f"{'  ' * depth}{item['name']}".ljust(width)
        words = [*_words(tree.contents[item["uuid"]]), *drains.get(item["uuid"], ())]
        print_line("  ".join([name, *words]).rstrip())
    say(_sums(client, tree))


def _read_whole(client: Client, uuid: str) -> _Tree:
    """Read a tree by two requests."""
    lines = client.read(tree_path(uuid), ("include", "inventories,usages,traits,aggregates"))[
        "providers"
    ]
    consumers = frozenset(consumer.uuid for consumer in client.consumers(host=uuid))
    contents = {
        line["uuid"]: Contents(
            {**line, "parent_provider_uuid": line["parent"]},
            dict(sorted(line["inventories"].items())),
            line["usages"],
            sorted(line["traits"]),
            line["aggregates"],
            frozenset(),
        )
        for line in lines
    }
    return _Tree(contents, consumers)


def _read_each(client: Client, uuid: str) -> _Tree:
    """Read a tree from a service without berth's own API: by five requests for each provider."""
    providers = client.read("/resource_providers", ("in_tree", uuid))["resource_providers"]
    if not providers:
        raise NotThere(f"no provider has the UUID {uuid}")
    contents = {item["uuid"]: contents_of(client, item) for item in providers}
    consumers = frozenset().union(*(each.consumers for each in contents.values()))
    return _Tree(contents, consumers)


def in_order(providers: Sequence[Json]) -> Iterator[tuple[Json, int]]:
    """The providers of a tree with their depths, each below its parent, then by name."""
    below: dict[str | None, list[Json]] = {}
    for item in sorted(providers, key=lambda item: str(item["name"]), reverse=True):
        below.setdefault(item["parent_provider_uuid"], []).append(item)
    pending = [(item, 0) for item in below.get(None, ())]
    while pending:
        item, depth = pending.pop()
        yield item, depth
        pending += [(child, depth + 1) for child in below.get(item["uuid"], ())]


def _drains_of(client: Client, reference: str) -> Mapping[str, Sequence[str]]:
    """By provider what the drains do that name it; nothing if the service does not say."""
    try:
        listed = client.read(DRAINS, ("host", reference))["drains"]
    except Refused:
        return {}
    words: dict[str, list[str]] = {}
    for item in listed:
        done = "drained" if item["effect"] == "exclude" else "to be drained"
        for provider in item["named"]:
            words.setdefault(provider["uuid"], []).append(f"{done}: {item['name']}")
    return words


def _words(contents: Contents) -> Iterator[str]:
    """What one provider has: used and capacity of each class, then its traits."""
    for name, record in contents.inventories.items():
        used = amount(contents.usages.get(name, 0))
        yield f"{name} {used}/{amount(capacity_of(record))}"
    yield from contents.traits


def _sums(client: Client, tree: _Tree) -> str:
    aggregates = {uuid for contents in tree.contents.values() for uuid in contents.aggregates}
    parts = ["used/capacity", counted(len(tree.consumers), "consumer")]
    if aggregates:
        parts.append(f"aggregates {described(client.labels, aggregates)}")
    return "; ".join(parts)


#: The fields of an inventory besides its total, with the headings of their columns.
FIELDS: Final[Mapping[str, str]] = {
    "reserved": "RESERVED",
    "allocation_ratio": "RATIO",
    "min_unit": "MIN",
    "max_unit": "MAX",
    "step_size": "STEP",
}


_HEADS: Final = ("CLASS", "USED", "CAPACITY", "TOTAL", *FIELDS.values())


@dataclass(frozen=True, slots=True)
class Contents:
    """A provider with everything that it has."""

    provider: Json
    #: Records by resource class.
    inventories: Mapping[str, Json]
    #: Used amounts by resource class.
    usages: Mapping[str, int]
    #: In alphabetical order.
    traits: Sequence[str]
    aggregates: Sequence[str]
    consumers: frozenset[str]


def contents_of(client: Client, provider: Json) -> Contents:
    """Read what a provider has."""
    path = f"/resource_providers/{provider['uuid']}"
    return Contents(
        provider,
        dict(sorted(client.read(f"{path}/inventories")["inventories"].items())),
        client.read(f"{path}/usages")["usages"],
        sorted(client.read(f"{path}/traits")["traits"]),
        client.read(f"{path}/aggregates")["aggregates"],
        frozenset(client.read(f"{path}/allocations")["allocations"]),
    )


def capacity_of(record: Json) -> int:
    """How much of an inventory can be allocated in all."""
    return int((record["total"] - record["reserved"]) * record["allocation_ratio"])


def print_inventories(inventories: Mapping[str, Json], usages: Mapping[str, int]) -> None:
    """Print a table with a row for each inventory."""
    rows = [
        [
            name,
            amount(usages.get(name, 0)),
            amount(capacity_of(record)),
            amount(record["total"]),
            *(_field(record, field) for field in FIELDS),
        ]
        for name, record in sorted(inventories.items())
    ]
    print_columns(_HEADS, rows, right=_HEADS[1:])


def _field(record: Json, name: str) -> str:
    value = record[name]
    return "-" if name == "max_unit" and value == _DEFAULTS[name] else amount(value)


#: The values of the fields of an inventory that say nothing.
_DEFAULTS: Final = {
    "reserved": 0,
    "allocation_ratio": 1.0,
    "min_unit": 1,
    "max_unit": 2**31 - 1,
    "step_size": 1,
}


def differences(before: Json, after: Json) -> Iterator[str]:
    """The differences between two states of a provider, each a word or two.

    Args:
        before, after: `parent` (the name of one), `inventories`, `traits` and `aggregates`; what
            both lack is the same.
    """
    if (parent := after.get("parent")) != before.get("parent"):
        yield f"below {parent}" if parent else "below nothing"
    stock, had = after.get("inventories", {}), before.get("inventories", {})
    for name in sorted({*stock, *had}):
        if name not in stock:
            yield f"-{name}"
        elif name not in had:
            yield f"{name}={_record(stock[name])}"
        elif stock[name] != had[name]:
            yield f"{name}={_record(had[name])} -> {_record(stock[name])}"
    for part, prefix in (("traits", ""), ("aggregates", "@")):
        new, old = set(after.get(part, ())), set(before.get(part, ()))
        yield from (f"+{prefix}{name}" for name in sorted(new - old))
        yield from (f"-{prefix}{name}" for name in sorted(old - new))


def _record(record: Json) -> str:
    """An inventory's total, and the fields that are not as usual."""
    fields = [
        f"{name}:{amount(record[name])}" for name in FIELDS if record[name] != _DEFAULTS[name]
    ]
    return amount(record["total"]) + (f"({','.join(fields)})" if fields else "")
