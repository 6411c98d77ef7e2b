# SPDX-License-Identifier: Apache-2.0
"""Trees of providers for people: a line for each, indented below its parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amount, counted, print_line
from berth.cli.fleet.contents import Contents, capacity_of, contents_of
from berth.cli.fleet.references import Labels, described
from berth.cli.fleet.refusals import NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


def print_tree(client: Client, reference: str, providers: Sequence[Json]) -> None:
    """Print the providers of one tree, and its sums.

    Raises:
        NotThere: there are no providers, so nothing is called `reference`.
    """
    if not providers:
        raise NotThere(f"no provider has the UUID {reference}")
    placed = list(in_order(providers))
    every = {item["uuid"]: contents_of(client, item) for item, _ in placed}
    width = max(2 * depth + len(item["name"]) for item, depth in placed)
    for item, depth in placed:
        name = f"{'  ' * depth}{item['name']}".ljust(width)
        print_line("  ".join([name, *_words(every[item["uuid"]])]).rstrip())
    click.echo(_sums(client, every))


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


def _words(contents: Contents) -> Iterator[str]:
    """What one provider has: used and capacity of each class, then its traits."""
    for name, record in contents.inventories.items():
        used = amount(contents.usages.get(name, 0))
        yield f"{name} {used}/{amount(capacity_of(record))}"
    yield from contents.traits


def _sums(client: Client, every: Mapping[str, Contents]) -> str:
    consumers = frozenset().union(*(contents.consumers for contents in every.values()))
    aggregates = {uuid for contents in every.values() for uuid in contents.aggregates}
    parts = ["used/capacity", counted(len(consumers), "consumer")]
    if aggregates:
        parts.append(f"aggregates {described(Labels(client), aggregates)}")
    return "; ".join(parts)
