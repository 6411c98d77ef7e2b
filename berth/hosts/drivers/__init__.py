# SPDX-License-Identifier: Apache-2.0
"""Drivers, which examine a host and edit its tree of providers.

Drivers are found by name among the entry points of the group `berth.hosts.drivers`, of berth and of
any other installed package. An entry point names a function that takes the driver's options, as
they are in the configuration, and returns the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from berth.hosts.drivers.kept_settings import Drained, Keeping
from berth.hosts.errors import BadConfiguration, ComputeError, DriverFailed
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.tracker import Driver

GROUP: Final = "berth.hosts.drivers"

#: The drivers of berth that need the extra `berthd[NAME]`.
_EXTRAS: Final = ("libvirt",)

#: The type of an entry point.
Factory = Callable[[Mapping[str, object]], Driver]

#: Reads the usage of a provider, given by its UUID, by resource class; `ReportClient.get_usages` is
#: one.
Used = Callable[[str], Mapping[str, int]]


@runtime_checkable
class AsksForUse(Protocol):
    """A driver that keeps what has disappeared from its host only while it has allocations.

    If `used` is None, it keeps everything until a pass provides the allocations.
    """

    used: Used | None


@runtime_checkable
class KeepsSettings(Protocol):
    """A driver that keeps what was set on providers while their devices are away."""

    keeping: Keeping


@runtime_checkable
class TakesNotes(Protocol):
    """A driver that records on this host what it has added to providers."""

    def note_in(self, folder: Path) -> None:
        """Use this folder for the records, unless the driver's options name another place."""

    def write_no_notes(self) -> None:
        """Write no records from now on, because the driver's trees are not sent."""


@runtime_checkable
class KnowsOneHost(Protocol):
    """A driver that examines one host, whatever the name of its node."""

    #: The host, in words.
    one_host: str


class Named:
    """A driver whose own errors name it, so that they are not taken for berth's."""

    def __init__(self, name: str, driver: Driver) -> None:
        self._name = name
        self._driver = driver

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Call the driver (see `tracker.Driver`).

        Raises:
            ComputeError: the driver raised it.
            DriverFailed: the driver raised something else.
        """
        try:
            self._driver.update_provider_tree(provider_tree, nodename, allocations)
        except ComputeError:
            raise
        except Exception as error:
            raise DriverFailed(self._name, error) from error


def driver_names() -> list[str]:
    """The names of the installed drivers."""
    return sorted(_installed())


def _installed() -> dict[str, EntryPoint]:
    """The entry points of all drivers, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load_driver(
    name: str,
    options: Mapping[str, object],
    *,
    used: Used | None = None,
    drained: Drained | None = None,
) -> Driver:
    """Load a driver by name.

    Args:
        options: the driver's options.
        used, drained: passed to a driver that asks for it.

    Raises:
        BadConfiguration: there is no such driver, it cannot be loaded, or it refuses the options.
    """
    entry_point = _installed().get(name)
    if entry_point is None:
        raise BadConfiguration(
            f"Unknown driver {name!r}; the installed ones are {', '.join(driver_names()) or 'none'}"
        )
    try:
        factory: Factory = entry_point.load()
    except ImportError as error:
        raise BadConfiguration(
            f"The driver {name} needs a library that is not installed: {error}"
            + (f"; pip install 'berthd[{name}]'" if name in _EXTRAS else "")
        ) from error
    except Exception as error:
        # Importing another package's module may raise anything.
        raise BadConfiguration(
            f"The driver {name} cannot be loaded from {entry_point.value}: {_worded(error)}"
        ) from error
    try:
        driver = factory(options)
    except ComputeError:
        raise
    except Exception as error:
        raise BadConfiguration(
            f"The driver {name}, {entry_point.value} cannot be created: {_worded(error)}"
        ) from error
    if isinstance(driver, AsksForUse):
        driver.used = used
    if isinstance(driver, KeepsSettings):
        driver.keeping.drained = drained
    return driver


def _worded(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
