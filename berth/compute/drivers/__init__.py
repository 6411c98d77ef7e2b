# SPDX-License-Identifier: Apache-2.0
"""Drivers: who knows a host, and edits its tree of providers accordingly.

A driver is found by its name among the entry points of the group `berth.compute.drivers`, those of
berth and those of any other package that is installed. Each names a function that takes the
driver's options, as they stand in the configuration, and gives the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Final, Protocol, runtime_checkable

from berth.compute.errors import BadConfiguration
from berth.compute.tracker import Driver

GROUP: Final = "berth.compute.drivers"

#: What an entry point names.
Factory = Callable[[Mapping[str, object]], Driver]

#: Tells what is used of a provider, given by its uuid, by resource class;
#: `ReportClient.get_usages` is one.
Used = Callable[[str], Mapping[str, int]]


@runtime_checkable
class AsksForUse(Protocol):
    """A driver that keeps what is gone from its host only while somebody holds it.

    Without knowing of the use, it keeps that until a pass brings the allocations.
    """

    used: Used | None


def driver_names() -> list[str]:
    """The names of the drivers that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_driver(name: str, options: Mapping[str, object], *, used: Used | None = None) -> Driver:
    """The driver with a name.

    Args:
        options: the driver's own.
        used: handed to a driver that asks for it.

    Raises:
        BadConfiguration: there is no such driver, it cannot be loaded here, or it refuses the
            options.
    """
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise BadConfiguration([f"There is no driver {name!r}; there are {_listed()}"])
    try:
        factory: Factory = found.load()
    except ImportError as error:
        raise BadConfiguration(
            [f"The driver {name} needs a library that is not installed: {error}"]
        ) from error
    driver = factory(options)
    if isinstance(driver, AsksForUse):
        driver.used = used
    return driver


def _listed() -> str:
    return ", ".join(driver_names()) or "none"
