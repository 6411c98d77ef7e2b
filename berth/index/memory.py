# SPDX-License-Identifier: Apache-2.0
"""What the readers of one fleet find out once and keep for each other between requests.

A `Memory` belongs to one index, is part of each of its snapshots, and depends on what classes and
traits are called: the first change of any name, of one that nobody uses too, begins a new one. So
nothing in it needs the names in its key, and nothing is shared between two databases of a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from berth.index.shape import Shape
    from berth.index.summary_text import Template

Part = TypeVar("Part")


class TextSize:
    """How many bytes the texts take that the blocks of one index keep; it outlives changes of
    names, as most texts do."""

    def __init__(self) -> None:
        #: Of all texts made since they were last forgotten; more than there are, as long as some
        #: went with their trees.
        self.size = 0


class Memory:
    """See the module's text.

    Attributes:
        templates: of whole trees, by shape; an entry ends with its shape.
        texts: see `TextSize`.
    """

    def __init__(self, texts: TextSize) -> None:
        self.templates: WeakKeyDictionary[Shape, Template] = WeakKeyDictionary()
        self.texts = texts
        self._parts: dict[type[Any], Any] = {}

    def part(self, kind: type[Part]) -> Part:
        """What a layer above keeps here: one object of its kind, made when it is first asked for.

        Whatever it keeps ends with the names, and says itself on what else it depends.
        """
        part = self._parts.get(kind)
        if part is None:
            part = self._parts.setdefault(kind, kind())
        found: Part = part
        return found
