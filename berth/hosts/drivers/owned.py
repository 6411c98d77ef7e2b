# SPDX-License-Identifier: Apache-2.0
"""Records what a driver has added to providers that others manage too, so that it can remove it
again.

A driver marks the children that it creates with a trait. What it adds to the root, or to another
agent's child, is recorded in a file on this host, since the service does not tell who added it. The
file is written before the service is: it may name something that was never added, but never misses
anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from berth.hosts.errors import BadConfiguration
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.hosts.whole_files import replace_file

#: Marks children that the driver linux or libvirt has created. They report the same things under
#: the same names, and a host has one of them.
OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH"

#: Marks children of the static driver, which may report beside another driver.
STATIC_OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH_STATIC"

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Parts:
    """Resource classes, traits and aggregates of one provider."""

    classes: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.classes or self.traits or self.aggregates)

    def __or__(self, other: Parts) -> Parts:
        return Parts(
            self.classes | other.classes,
            self.traits | other.traits,
            self.aggregates | other.aggregates,
        )

    def __and__(self, other: Parts) -> Parts:
        return Parts(
            self.classes & other.classes,
            self.traits & other.traits,
            self.aggregates & other.aggregates,
        )

    def __sub__(self, other: Parts) -> Parts:
        return Parts(
            self.classes - other.classes,
            self.traits - other.traits,
            self.aggregates - other.aggregates,
        )


def parts_of(data: ProviderData) -> Parts:
    """All parts of a provider."""
    return Parts(frozenset(data.inventory), frozenset(data.traits), frozenset(data.aggregates))


def owned_after(owned: Parts, *, wanted: Parts, present: Parts) -> Parts:
    """The parts that are a driver's own after it has given a provider what it wants.

    Args:
        owned: the driver's own parts before.
        present: all parts that the provider has; those that are not owned belong to others.
    """
    return (wanted - present) | (owned & present)


def take_from(tree: ProviderTree, provider: str, parts: Parts) -> None:
    """Remove parts from a provider of a tree."""
    inventory = tree.data(provider).inventory
    left = {name: record for name, record in inventory.items() if name not in parts.classes}
    tree.update_inventory(provider, left)
    tree.remove_traits(provider, *parts.traits)
    tree.remove_aggregates(provider, *parts.aggregates)


#: By provider and field of `Parts`.
_Noted = dict[str, dict[str, list[str]]]


class OwnedFile:
    """The file that records what was added, by root and provider."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: Whether the file must not be written, because the changes are not sent.
        self.is_fixed = False
        #: The text that was last read, and its parsed content by root.
        self._last_read: tuple[str, dict[str, _Noted]] | None = None

    def read(self, root: str) -> dict[str, Parts]:
        """The recorded parts of a tree's providers, by UUID.

        Raises:
            BadConfiguration: the file is something else.
        """
        return {
            provider: Parts(*(frozenset(noted[name]) for name in Parts.__slots__))
            for provider, noted in self._read_all().get(root, {}).items()
        }

    def write(self, root: str, owned: Mapping[str, Parts]) -> None:
        """Record the parts of a tree's providers; do nothing if they are recorded already.

        Raises:
            BadConfiguration: the file cannot be written.
        """
        roots = self._read_all()
        noted = {
            provider: {name: sorted(getattr(parts, name)) for name in Parts.__slots__}
            for provider, parts in owned.items()
            if parts
        }
        if noted != roots.get(root, {}) and not self.is_fixed:
            self._replace({**roots, root: noted})

    def _read_all(self) -> dict[str, _Noted]:
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BadConfiguration([f"{self._path} cannot be read: {error.strerror}"]) from error
        # With 1,000 nodes in the file, parsing it took half of a node's time.
        if self._last_read is None or self._last_read[0] != text:
            self._last_read = text, self._parsed(text)
        return self._last_read[1]

    def _parsed(self, text: str) -> dict[str, _Noted]:
        try:
            body = json.loads(text)
            if body["version"] != _VERSION:
                raise ValueError
            roots: dict[str, _Noted] = body["roots"]
        except (ValueError, LookupError, TypeError) as error:
            raise BadConfiguration(
                [
                    f"{self._path} is not a record of what this host has added to its providers; "
                    f"move it away, and earlier additions stay in the service"
                ]
            ) from error
        return roots

    def _replace(self, roots: dict[str, _Noted]) -> None:
        text = json.dumps({"version": _VERSION, "roots": roots}, sort_keys=True)
        try:
            replace_file(self._path, text)
        except OSError as error:
            raise BadConfiguration([f"{self._path} cannot be written: {error.strerror}"]) from error
        self._last_read = text, roots
