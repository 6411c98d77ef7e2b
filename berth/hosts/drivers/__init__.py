# SPDX-License-Identifier: Apache-2.0
"""Drivers: who knows a host, and edits its tree of providers accordingly.

A driver is found by its name among the entry points of the group `berth.hosts.drivers`, those of
berth and those of any other package that is installed. Each names a function that takes the
driver's options, as they stand in the configuration, and gives the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from berth.hosts.errors import BadConfiguration, ComputeError, DriverFailed
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.tracker import Driver

GROUP: Final = "berth.hosts.drivers"
#: The same by its former name, under which drivers of other packages may be registered: for one
#: release more.
FORMER_GROUP: Final = "berth.compute.drivers"

#: The drivers of berth that need what `pip install berthd[NAME]` brings.
_EXTRAS: Final = ("libvirt",)

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


@runtime_checkable
class TakesNotes(Protocol):
    """A driver that notes on this host what it has added to providers."""

    def note_in(self, folder: Path) -> None:
        """Where its options do not say where: in this folder."""

    def write_no_notes(self) -> None:
        """From now on: it is only asked what it would make of a tree, and nothing is sent."""


@runtime_checkable
class KnowsOneHost(Protocol):
    """A driver that looks at one host, whatever the name of its node is."""

    #: The host, in words.
    one_host: str


class Named:
    """A driver whose own mistakes are told under its name, and not taken for berth's."""

    def __init__(self, name: str, driver: Driver) -> None:
        self._name = name
        self._driver = driver

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """What the driver reports (see `tracker.Driver`).

        Raises:
            ComputeError: as the driver says.
            DriverFailed: it raised something else.
        """
        try:
            self._driver.update_provider_tree(provider_tree, nodename, allocations)
        except ComputeError:
            raise
        except Exception as error:
            raise DriverFailed(self._name, error) from error


def driver_names() -> list[str]:
    """The names of the drivers that are installed."""
    return sorted(_installed())


def _installed() -> dict[str, EntryPoint]:
    """The entry points of all drivers, by name."""
    groups = (FORMER_GROUP, GROUP)
    return {point.name: point for group in groups for point in entry_points(group=group)}


def load_driver(name: str, options: Mapping[str, object], *, used: Used | None = None) -> Driver:
    """The driver with a name.

    Args:
        options: the driver's own.
        used: handed to a driver that asks for it.

    Raises:
        BadConfiguration: there is no such driver, it cannot be loaded here, or it refuses the
            options.
    """
    found = _installed().get(name)
    if found is None:
        raise BadConfiguration([f"There is no driver {name!r}; there are {_listed()}"])
    try:
        factory: Factory = found.load()
    except ImportError as error:
        raise BadConfiguration(
            [
                f"The driver {name} needs a library that is not installed: {error}"
                + (f"; pip install 'berthd[{name}]'" if name in _EXTRAS else "")
            ]
        ) from error
    except Exception as error:
        # Whatever a module of another package does when it is imported.
        raise BadConfiguration(
            [f"The driver {name} cannot be loaded from {found.value}: {_worded(error)}"]
        ) from error
    try:
        driver = factory(options)
    except ComputeError:
        raise
    except Exception as error:
        raise BadConfiguration(
            [f"The driver {name}, {found.value}, does not take its options: {_worded(error)}"]
        ) from error
    if isinstance(driver, AsksForUse):
        driver.used = used
    return driver


def _worded(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _listed() -> str:
    return ", ".join(driver_names()) or "none"
