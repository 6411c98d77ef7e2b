# SPDX-License-Identifier: Apache-2.0
"""Keeps what a person has set on a provider while what it stands for is away.

The provider stays in the service for some days and gives nothing: its trait says until when, and
no amount is as large as the `min_unit` of its records. Reserved amounts, allocation ratios, traits,
aggregates and drains are in force again when it comes back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.model.inventory import MAX_INT

#: The beginning of the trait of a provider that is kept; the rest is the last day, as in 20261231.
KEPT_UNTIL: Final = "CUSTOM_KEPT_UNTIL_"
KEEP_DAYS: Final = 30

#: By drain, the names of the providers of a tree that it names; `ReportClient.drains_of` is one.
Drained = Callable[[str], Mapping[str, Sequence[str]]]


@dataclass(slots=True)
class Keeping:
    """How long a driver keeps settings.

    Args:
        days: the time; 0: not at all.
        drained: the drains in a tree, by its root's UUID; None: drains are not looked at.
    """

    days: int = KEEP_DAYS
    today: Callable[[], date] = lambda: datetime.now(UTC).date()
    drained: Drained | None = None

    def keep(self, tree: ProviderTree, data: ProviderData, reported: Collection[str]) -> str:
        """Keep a provider that is away, if a person has set something on it.

        Args:
            reported: the traits and aggregates that the driver has given it.

        Returns:
            A notice; empty if the provider is not kept, and can be removed.
        """
        until = self._end(data.traits)
        settings = [*_settings(data, reported), *self._drains(tree, data)]
        if not settings or until < self.today():
            return ""
        tree.update_inventory(
            data.uuid,
            {name: _locked(record) for name, record in data.inventory.items() if _is_set(record)},
        )
        tree.add_traits(data.uuid, f"{KEPT_UNTIL}{until:%Y%m%d}")
        return (
            f"{data.name} is away and offers nothing; what was set on it is kept until {until}: "
            f"{', '.join(settings)}"
        )

    def _end(self, traits: Collection[str]) -> date:
        """The last day for a provider, which it has been given already or gets now."""
        return last_day(traits) or self.today() + timedelta(days=self.days or -1)

    def _drains(self, tree: ProviderTree, data: ProviderData) -> Iterator[str]:
        drains = self.drained(tree.get_root_uuid(data.uuid)) if self.drained else {}
        for drain, names in drains.items():
            if data.name in names:
                yield f"drain {drain}"


_END: Final = re.compile(KEPT_UNTIL + r"(\d{4})(\d\d)(\d\d)")


def end_traits(traits: Collection[str]) -> frozenset[str]:
    """Those of some traits that say until when a provider is kept."""
    return frozenset(filter(_END.fullmatch, traits))


def last_day(traits: Collection[str]) -> date | None:
    """Until when a provider with some traits is kept; None: it is not away."""
    for match in filter(None, map(_END.fullmatch, traits)):
        with suppress(ValueError):
            return date(int(match[1]), int(match[2]), int(match[3]))
    return None


def unlock(record: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Let a record be used again that was kept."""
    if before.get("min_unit") == MAX_INT:
        record.setdefault("min_unit", 1)


def _is_set(record: Mapping[str, Any]) -> bool:
    return bool(record.get("reserved")) or record.get("allocation_ratio", 1.0) != 1.0


def _locked(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record that gives nothing, with what was set in it."""
    total = record.get("reserved") or 1
    return {**record, "total": total, "min_unit": MAX_INT, "max_unit": MAX_INT}


def _settings(data: ProviderData, reported: Collection[str]) -> Iterator[str]:
    """What a person has set on a provider, in words."""
    for name, record in data.inventory.items():
        if reserved := record.get("reserved"):
            yield f"{reserved} {name} reserved"
        if (ratio := record.get("allocation_ratio", 1.0)) != 1.0:
            yield f"ratio {ratio} of {name}"
    yield from sorted({*data.traits} - {*reported} - end_traits(data.traits))
    yield from (f"aggregate {each}" for each in sorted({*data.aggregates} - {*reported}))
