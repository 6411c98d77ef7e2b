# SPDX-License-Identifier: Apache-2.0
"""The options of the driver `linux`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from berth.hosts.drivers.hosts import options as of_any_host
from berth.hosts.drivers.hosts.options import HostOptions, Placement, consumer_uuid
from berth.hosts.fields import AbsolutePath


class Placements(dict[str, Placement]):
    """The NUMA nodes of consumers: a list, or the consumer's CPUs on each."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: they are written otherwise.
        """
        if not isinstance(value, Mapping):
            raise ValueError("expected a mapping of consumers")
        return cls({consumer_uuid(key): _placement(key, nodes) for key, nodes in value.items()})


class Options(HostOptions, frozen=True):
    """All options of the driver."""

    root: AbsolutePath = AbsolutePath("/")
    disk: AbsolutePath | None = AbsolutePath("/")
    nvml: bool = True
    placements: Placements = Placements()


def read_options(options: Mapping[str, object]) -> Options:
    """Read the options.

    Raises:
        BadConfiguration: with every fault.
    """
    return of_any_host.read_options("linux", options, Options)


def _placement(consumer: object, value: object) -> Placement:
    pairs: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = [(node, 1) for node in value]
    shares = {
        node: share
        for node, share in pairs
        if type(node) is int and node >= 0 and type(share) is int and share >= 1
    }
    if not shares or len(shares) != len(pairs):
        raise ValueError(
            f"{consumer} needs a list of NUMA nodes, or a mapping of them to numbers of CPUs, "
            f"not {value!r}"
        )
    return shares
