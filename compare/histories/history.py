# SPDX-License-Identifier: Apache-2.0
"""One history: which request comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compare.histories import writers
from compare.histories.dice import Dice
from compare.histories.picture import Picture
from compare.histories.queries import show_candidates
from compare.histories.spoil import SPOILERS, Spoiler
from compare.histories.writers import Writer
from compare.script.step import Step, request

_SPOILT_SHARE = 0.2
#: How many requests build the world before anything else is asked.
_FOUNDING_STEPS = 30
FOUNDERS: Mapping[Writer, int] = {
    writers.create_provider: 8,
    writers.put_inventories: 8,
    writers.put_aggregates: 4,
    writers.put_traits: 5,
    writers.touch_trait: 3,
    writers.touch_class: 3,
}
WRITERS: Mapping[Writer, int] = {
    writers.create_provider: 5,
    writers.show_provider: 4,
    writers.update_provider: 4,
    writers.delete_provider: 2,
    writers.list_providers: 10,
    writers.show_inventories: 4,
    writers.put_inventories: 6,
    writers.post_inventory: 3,
    writers.put_inventory: 4,
    writers.delete_inventory: 4,
    writers.show_part: 8,
    writers.put_aggregates: 3,
    writers.put_traits: 3,
    writers.delete_traits: 1,
    writers.list_traits: 2,
    writers.touch_trait: 4,
    writers.touch_class: 4,
    writers.put_allocations: 16,
    writers.post_allocations: 8,
    writers.touch_allocations: 8,
    writers.show_usages: 5,
    writers.reshape: 4,
    writers.show_root: 1,
    show_candidates: 20,
}


class History:
    """A world and the requests to it; the answers to each are told to `picture`."""

    def __init__(
        self,
        seed: str,
        steps_count: int,
        *,
        writers: Mapping[Writer, int] = WRITERS,
        spoilers: Mapping[Spoiler, int] = SPOILERS,
    ) -> None:
        self._dice = Dice(seed)
        self._steps_count = steps_count
        self._writers = writers
        self._spoilers = spoilers
        # Upper case and digits only: it stands in the names of classes and traits.
        self.picture = Picture(f"H{''.join(c if c.isdigit() else 'X' for c in seed)}H")

    def steps(self) -> Iterator[Step]:
        """The requests, each drawn when the answers before it are known.

        The last ones take everything away again, as a client would that leaves nothing behind.
        """
        for count in range(self._steps_count):
            yield self._step(FOUNDERS if count < _FOUNDING_STEPS else self._writers)
        yield from self._farewell()

    def _step(self, table: Mapping[Writer, int]) -> Step:
        step = self._dice.drawn(table)(self._dice, self.picture)
        if self._dice.chance(_SPOILT_SHARE):
            return self._dice.drawn(self._spoilers)(self._dice, step)
        return step

    def _farewell(self) -> Iterator[Step]:
        picture = self.picture
        for consumer in list(picture.consumers):
            yield request("DELETE", f"/allocations/{consumer}")
        roots = [each.uuid for each in picture.providers.values() if each.parent is None]
        downwards = [uuid for root in roots for uuid in picture.subtree_of(root)]
        for uuid in reversed(downwards):
            yield request("DELETE", f"/resource_providers/{uuid}")
        for name in list(picture.traits):
            yield request("DELETE", f"/traits/{name}")
        for name in list(picture.classes):
            yield request("DELETE", f"/resource_classes/{name}")
