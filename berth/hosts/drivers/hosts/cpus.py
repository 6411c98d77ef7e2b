# SPDX-License-Identifier: Apache-2.0
"""Which of a host's CPUs are offered as which class, and on which NUMA nodes they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.hosts.drivers.hosts.id_lists import write_id_list
from berth.hosts.drivers.hosts.options import HostOptions
from berth.hosts.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class CPUSets:
    """The CPUs on offer."""

    #: As VCPU, which may be overcommitted.
    shared: frozenset[int]
    #: As PCPU, each for one consumer.
    dedicated: frozenset[int]


def cpu_sets(present: frozenset[int], online: frozenset[int], options: HostOptions) -> CPUSets:
    """The CPUs on offer, as configured; by default all that are online.

    A dedicated CPU counts even if it is offline: it is brought online for its consumer, and the
    inventory does not change with power management.

    Raises:
        BadConfiguration: the host does not have one of them.
    """
    shared: frozenset[int] | None = options.cpu_shared
    dedicated: frozenset[int] = options.cpu_dedicated
    faults = [
        f"{option} names CPU {', '.join(map(str, sorted(strange)))}, but the host has CPUs "
        f"{write_id_list(present)}"
        for option, cpus in (("cpu_shared", shared or frozenset()), ("cpu_dedicated", dedicated))
        if (strange := cpus - present)
    ]
    if faults:
        raise BadConfiguration(faults)
    if shared is None:
        shared = frozenset() if dedicated else online
    return CPUSets(shared=shared & online, dedicated=dedicated)


def cpu_notices(
    present: frozenset[int], online: frozenset[int], options: HostOptions, lost: frozenset[int]
) -> Iterator[str]:
    """Notices of CPUs that are not offered because they are offline, or are offered on a guess.

    Args:
        lost: the CPUs whose NUMA node is unknown.
    """
    shared = options.cpu_shared or (frozenset() if options.cpu_dedicated else present)
    if offline := shared - online:
        yield f"CPUs {write_id_list(offline)} are offline, and are not offered as VCPU"
    if lost:
        yield (
            f"It is unknown on which NUMA node CPUs {write_id_list(lost)} are: each is offered on "
            "the node of the CPU before it"
        )


def nodes_of(
    present: frozenset[int], node_of_known: Mapping[int, int], nodes: Sequence[int]
) -> dict[int, int]:
    """The NUMA node of every CPU; for a CPU that was never online, that of the next lower CPU.

    Args:
        node_of_known: the nodes of CPUs that are online, or were.
    """
    node_of: dict[int, int] = {}
    node = min((node_of_known[cpu] for cpu in present & node_of_known.keys()), default=nodes[0])
    for cpu in sorted(present):
        node = node_of_known.get(cpu, node)
        node_of[cpu] = node
    return node_of
