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
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from berth.hosts.errors import BadConfiguration
from berth.hosts.files import refusing, replace_file
from berth.hosts.provider_tree import ProviderData, ProviderTree

#: Marks children that the driver linux or libvirt has created. They report the same things under
#: the same names, and a host has one of them.
OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH"

#: Marks children of the static driver, which may report beside another driver.
STATIC_OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH_STATIC"

_VERSION: Final = 1


def is_owned(traits: Iterable[str]) -> bool:
    """Whether a driver of berth has created the provider with some traits."""
    return any(trait.startswith(OWNER_TRAIT) for trait in traits)


#: Resource classes, traits and aggregates of one provider: the kind and the name of each.
Parts = frozenset[tuple[str, str]]

_KINDS: Final = ("classes", "traits", "aggregates")


def parts_of(data: ProviderData) -> Parts:
    """All parts of a provider."""
    return _parts(data.inventory, data.traits, data.aggregates)


def classes_in(inventory: Iterable[str]) -> Parts:
    """Resource classes as parts."""
    return _parts(inventory, (), ())


def names_of(parts: Parts, *kinds: str) -> set[str]:
    """The names of the parts of some kinds."""
    return {name for kind, name in parts if kind in kinds}


def give(
    tree: ProviderTree,
    provider: str,
    inventory: Mapping[str, Mapping[str, int | float]],
    traits: Collection[str] = (),
    aggregates: Collection[str] = (),
    *,
    own: Parts,
) -> Parts:
    """Give a provider what a driver wants it to have, and remove what it does not want any more.

    The driver owns the classes that it wants, even if another client added them first.

    Args:
        own: the driver's own parts before; all others belong to others.

    Returns:
        Its own parts afterwards.
    """
    wanted, present = _parts(inventory, traits, aggregates), parts_of(tree.data(provider))
    own |= classes_in(inventory) & present
    take_from(tree, provider, own - wanted)
    tree.update_inventory(provider, {**tree.data(provider).inventory, **inventory})
    tree.add_traits(provider, *traits)
    tree.add_aggregates(provider, *aggregates)
    return (wanted - present) | (own & present)


def take_from(tree: ProviderTree, provider: str, parts: Parts) -> None:
    """Remove parts from a provider of a tree."""
    inventory, classes = tree.data(provider).inventory, names_of(parts, "classes")
    left = {name: record for name, record in inventory.items() if name not in classes}
    tree.update_inventory(provider, left)
    tree.remove_traits(provider, *names_of(parts, "traits"))
    tree.remove_aggregates(provider, *names_of(parts, "aggregates"))


def _parts(classes: Iterable[str], traits: Iterable[str], aggregates: Iterable[str]) -> Parts:
    by_kind = zip(_KINDS, (classes, traits, aggregates), strict=True)
    return frozenset((kind, name) for kind, names in by_kind for name in names)


#: By provider and kind.
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
            provider: _parts(*(noted[kind] for kind in _KINDS))
            for provider, noted in self._read_all().get(root, {}).items()
        }

    def write(self, root: str, owned: Mapping[str, Parts]) -> None:
        """Record the parts of a tree's providers; do nothing if they are recorded already.

        Raises:
            BadConfiguration: the file cannot be written.
        """
        roots = self._read_all()
        noted = {
            provider: {kind: sorted(names_of(parts, kind)) for kind in _KINDS}
            for provider, parts in owned.items()
            if parts
        }
        if noted != roots.get(root, {}) and not self.is_fixed:
            self._replace({**roots, root: noted})

    def _read_all(self) -> dict[str, _Noted]:
        with refusing(f"{self._path} cannot be read"):
            try:
                text = self._path.read_text()
            except FileNotFoundError:
                return {}
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
                f"{self._path} is not a record of what this host has added to its providers; "
                f"move it away, and earlier additions stay in the service"
            ) from error
        return roots

    def _replace(self, roots: dict[str, _Noted]) -> None:
        text = json.dumps({"version": _VERSION, "roots": roots}, sort_keys=True)
        with refusing(f"{self._path} cannot be written"):
            replace_file(self._path, text)
        self._last_read = text, roots
