# SPDX-License-Identifier: Apache-2.0
"""A host's tree of providers, drawn for people.

In a pipe or a file a provider is a line, as a script would have it: indentation is parentage, and
`CLASS=total(field:value,...)` is an inventory. On a terminal it is a tree with branches, as wide as
the terminal, with a line for each inventory. In both, fields that have the service's defaults are
left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from berth.cli.terminal import terminal
from berth.hosts.provider_tree import ProviderTree
from berth.model.inventory import Inventory

#: How the fields of a record are called in a drawing.
_FIELDS: Final = {
    "reserved": "reserved",
    "min_unit": "min",
    "max_unit": "max",
    "step_size": "step",
    "allocation_ratio": "ratio",
}


#: How a name is coloured that a provider gains, and one that it loses.
_COLOURS: Final = {"+": "green", "-": "red"}


def print_tree(
    tree: ProviderTree, root: str, *, since: ProviderTree | None = None, indent: int = 0
) -> None:
    """Print a tree, so many columns from the left; the other arguments are those of `draw_tree`."""
    console = terminal()
    if console is None:
        for line in draw_tree(tree, root, since=since):
            click.echo(" " * indent + line)
    else:
        console.print(Padding(_branches(tree, root, since), (0, 0, 0, indent)))


def draw_tree(tree: ProviderTree, root: str, *, since: ProviderTree | None = None) -> Iterator[str]:
    """The lines of a drawing.

    Args:
        root: a uuid; where there is no such provider, that is what is said.
        since: as the tree was before: what each provider gains and loses of traits and aggregates
            is drawn as well, with a `+` or a `-`.
    """
    if not tree.exists(root):
        yield "(not there)"
        return
    depths: dict[str | None, int] = {tree.data(root).parent_uuid: -1}
    for uuid in tree.get_provider_uuids(root):
        data = tree.data(uuid)
        depths[uuid] = depths[data.parent_uuid] + 1
        words = [_draw_record(*one) for one in sorted(data.inventory.items())]
        if since is not None:
            words += _draw_changes(tree, since, uuid)
        yield "  ".join(["  " * depths[uuid] + data.name, *words])


def tree_as_json(tree: ProviderTree, root: str) -> Iterator[dict[str, Any]]:
    """The providers of a tree for programs, parents first; none where there is no such root."""
    for uuid in tree.get_provider_uuids(root) if tree.exists(root) else ():
        data = tree.data(uuid)
        yield {
            "uuid": uuid,
            "name": data.name,
            "parent_provider_uuid": data.parent_uuid,
            "inventories": data.inventory,
            "traits": sorted(data.traits),
            "aggregates": sorted(data.aggregates),
        }


def _branches(tree: ProviderTree, root: str, since: ProviderTree | None) -> RenderableType:
    """The tree for a terminal: a branch for each provider, with its inventories under its name."""
    if not tree.exists(root):
        return Text("(not there)")
    drawn: dict[str | None, Tree] = {}
    for uuid in tree.get_provider_uuids(root):
        data = tree.data(uuid)
        details = Group(*_details(tree, uuid, since))
        label = Group(Text(data.name, style="bold"), Padding(details, (0, 0, 0, 2)))
        parent = drawn.get(data.parent_uuid)
        drawn[uuid] = Tree(label, guide_style="dim") if parent is None else parent.add(label)
    return drawn[root]


def _details(tree: ProviderTree, uuid: str, since: ProviderTree | None) -> Iterator[RenderableType]:
    inventory = sorted(tree.data(uuid).inventory.items())
    if inventory:
        columns = Table.grid(padding=(0, 2, 0, 0))
        columns.add_column(style="cyan", overflow="fold")
        columns.add_column(justify="right")
        columns.add_column(style="dim", overflow="fold")
        for resource_class, record in inventory:
            fields = ", ".join(f"{name} {value}" for name, value in _fields(record))
            columns.add_row(resource_class, str(record["total"]), fields)
        yield columns
    if since is not None and (changes := list(_draw_changes(tree, since, uuid))):
        words = (Text(word, style=_COLOURS[word[0]]) for word in changes)
        yield Text(" ", overflow="fold").join(words)


def _draw_record(resource_class: str, record: Mapping[str, Any]) -> str:
    fields = [f"{name}:{value}" for name, value in _fields(record)]
    return f"{resource_class}={record['total']}" + (f"({','.join(fields)})" if fields else "")


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What an inventory has besides its total, as it is called in a drawing."""
    plain = asdict(Inventory(record["total"]))
    for name, short in _FIELDS.items():
        value = record.get(name, plain[name])
        if value not in (plain[name], _also_plain(name, record)):
            yield short, value


def _also_plain(name: str, record: Mapping[str, Any]) -> object:
    """Whoever may take everything may take the total."""
    return record["total"] if name == "max_unit" else None


def _draw_changes(tree: ProviderTree, since: ProviderTree, uuid: str) -> Iterator[str]:
    now, was = tree.data(uuid), since.data(uuid) if since.exists(uuid) else None
    for prefix, what in ("", "traits"), ("@", "aggregates"):
        new: set[str] = getattr(now, what)
        old: set[str] = getattr(was, what) if was else set()
        yield from (f"+{prefix}{name}" for name in sorted(new - old))
        yield from (f"-{prefix}{name}" for name in sorted(old - new))
