# SPDX-License-Identifier: Apache-2.0
"""Draws a host's tree of providers, or the changes between two trees.

In a pipe or a file, a provider is one line: indentation is parentage, and
`CLASS=total(field:value,...)` is an inventory. On a terminal, the drawing is as wide as the
terminal, and coloured. Fields with the service's defaults are left out.

Changes are marked: `+` is added, `-` removed, and `~` changed.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from berth.cli.output import say
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.model.inventory import Inventory
from berth.model.printable import printable

#: The names of a record's fields in a drawing.
_FIELDS: Final = {
    "reserved": "reserved",
    "min_unit": "min",
    "max_unit": "max",
    "step_size": "step",
    "allocation_ratio": "ratio",
}

#: The colours of what is added, removed and changed.
_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}


def print_tree(tree: ProviderTree, root: str, *, since: ProviderTree) -> None:
    """Print a tree; the arguments are those of `draw_tree`."""
    console = _terminal()
    if console is None:
        for line in draw_tree(tree, root, since=since):
            say(line)
    else:
        console.print(_branches(tree, root, since))


def print_changes(before: ProviderTree, after: ProviderTree, root: str, *, indent: int) -> None:
    """Print the changes between two trees of a root; either may not have the root."""
    console = _terminal()
    for change in _changes(before, after, root):
        if console is None:
            say(" " * indent + str(change))
        else:
            console.print(Padding(change.rendered(), (0, 0, 0, indent)))


def draw_tree(tree: ProviderTree, root: str, *, since: ProviderTree) -> Iterator[str]:
    """Draw a tree in lines.

    Args:
        root: its UUID.
        since: an earlier state, to mark traits and aggregates that are added or removed.
    """
    for data, depth in _walk(tree, root):
        words = [_draw_record(*item) for item in sorted(data.inventory.items())]
        words += _changes_of_sets(_find(since, data.uuid), data)
        yield "  ".join(["  " * depth + data.name, *words])


def tree_as_json(tree: ProviderTree, root: str) -> Iterator[dict[str, Any]]:
    """The providers of a tree for programs, parents first; none if there is no such root."""
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


# --- Changes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ProviderChange:
    """A provider in a drawing of changes."""

    #: `+`, `-`, `~`, or a blank if nothing changes.
    mark: str
    depth: int
    name: str
    #: Its inventories, traits and aggregates, each with a mark if it changes.
    words: tuple[str, ...]

    def __str__(self) -> str:
        return "  ".join([f"{self.mark} {'  ' * self.depth}{self.name}", *self.words])

    def rendered(self) -> RenderableType:
        """The same for a terminal: the words wrap below the name."""
        head = Text(f"{self.mark} {'  ' * self.depth}")
        head.append(printable(self.name), style="bold")
        head.stylize(_COLOURS.get(self.mark, ""), 0, 1)
        words = (Text(printable(word), style=_COLOURS.get(word[0], "")) for word in self.words)
        body = Text("  ", overflow="fold").join(words)
        return Group(head, Padding(body, (0, 0, 0, 2 * self.depth + 4))) if self.words else head


def _changes(before: ProviderTree, after: ProviderTree, root: str) -> Iterator[_ProviderChange]:
    """The providers of both trees: removed ones below their former parents."""
    pending = [(root, 0)]
    while pending:
        uuid, depth = pending.pop()
        was, now = _find(before, uuid), _find(after, uuid)
        data = now or was
        if data is None:
            continue
        yield _change_of(before, after, was, now, depth)
        kept = _children(after, uuid)
        gone = [child for child in _children(before, uuid) if not after.exists(child)]
        pending += [(child, depth + 1) for child in reversed([*kept, *gone])]


def _change_of(
    before: ProviderTree,
    after: ProviderTree,
    was: ProviderData | None,
    now: ProviderData | None,
    depth: int,
) -> _ProviderChange:
    words = [*_changes_of_inventory(was, now), *_changes_of_sets(was, now)]
    data = now or was
    assert data is not None, "one of the trees has the provider"
    name = data.name
    if was is not None and now is not None:
        if was.name != now.name:
            name = f"{was.name} -> {now.name}"
        if was.parent_uuid != now.parent_uuid:
            parents = f"{_parent_name(before, was)} -> {_parent_name(after, now)}"
            words.append(f"~parent {parents}")
        is_changed = name != now.name or any(word[0] in _COLOURS for word in words)
        mark = "~" if is_changed else " "
    else:
        mark = "+" if was is None else "-"
    return _ProviderChange(mark, depth, name, tuple(words))


def _changes_of_inventory(was: ProviderData | None, now: ProviderData | None) -> Iterator[str]:
    old = was.inventory if was else {}
    new = now.inventory if now else {}
    for resource_class in sorted({*old, *new}):
        texts = [
            _draw_amount(records[resource_class])
            for records in (old, new)
            if resource_class in records
        ]
        if len(texts) == 1:
            yield f"{'+' if resource_class in new else '-'}{resource_class}={texts[0]}"
        elif texts[0] != texts[1]:
            yield f"~{resource_class}={texts[0]} -> {texts[1]}"
        else:
            yield f"{resource_class}={texts[0]}"


def _changes_of_sets(was: ProviderData | None, now: ProviderData | None) -> Iterator[str]:
    """The traits and aggregates that are added or removed."""
    for prefix, part in ("", "traits"), ("@", "aggregates"):
        old: set[str] = getattr(was, part, set())
        new: set[str] = getattr(now, part, set())
        yield from (f"+{prefix}{name}" for name in sorted(new - old))
        yield from (f"-{prefix}{name}" for name in sorted(old - new))


def _find(tree: ProviderTree, uuid: str) -> ProviderData | None:
    return tree.data(uuid) if tree.exists(uuid) else None


def _children(tree: ProviderTree, uuid: str) -> list[str]:
    if not tree.exists(uuid):
        return []
    below = map(tree.data, tree.get_provider_uuids(uuid))
    return [data.uuid for data in below if data.parent_uuid == uuid]


def _parent_name(tree: ProviderTree, data: ProviderData) -> str:
    return tree.data(data.parent_uuid).name if data.parent_uuid else "none"


# --- Trees ----------------------------------------------------------------------------------------


def _walk(tree: ProviderTree, root: str) -> Iterator[tuple[ProviderData, int]]:
    """The providers of a tree with their depths, parents first."""
    depths: dict[str | None, int] = {tree.data(root).parent_uuid: -1}
    for uuid in tree.get_provider_uuids(root):
        data = tree.data(uuid)
        depths[uuid] = depths[data.parent_uuid] + 1
        yield data, depths[uuid]


def _branches(tree: ProviderTree, root: str, since: ProviderTree) -> RenderableType:
    """The tree for a terminal: a branch for each provider, with its inventories below its name."""
    drawn: dict[str | None, Tree] = {}
    for data, _ in _walk(tree, root):
        details = Group(*_details(data, _find(since, data.uuid)))
        label = Group(Text(printable(data.name), style="bold"), Padding(details, (0, 0, 0, 2)))
        parent = drawn.get(data.parent_uuid)
        drawn[data.uuid] = Tree(label, guide_style="dim") if parent is None else parent.add(label)
    return drawn[root]


def _details(data: ProviderData, was: ProviderData | None) -> Iterator[RenderableType]:
    if data.inventory:
        columns = Table.grid(padding=(0, 2, 0, 0))
        columns.add_column(style="cyan", overflow="fold")
        columns.add_column(justify="right")
        columns.add_column(style="dim", overflow="fold")
        for resource_class, record in sorted(data.inventory.items()):
            fields = ", ".join(f"{name} {value}" for name, value in _fields(record))
            columns.add_row(printable(resource_class), str(record["total"]), fields)
        yield columns
    if changes := list(_changes_of_sets(was, data)):
        words = (Text(printable(word), style=_COLOURS[word[0]]) for word in changes)
        yield Text(" ", overflow="fold").join(words)


# --- Inventories ----------------------------------------------------------------------------------


def _draw_record(resource_class: str, record: Mapping[str, Any]) -> str:
    return f"{resource_class}={_draw_amount(record)}"


def _draw_amount(record: Mapping[str, Any]) -> str:
    fields = [f"{name}:{value}" for name, value in _fields(record)]
    return f"{record['total']}" + (f"({','.join(fields)})" if fields else "")


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The fields besides the total that differ from their defaults, by their names in a drawing."""
    usual = Inventory(record["total"])
    for name, short in _FIELDS.items():
        default = getattr(usual, name)
        value = record.get(name, default)
        # A max_unit that is the total limits nothing.
        if value != default and not (name == "max_unit" and value == record["total"]):
            yield short, value


def _terminal() -> Console | None:
    """The terminal of standard output; None for a pipe or a file, which get plain text."""
    if not sys.stdout.isatty():
        return None
    # With NO_COLOR, rich itself would still print bold and dim.
    return Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )
