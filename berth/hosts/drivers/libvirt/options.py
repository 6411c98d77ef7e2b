# SPDX-License-Identifier: Apache-2.0
"""The options of the driver `libvirt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from berth.hosts.drivers.hosts import options as of_any_host
from berth.hosts.drivers.hosts.options import DeviceName, HostOptions, consumer_uuid
from berth.hosts.fields import AbsolutePath, Text


class Migrations(dict[str, str]):
    """The instance of each migration, by uuid."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a mapping of uuids to uuids.
        """
        return cls({key: consumer_uuid(inner) for key, inner in _by_consumer(value).items()})


class AssumedDevices(dict[str, str]):
    """The device on which a consumer's vGPUs are, by the consumer's uuid."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a mapping of uuids to devices.
        """
        return cls({key: DeviceName.parse(name) for key, name in _by_consumer(value).items()})


class Options(HostOptions, frozen=True):
    """All options of the driver."""

    uri: Text = "qemu:///system"
    disk: AbsolutePath | None = AbsolutePath("/var/lib/libvirt/images")
    migrations: Migrations = Migrations()
    #: Used only where the host cannot tell.
    assume: AssumedDevices = AssumedDevices()


def read_options(options: Mapping[str, object]) -> Options:
    """Read the options.

    Raises:
        BadConfiguration: with every fault.
    """
    return of_any_host.read_options("libvirt", options, Options)


def _by_consumer(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of uuids")
    return {consumer_uuid(key): inner for key, inner in value.items()}
