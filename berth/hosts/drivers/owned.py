# SPDX-License-Identifier: Apache-2.0
"""What a driver has added to providers that others look after too, so that it can take it back.

A child that a driver has made bears a trait; what it has added to its root, or to another agent's
child, cannot be told from the service, and is noted in a file of this host. The file is written
before the service is: it may name what never came to be, and never lacks what did.
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

#: Borne by the children that a driver of hosts has made: linux, or libvirt, which report the same
#: things under the same names, and of which one stands on a host.
OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH"

#: Borne by those of the static driver, which may report beside the other one.
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
    """What a provider has."""
    return Parts(frozenset(data.inventory), frozenset(data.traits), frozenset(data.aggregates))


def owned_after(owned: Parts, *, wanted: Parts, there: Parts) -> Parts:
    """What is a driver's own once a provider has what it wants.

    Args:
        owned: what was the driver's own before.
        there: what the provider has; of this, what was not owned stays somebody else's.
    """
    return (wanted - there) | (owned & there) | (owned & wanted)


def take_from(tree: ProviderTree, provider: str, parts: Parts) -> None:
    """Take classes, traits and aggregates from a provider of a tree."""
    there = tree.data(provider).inventory
    left = {name: record for name, record in there.items() if name not in parts.classes}
    tree.update_inventory(provider, left)
    tree.remove_traits(provider, *parts.traits)
    tree.remove_aggregates(provider, *parts.aggregates)


#: By provider and by field of `Parts`.
_Noted = dict[str, dict[str, list[str]]]


class OwnedFile:
    """The file that notes what was added; by the root of the tree, then by provider."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: The file stays as it is: whoever writes it only wants to see what would be.
        self.is_fixed = False
        #: Its text at the last look, and what that says, by the root of the tree.
        self._known: tuple[str, dict[str, _Noted]] | None = None

    def read(self, root: str) -> dict[str, Parts]:
        """What was added to the providers of a tree, by their uuids.

        Raises:
            BadConfiguration: the file is no such file.
        """
        return {
            provider: Parts(*(frozenset(noted[name]) for name in Parts.__slots__))
            for provider, noted in self._read_all().get(root, {}).items()
        }

    def write(self, root: str, owned: Mapping[str, Parts]) -> None:
        """Note what was added to the providers of a tree; nothing is written where it stood there.

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
        # With 1,000 nodes in it, parsing it was half of the time that a node takes.
        if self._known is None or self._known[0] != text:
            self._known = text, self._parsed(text)
        return self._known[1]

    def _parsed(self, text: str) -> dict[str, _Noted]:
        try:
            body = json.loads(text)
            if body["version"] != _VERSION:
                raise ValueError
            roots: dict[str, _Noted] = body["roots"]
        except (ValueError, LookupError, TypeError) as error:
            raise BadConfiguration(
                [
                    f"{self._path} does not note what this host has added to its providers; move "
                    f"it away, and what was added before stays in the service"
                ]
            ) from error
        return roots

    def _replace(self, roots: dict[str, _Noted]) -> None:
        text = json.dumps({"version": _VERSION, "roots": roots}, sort_keys=True)
        try:
            replace_file(self._path, text)
        except OSError as error:
            raise BadConfiguration([f"{self._path} cannot be written: {error.strerror}"]) from error
        self._known = text, roots
