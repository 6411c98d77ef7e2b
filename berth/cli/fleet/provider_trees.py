# SPDX-License-Identifier: Apache-2.0
"""Trees of providers for people: a line for each, indented below its parent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.cli.columns import amount, counted, print_line
from berth.cli.fleet.contents import Contents, capacity_of, contents_of
from berth.cli.fleet.references import Labels, described
from berth.cli.fleet.refusals import Forbidden, NoOwnApi, NotThere, ServiceRefused
from berth.cli.output import say
from berth.client.client import tree_path

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
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import DRAINS

    try:
        listed = client.read(DRAINS, ("host", reference))["drains"]
    except ServiceRefused:
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
        parts.append(f"aggregates {described(Labels(client), aggregates)}")
    return "; ".join(parts)
