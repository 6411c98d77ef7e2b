# SPDX-License-Identifier: Apache-2.0
"""Offers each physical thing once, whatever rules, classes and models called it: pure.

A card, the processors of a place and the memory of a place are one thing each. It has many forms:
a card is offered whole, as virtual functions, as mediated devices of a type or as slices, under any
class and by any provider; processors are VCPU or PCPU; memory has pages of several sizes. Where the
form changes, what is in use under the old form counts against the new one, and the new one grows by
what is left. Nothing else is ever taken from it:

- of a card, and of memory: what is neither in use nor offered. A card whose size is unknown in
  units of the new form counts as the smaller number of units, so that it is never divided twice;
- of processors of which none are left in the old form: nothing until the old form is released, for
  its guests may run on each of them. Nor of slices, which differ in size, nor while the model
  changes too, for it is unknown which part of the host is in use.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import ceil
from typing import Any

from berth.hosts.drivers import Used
from berth.hosts.drivers.host_model.devices import FORM_TRAIT
from berth.hosts.drivers.host_model.facts import share_out
from berth.hosts.drivers.host_model.layout import (
    MOVING,
    HostProvider,
    device_address,
    place_of,
)
from berth.hosts.provider_tree import ProviderData

#: Begins the classes of slices.
_SLICES = "CUSTOM_MIG_"


@dataclass(frozen=True, slots=True)
class _Share:
    """A record of a thing, as it is and as it should be."""

    provider: str
    resource_class: str
    #: Records of one form have the same unit, and may follow each other.
    form: Hashable
    before: int
    after: int


def total_in_use(record: Mapping[str, Any], amount: int) -> int:
    """The total that is needed for an allocated amount, and for what is reserved beside it."""
    used: int = ceil(amount / record.get("allocation_ratio", 1.0)) + record.get("reserved", 0)
    return used if amount else 0


@dataclass(eq=False)
class Budget:
    """What is wanted of each thing, reduced to what may be offered of it.

    Attributes:
        wanted: the providers, whose records are edited.
        own: the driver's providers in the tree.
        are_pages_apart: whether huge pages are a form of their own; if not, they move.
        cards: the card of each PCI function of the host, by address.
        used: None: the usage is unknown, and everything may be in use.
    """

    wanted: dict[str, HostProvider]
    own: Mapping[str, ProviderData]
    _: KW_ONLY
    root: str
    are_pages_apart: bool
    cards: Mapping[str, str]
    used: Used | None
    #: Providers that keep the traits of their old form, which is in use.
    unchanged: set[str] = field(default_factory=set, init=False)
    #: The classes of which a provider offers nothing now.
    withheld: set[str] = field(default_factory=set, init=False)

    def settle(self) -> Iterator[str]:
        """Reduce the records; yield a sentence for each that is reduced."""
        for name in [name for name, provider in self.wanted.items() if provider.device]:
            yield from self._hold_form(name)
        for (thing, place), shares in self._things().items():
            yield from self._settle(shares, thing, is_strict=place is None)

    def in_use(self, name: str, resource_class: str) -> int:
        """The part of a record's total that is in use."""
        data = self.own.get(name)
        record = None if data is None else data.inventory.get(resource_class)
        if data is None or record is None:
            return 0
        if self.used is None:
            return int(record["total"])
        return total_in_use(record, self.used(data.uuid).get(resource_class, 0))

    # --- The same class of another form -----------------------------------------------------------

    def _hold_form(self, name: str) -> Iterator[str]:
        """Offer no more of a device that is divided otherwise than what is in use of it."""
        if name not in self.own or not _has_other_form(self.own[name], self.wanted[name]):
            return
        for resource_class, record in self.wanted[name].records.items():
            if needed := self.in_use(name, resource_class):
                self.unchanged.add(name)
                yield (
                    f"{name} is divided otherwise now, and offers no more {resource_class} until "
                    f"all {needed} are released"
                )
                record["total"] = record["max_unit"] = needed

    # --- Things -----------------------------------------------------------------------------------

    def _things(self) -> dict[tuple[str, Hashable], list[_Share]]:
        """The shares of each thing; of processors and memory, by place."""
        things: dict[tuple[str, Hashable], list[_Share]] = {}
        for name in {**self.own, **self.wanted}:
            data = self.own.get(name)
            before = {} if data is None else data.inventory
            after = self.wanted[name].records if name in self.wanted else {}
            for resource_class in {**before, **after}:
                for thing, form in self._thing_of(name, resource_class):
                    share = _Share(
                        name,
                        resource_class,
                        form,
                        before.get(resource_class, {"total": 0})["total"],
                        after.get(resource_class, {"total": 0})["total"],
                    )
                    things.setdefault(thing, []).append(share)
        return _with_mixed_models(things)

    def _thing_of(
        self, name: str, resource_class: str
    ) -> Iterator[tuple[tuple[str, Hashable], Hashable]]:
        """The thing, and the form, of a record; several, if it is unknown which of them."""
        if place := place_of(name, self.root):
            if resource_class in MOVING:
                is_memory = resource_class == "MEMORY_MB"
                thing = "the memory" if is_memory else "the processors"
                where = "the host" if place.node is None else place.node
                pages = place.pages if self.are_pages_apart else None
                yield (thing, where), (resource_class, pages)
            return
        for card in self._cards_of(name):
            yield ("the card", card), (name, resource_class)

    def _cards_of(self, name: str) -> Collection[str]:
        """The card of a provider; all on its bus, if the host no longer has its function."""
        if name in self.wanted and (device := self.wanted[name].device):
            return [device.card]
        address = device_address(name, self.root)
        if address is None or address in self.cards:
            return [self.cards.get(address or "", name)]
        bus = address.rpartition(":")[0] + ":"
        wanted = {provider.device.card for provider in self.wanted.values() if provider.device}
        return {address, *(card for card in wanted if card.startswith(bus))}

    # --- One thing --------------------------------------------------------------------------------

    def _settle(self, shares: list[_Share], thing: str, *, is_strict: bool) -> Iterator[str]:
        forms: dict[Hashable, list[_Share]] = {}
        for share in shares:
            forms.setdefault(share.form, []).append(share)
        growing = [of_form for of_form in forms.values() if _growth(of_form) > 0]
        if not growing or len(forms) == 1:
            return
        excess = {form: self._excess(of_form) for form, of_form in forms.items()}
        old = [share for share in shares if excess[share.form] and self._in_use(share)]
        is_card = thing == "the card"
        has_slices = any(share.resource_class.startswith(_SLICES) for share in shares)
        is_strict |= has_slices if is_card else _has_none_left(old, forms)
        room = 0 if is_strict else _room(shares, is_card=is_card) - sum(excess.values())
        for of_form in growing if old else []:
            beside = {share.provider for share in of_form if is_card}
            most = _growth(of_form) - self._excess([s for s in old if s.provider in beside])
            grant = max(0, min(room, most))
            room -= grant
            yield from self._give(of_form, grant, old, thing)
        if not is_card:
            self._hold_up(old)

    def _in_use(self, share: _Share) -> int:
        return self.in_use(share.provider, share.resource_class)

    def _excess(self, shares: list[_Share]) -> int:
        """What is in use of a form beyond what is wanted of it."""
        return max(0, sum(map(self._in_use, shares)) - _sum_after(shares))

    def _give(
        self, shares: list[_Share], grant: int, old: list[_Share], thing: str
    ) -> Iterator[str]:
        """Let a form grow by as much as is granted."""
        if grant >= (growth := _growth(shares)):
            return
        wanted = [share for share in shares if share.after]
        allowed = _sum_after(shares) - growth + grant
        totals = share_out(allowed, [share.after for share in wanted])
        for share, total in zip(wanted, totals, strict=True):
            offered = self._reduce(share, total)
            yield (
                f"{share.provider} offers {offered} {share.resource_class} and not {share.after}, "
                f"because {', '.join(map(self._held_of, old))} {thing}: release that first"
            )

    def _held_of(self, share: _Share) -> str:
        uuid = self.own[share.provider].uuid
        amount = self.used(uuid).get(share.resource_class, 0) if self.used else share.before
        verb = "are allocated of" if self.used else "may be allocated of"
        return f"{amount} {share.resource_class} of {share.provider} {verb}"

    def _reduce(self, share: _Share, total: int) -> int:
        """Reduce a record to a whole number of steps, and leave it out if nothing is left."""
        provider = self.wanted[share.provider]
        record = provider.records[share.resource_class]
        total -= total % int(record.get("step_size", 1))
        record["total"], record["max_unit"] = total, min(record["max_unit"], total)
        if not total:
            self.withheld.add(share.resource_class)
            del provider.records[share.resource_class]
            place = provider.place
            if not provider.records and (place is None or place.pages is not None):
                del self.wanted[share.provider]
        return total

    def _hold_up(self, old: list[_Share]) -> None:
        """Keep what is wanted of a form at what is in use, so that a later pass sees it too."""
        for share in old:
            if share.after:
                record = self.wanted[share.provider].records[share.resource_class]
                needed = min(self._in_use(share), share.before)
                record["total"] = max(record["total"], needed)


def _growth(shares: list[_Share]) -> int:
    return sum(share.after - share.before for share in shares)


def _has_none_left(old: list[_Share], forms: Mapping[Hashable, list[_Share]]) -> bool:
    """Whether guests use processors of a kind that there is no more."""
    return any(
        share.resource_class != "MEMORY_MB" and not _sum_after(forms[share.form]) for share in old
    )


def _room(shares: list[_Share], *, is_card: bool) -> int:
    """The units of a thing that no form has yet; a card has the units of its coarser form."""
    after, before = _sum_after(shares), sum(share.before for share in shares)
    all_units = min(after, before) if is_card else after
    return all_units - sum(min(share.before, share.after) for share in shares)


def _sum_after(shares: list[_Share]) -> int:
    return sum(share.after for share in shares)


def _with_mixed_models(
    things: dict[tuple[str, Hashable], list[_Share]],
) -> dict[tuple[str, Hashable], list[_Share]]:
    """The processors and memory of the whole host together, where they were or will be on its root
    and on NUMA nodes: the place is None then."""
    merged = dict(things)
    for thing in ("the processors", "the memory"):
        places = [place for place in things if place[0] == thing]
        if (thing, "the host") in places and len(places) > 1:
            merged[thing, None] = [share for place in places for share in merged.pop(place)]
    return merged


def _has_other_form(existing: ProviderData, wanted: HostProvider) -> bool:
    """Whether a device is divided otherwise than at the last pass, as its traits say.

    One without such a trait, and with more than one unit, is of an earlier release.
    """
    was, is_now = (
        {trait for trait in traits if trait.startswith(FORM_TRAIT)}
        for traits in (existing.traits, wanted.traits)
    )
    if was or not is_now:
        return was != is_now
    return any(
        existing.inventory.get(name, {"total": 0})["total"] == 1 < record["total"]
        for name, record in wanted.records.items()
    )
