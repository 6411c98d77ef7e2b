# SPDX-License-Identifier: Apache-2.0
"""Requests that name existing objects and mostly succeed; random names would seldom do."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.candidates.strategies import CLASSES
from tests.proof.model.names import CONSUMERS, PROVIDERS, consumers, minors, records
from tests.proof.model.plain_model import Record
from tests.proof.model.writing import Writing
from tests.worlds import consumer_uuid, provider_uuid


class Aiming(Writing):
    """Each rule draws from the model's current state."""

    @precondition(lambda self: self.stocked())
    @rule(minor=minors(8), consumer=consumers, data=st.data())
    def claim_what_is_there(self, minor: int, consumer: str, data: st.DataObject) -> None:
        allocations = {}
        for place in data.draw(st.sets(st.sampled_from(self.stocked()), min_size=1, max_size=2)):
            stock = self.model.providers[provider_uuid(place)].inventories
            name = data.draw(st.sampled_from(sorted(stock)))
            allocations[place] = {name: max(stock[name].min_unit, stock[name].step_size)}
        self.claim(minor, consumer, "right", allocations, "red", "ann", "INSTANCE")

    @precondition(lambda self: self.model.consumers)
    @rule(minor=minors(0), data=st.data())
    def release_what_is_held(self, minor: int, data: st.DataObject) -> None:
        holders = [name for name in CONSUMERS if consumer_uuid(name) in self.model.consumers]
        self.release(minor, data.draw(st.sampled_from(holders)))

    @precondition(lambda self: self.there())
    @rule(minor=minors(0), name=st.sampled_from(CLASSES), record=records, data=st.data())
    def add_what_is_missing(
        self, minor: int, name: str, record: Record, data: st.DataObject
    ) -> None:
        self.add_inventory(minor, data.draw(st.sampled_from(self.there())), name, record)

    @precondition(lambda self: self.there())
    @rule(data=st.data())
    def move_in_the_forest(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(self.there()))
        above = data.draw(st.none() | st.sampled_from(self.there()))
        name = self.model.providers[provider_uuid(place)].name
        self.update_provider(39, place, name, above)

    @precondition(lambda self: self.stocked() and len(self.there()) > 1)
    @rule(minor=minors(30), data=st.data())
    def reshape_what_is_there(self, minor: int, data: st.DataObject) -> None:
        source = data.draw(st.sampled_from(self.stocked()))
        home = data.draw(st.sampled_from([name for name in self.there() if name != source]))
        stock = self.model.providers[provider_uuid(source)].inventories
        self.reshape_a_class_away(minor, source, home, data.draw(st.sampled_from(sorted(stock))))

    def there(self) -> list[str]:
        """The providers that exist."""
        return [name for name in PROVIDERS if provider_uuid(name) in self.model.providers]

    def stocked(self) -> list[str]:
        """Those of them with inventory."""
        return [n for n in self.there() if self.model.providers[provider_uuid(n)].inventories]
