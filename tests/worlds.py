# SPDX-License-Identifier: Apache-2.0
"""Small fleets for tests: drawn as text, or loaded from the recorded examples.

A world is plain data with symbolic names, so that a test reads like a picture:

    fleet = world('''
        cn1       MEMORY_MB=1024  @A
          numa0   VCPU=4(used:3)
          numa1   VCPU=4(max:2,ratio:1.5)  HW_NUMA_ROOT
        pool      DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
    ''')

Indentation is parentage; `CLASS=total(field:value,...)` is an inventory, with the fields `used`,
`reserved`, `min`, `max`, `step` and `ratio`; `@A` is an aggregate; `!x` is a drain that names the
provider, `?x` one that is only announced; a bare word is a trait.

Queries are written with names too: `<rp:cn1>` stands for a provider's uuid, `<agg:A>` for an
aggregate's, `<unknown>` for a uuid of nothing; `World.resolve` fills them in. The uuids follow from
the names, so every run of a test sees the same ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID, uuid5

import os_resource_classes
import os_traits

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"
EXAMPLES_PATH: Final = Path(__file__).parent / "data" / "candidates-examples.json"
MAX_INT: Final = 2147483647

_NAMESPACE: Final = UUID("7d3b1f0e-0c57-4a8e-9d0b-6f1f5b1f7a11")


@dataclass(frozen=True, slots=True)
class Stock:
    """One inventory, and how much of it is used."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0


@dataclass(frozen=True, slots=True)
class WorldProvider:
    """One provider of a world; `parent` is a name, None for a root."""

    name: str
    parent: str | None = None
    stocks: Mapping[str, Stock] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    drains: frozenset[str] = frozenset()

    @property
    def used(self) -> dict[str, int]:
        """What is used, by class; classes of which nothing is used are left out."""
        return {name: stock.used for name, stock in self.stocks.items() if stock.used}


@dataclass(frozen=True)
class World:
    """A fleet: providers, parents before their children, and the names that exist besides.

    `extra_classes` and `extra_traits` are defined although no provider has them. `labels` are those
    of aggregates: aggregate -> key -> value. `flavors` are requests by name, as they are sent.
    `announced` are the drains that are not in effect.
    """

    providers: tuple[WorldProvider, ...]
    extra_classes: frozenset[str] = frozenset()
    extra_traits: frozenset[str] = frozenset()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    flavors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    announced: frozenset[str] = frozenset()

    @cached_property
    def drained(self) -> frozenset[str]:
        """The providers that a drain in effect names, and all below them."""
        drained: set[str] = set()
        for provider in self.providers:
            if provider.drains - self.announced or provider.parent in drained:
                drained.add(provider.name)
        return frozenset(drained)

    @cached_property
    def drains(self) -> dict[str, list[str]]:
        """The providers that each drain names."""
        drains: dict[str, list[str]] = {}
        for provider in self.providers:
            for drain in provider.drains:
                drains.setdefault(drain, []).append(provider.name)
        return drains

    def tolerating(self, tolerated: Iterable[str] | Literal["*"]) -> World:
        """The world as if some drains, or all, were not in effect."""
        names = self.drains if tolerated == "*" else tolerated
        return replace(self, announced=self.announced.union(names))

    @cached_property
    def by_name(self) -> dict[str, WorldProvider]:
        """Each provider under its name."""
        return {provider.name: provider for provider in self.providers}

    @cached_property
    def custom_classes(self) -> list[str]:
        """The custom resource classes that must be created, sorted."""
        used = {name for provider in self.providers for name in provider.stocks}
        return sorted((used | self.extra_classes) - standard_classes())

    @cached_property
    def custom_traits(self) -> list[str]:
        """The custom traits that must be created, sorted."""
        used = {name for provider in self.providers for name in provider.traits}
        return sorted((used | self.extra_traits) - standard_traits())

    @cached_property
    def names(self) -> dict[str, str]:
        """Provider names by uuid: the way back from an answer."""
        return {provider_uuid(provider.name): provider.name for provider in self.providers}

    def knows_class(self, name: str) -> bool:
        """Say whether the deployment that holds this world has the class."""
        return name in standard_classes() or name in self.custom_classes

    def knows_trait(self, name: str) -> bool:
        """Say whether the deployment that holds this world has the trait."""
        return name in standard_traits() or name in self.custom_traits

    def resolve(self, query: str) -> str:
        """Fill the uuids into a query text; everything else stays as written."""
        return _PLACEHOLDER.sub(lambda match: _uuid(match[0][1:-1]), query)

    def __str__(self) -> str:
        """Draw the world, in the notation that `world` reads."""
        return "\n".join(_draw(self))


def provider_uuid(name: str) -> str:
    """The uuid of the provider with this name, in every world."""
    return _uuid(f"rp:{name}")


def aggregate_uuid(name: str) -> str:
    """The uuid of the aggregate with this name, in every world."""
    return _uuid(f"agg:{name}")


def consumer_uuid(name: str) -> str:
    """The uuid of the consumer that holds all that is used of the provider with this name."""
    return _uuid(f"consumer:{name}")


def inventory_fields(stock: Stock) -> dict[str, Any]:
    """The fields of the inventory, as the wire and the model alike name them."""
    fields = asdict(stock)
    del fields["used"]
    return fields


@cache
def standard_classes() -> frozenset[str]:
    """The resource classes that every deployment has."""
    return frozenset(os_resource_classes.STANDARDS)


@cache
def standard_traits() -> frozenset[str]:
    """The traits that every deployment has."""
    return frozenset(os_traits.get_traits())


def world(drawing: str, *, classes: str = "", traits: str = "") -> World:
    """Read a drawn world (see the module's text).

    `classes` and `traits` list names, separated by blanks, that exist without being in the drawing.
    """
    providers: list[WorldProvider] = []
    announced = frozenset(_ANNOUNCED.findall(drawing))
    line_of_descent: list[tuple[int, str]] = []
    for line in filter(str.strip, drawing.splitlines()):
        depth = len(line) - len(line.lstrip())
        while line_of_descent and line_of_descent[-1][0] >= depth:
            line_of_descent.pop()
        parent = line_of_descent[-1][1] if line_of_descent else None
        provider = _read_line(line, parent)
        providers.append(provider)
        line_of_descent.append((depth, provider.name))
    assert len({provider.name for provider in providers}) == len(providers), "a name twice"
    return World(
        tuple(providers),
        frozenset(classes.split()),
        frozenset(traits.split()),
        announced=announced,
    )


@cache
def load_examples() -> dict[str, Any]:
    """The recorded examples as they stand in the file; its `about` describes them."""
    examples: dict[str, Any] = json.loads(EXAMPLES_PATH.read_text())
    return examples


@cache
def example_world(key: str) -> World:
    """A world of the recorded examples."""
    recorded = load_examples()["worlds"][key]
    return World(
        tuple(_read_recorded(provider) for provider in recorded["providers"]),
        frozenset(recorded.get("create_resource_classes", ())),
        frozenset(recorded.get("create_traits", ())),
    )


_PLACEHOLDER: Final = re.compile(r"<(?:rp:[^>]+|agg:[^>]+|unknown)>")
_WORD: Final = re.compile(r"[^\s(]+(?:\([^)]*\))?")
_ANNOUNCED: Final = re.compile(r"(?<=\s\?)\S+")
_STOCK: Final = re.compile(r"(?P<name>[A-Z0-9_]+)=(?P<total>\d+)(?:\((?P<fields>[^)]*)\))?")
_FIELDS: Final = {
    "used": "used",
    "reserved": "reserved",
    "min": "min_unit",
    "max": "max_unit",
    "step": "step_size",
    "ratio": "allocation_ratio",
}


def _uuid(name: str) -> str:
    return str(uuid5(_NAMESPACE, name))


def _read_line(line: str, parent: str | None) -> WorldProvider:
    name, *words = _WORD.findall(line)
    stocks: dict[str, Stock] = {}
    traits: set[str] = set()
    aggregates: set[str] = set()
    drains: set[str] = set()
    for word in words:
        if word.startswith("@"):
            aggregates.add(word[1:])
        elif word.startswith(("!", "?")):
            drains.add(word[1:])
        elif match := _STOCK.fullmatch(word):
            stocks[match["name"]] = _read_stock(int(match["total"]), match["fields"] or "")
        else:
            assert "=" not in word, f"not an inventory: {word}"
            traits.add(word)
    return WorldProvider(
        name, parent, stocks, frozenset(traits), frozenset(aggregates), frozenset(drains)
    )


def _read_stock(total: int, fields: str) -> Stock:
    values: dict[str, Any] = {}
    for item in filter(None, re.split(r"[,\s]+", fields)):
        key, _, value = item.partition(":")
        values[_FIELDS[key]] = float(value) if key == "ratio" else int(value)
    return Stock(total, **values)


def _read_recorded(recorded: Mapping[str, Any]) -> WorldProvider:
    used = recorded.get("used", {})
    stocks: dict[str, Stock] = {}
    for name, inventory in recorded["inventories"].items():
        fields = inventory if isinstance(inventory, dict) else {"total": inventory}
        stocks[name] = Stock(**fields, used=used.get(name, 0))
    return WorldProvider(
        recorded["name"],
        recorded["parent"],
        stocks,
        frozenset(recorded["traits"]),
        frozenset(recorded["aggregates"]),
    )


def _draw(fleet: World) -> Iterator[str]:
    """The lines of the drawing, each tree together, children under their parents."""

    def lines(parent: str | None, indent: str) -> Iterator[str]:
        for provider in fleet.providers:
            if provider.parent == parent:
                words = [
                    *(_draw_stock(name, stock) for name, stock in provider.stocks.items()),
                    *sorted(provider.traits),
                    *(f"@{aggregate}" for aggregate in sorted(provider.aggregates)),
                    *(f"!{drain}" for drain in sorted(provider.drains - fleet.announced)),
                    *(f"?{drain}" for drain in sorted(provider.drains & fleet.announced)),
                ]
                yield "  ".join([indent + provider.name, *words])
                yield from lines(provider.name, indent + "  ")

    return lines(None, "")


def _draw_stock(name: str, stock: Stock) -> str:
    plain = Stock(stock.total)
    fields = [
        f"{short}:{getattr(stock, long)}"
        for short, long in _FIELDS.items()
        if getattr(stock, long) != getattr(plain, long)
    ]
    return f"{name}={stock.total}" + (f"({','.join(fields)})" if fields else "")
