# SPDX-License-Identifier: Apache-2.0
"""The resource classes and traits of a service: read once, and created if they are custom."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Set
from typing import Final

from berth.hosts.service import Service, named_path
from berth.model.names import CUSTOM_PREFIX

LOG = logging.getLogger(__name__)

#: Seconds before a trait that the service did not know is looked up again.
_UNKNOWN_S: Final = 3600.0


class Names:
    """The resource classes and traits that the service is known to have, or not to have."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        self._classes: set[str] = set()
        self._traits: set[str] = set()
        #: Standard traits of a newer release than the service's, with the time when they were
        #: looked up.
        self._unknown_traits: dict[str, float] = {}

    def unknown_traits(self) -> set[str]:
        """Traits that the service did not know when they were last looked up."""
        since = self._clock() - _UNKNOWN_S
        # A copy, because another thread may add to the original.
        asked = list(self._unknown_traits.items())
        return {name for name, asked_at in asked if asked_at > since}

    def forget(self) -> None:
        """Look everything up again: an operator may delete unused custom names."""
        self._classes.clear()
        self._traits.clear()

    def learn_classes(self, names: Iterable[str]) -> None:
        """Remember resource classes that the service has."""
        self._classes.update(names)

    def unknown_classes(self, names: Iterable[str]) -> set[str]:
        """Those of some resource classes that the service does not have."""
        if {*names} - self._classes:
            listed = self._service.get("/resource_classes")["resource_classes"]
            self.learn_classes(resource_class["name"] for resource_class in listed)
        return {*names} - self._classes

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Create the custom resource classes that do not exist."""
        for name in sorted({*names} - self._classes):
            self._service.put(named_path("/resource_classes", name))
            self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> set[str]:
        """Create the custom traits that were not seen yet.

        Returns:
            Those of `names` that exist now: a host may know standard traits that an older service
                does
            not, which is logged.
        """
        wanted = {*names}
        if new := wanted - self._traits:
            existing = set(
                self._service.get("/traits", name=f"in:{','.join(sorted(new))}")["traits"]
            )
            for name in sorted(new - existing):
                if name.startswith(CUSTOM_PREFIX):
                    self._service.put(named_path("/traits", name))
                    existing.add(name)
            self._traits |= existing
            self._note_unknown(wanted - self._traits)
        return wanted & self._traits

    def _note_unknown(self, names: Set[str]) -> None:
        if new := names - self._unknown_traits.keys():
            LOG.warning(
                "The service does not know the traits %s, which are left out",
                ", ".join(sorted(new)),
            )
        self._unknown_traits |= dict.fromkeys(names, self._clock())
