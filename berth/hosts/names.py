# SPDX-License-Identifier: Apache-2.0
"""Resource classes and traits that the service has; asked for once, and made where they may be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Set
from typing import Final

from berth.hosts.service import Service, named_path
from berth.model.names import CUSTOM_PREFIX

LOG = logging.getLogger(__name__)

#: Seconds for which a trait that the service did not know is not asked for again.
_UNKNOWN_S: Final = 3600.0


class Names:
    """Resource classes and traits that the service is known to have, or not to have."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        self._classes: set[str] = set()
        self._traits: set[str] = set()
        #: Standard traits of a newer release than the service's, and when they were asked for.
        self._unknown_traits: dict[str, float] = {}

    def unknown_traits(self) -> set[str]:
        """Traits that the service did not know when they were asked for a while ago."""
        since = self._clock() - _UNKNOWN_S
        # A copy: another thread may be told of others.
        asked = list(self._unknown_traits.items())
        return {name for name, asked_at in asked if asked_at > since}

    def forget(self) -> None:
        """Look for everything again: an operator may delete custom names that nothing uses."""
        self._classes.clear()
        self._traits.clear()

    def learn_classes(self, names: Iterable[str]) -> None:
        """Take note of resource classes that the service was seen to have."""
        self._classes.update(names)

    def unknown_classes(self, names: Iterable[str]) -> set[str]:
        """Those of some resource classes that the service does not have."""
        if {*names} - self._classes:
            listed = self._service.get("/resource_classes")["resource_classes"]
            self.learn_classes(one["name"] for one in listed)
        return {*names} - self._classes

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Make the custom resource classes that are not there."""
        for name in sorted({*names} - self._classes):
            self._service.put(named_path("/resource_classes", name))
            self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> set[str]:
        """Make the custom traits that were not seen yet.

        Returns:
            Those of `names` that exist now: a host may know standard traits that an older service
            does not, and is told which.
        """
        wanted = {*names}
        if new := wanted - self._traits:
            there = set(self._service.get("/traits", name=f"in:{','.join(sorted(new))}")["traits"])
            for name in sorted(new - there):
                if name.startswith(CUSTOM_PREFIX):
                    self._service.put(named_path("/traits", name))
                    there.add(name)
            self._traits |= there
            self._note_unknown(wanted - self._traits)
        return wanted & self._traits

    def _note_unknown(self, names: Set[str]) -> None:
        if untold := names - self._unknown_traits.keys():
            LOG.warning(
                "The service does not know the traits %s; they are left out",
                ", ".join(sorted(untold)),
            )
        self._unknown_traits |= dict.fromkeys(names, self._clock())
