# SPDX-License-Identifier: Apache-2.0
"""Which of a host's CPUs are given out how, and on which NUMA nodes they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.hosts.drivers.hosts.id_lists import write_id_list
from berth.hosts.drivers.hosts.options import HostOptions
from berth.hosts.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class CPUSets:
    """Which CPUs are given out, and how."""

    #: As VCPU, to as many holders as the allocation ratio admits.
    shared: frozenset[int]
    #: As PCPU, one to a holder.
    dedicated: frozenset[int]


def cpu_sets(present: frozenset[int], online: frozenset[int], options: HostOptions) -> CPUSets:
    """The CPUs that are given out, as configured; all that are online where nothing is.

    A dedicated CPU counts although it rests: it wakes for its holder, and the inventory does not
    flap with the power management.

    Raises:
        BadConfiguration: the host does not have one of them.
    """
    shared, dedicated = options.cpu_shared, options.cpu_dedicated
    faults = [
        f"{option} names CPU {', '.join(map(str, sorted(strange)))}, and the host has the CPUs "
        f"{write_id_list(present)}"
        for option, cpus in (("cpu_shared", shared or frozenset()), ("cpu_dedicated", dedicated))
        if (strange := cpus - present)
    ]
    if faults:
        raise BadConfiguration(faults)
    if shared is None:
        shared = frozenset() if dedicated else online
    return CPUSets(shared=shared & online, dedicated=dedicated)


def nodes_of(
    present: frozenset[int], known: Mapping[int, int], nodes: Sequence[int]
) -> dict[int, int]:
    """Every CPU's node: of one that was never seen to run, that of the next below it.

    Args:
        known: of those that run, or that ran before.
    """
    node_of: dict[int, int] = {}
    here = min((known[cpu] for cpu in present & known.keys()), default=nodes[0])
    for cpu in sorted(present):
        here = known.get(cpu, here)
        node_of[cpu] = here
    return node_of
