# SPDX-License-Identifier: Apache-2.0
"""The CPUs and the memory of running guests that nobody has allocated: others can get them too.

A guest that someone starts by hand uses the host, and the service does not know. What is reserved
may be meant for such guests, so it counts as allocated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from berth.hosts.drivers import Used
from berth.hosts.drivers.host_model.layout import PAGE_SIZE_TRAIT
from berth.hosts.drivers.libvirt.xml_documents import Guest
from berth.hosts.provider_tree import ProviderData

#: The passes for which a comparison holds, unless a guest or a provider changes: the deletion of a
#: consumer changes no provider, and to ask in each pass would double the requests of a fleet.
_PASSES: Final = 15


class Unclaimed:
    """Compares what guests use with what is allocated."""

    def __init__(self) -> None:
        #: What was compared, for how many passes it holds, and the notices.
        self._result: tuple[object, int, tuple[str, ...]] = None, 0, ()

    def notices(
        self,
        providers: Sequence[ProviderData],
        guests: Sequence[Guest],
        dedicated: Set[int],
        used: Used,
    ) -> Sequence[str]:
        """A sentence for each class of which running guests use more than is allocated.

        Args:
            providers: those of the host's tree that the service knows.
            dedicated: the CPUs that are offered as PCPU, which are compared elsewhere.
        """
        compared = guests, dedicated, [(data.uuid, data.generation) for data in providers]
        before, passes, notices = self._result
        if compared != before or passes == 0:
            notices, passes = tuple(_notices(providers, guests, dedicated, used)), _PASSES
        self._result = compared, passes - 1, notices
        return notices


def _notices(
    providers: Iterable[ProviderData], guests: Sequence[Guest], dedicated: Set[int], used: Used
) -> Iterator[str]:
    in_use: Counter[str] = Counter()
    for guest in guests:
        in_use["VCPU"] += guest.vcpus - sum(pins <= dedicated for pins in guest.pins)
        in_use["MEMORY_MB"] += guest.memory_mib
        if guest.page_kib is not None:
            in_use[_in_pages(guest.page_kib)] += guest.memory_mib
    in_use = +in_use
    given: Counter[str] = Counter()
    for data in providers:
        names = in_use.keys() & data.inventory.keys()
        of_one = used(data.uuid) if names else {}
        for name in names:
            amount = of_one.get(name, 0) + data.inventory[name].get("reserved", 0)
            given[name] += amount
            if name == "MEMORY_MB":
                given.update({_in_pages(size): amount for size in _page_sizes(data)})
    for name in sorted(in_use.keys() & given.keys()):
        if in_use[name] > given[name]:
            yield (
                f"Running guests have {in_use[name]} {name}, and {given[name]} are allocated or "
                "reserved: the others are offered although they are in use"
            )


def _page_sizes(data: ProviderData) -> Iterator[str]:
    for trait in data.traits:
        if trait.startswith(PAGE_SIZE_TRAIT):
            yield trait.removeprefix(PAGE_SIZE_TRAIT)


def _in_pages(size: int | str) -> str:
    return f"MEMORY_MB in pages of {size} KiB"
