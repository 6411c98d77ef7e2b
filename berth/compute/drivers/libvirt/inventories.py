# SPDX-License-Identifier: Apache-2.0
"""What a host's CPUs, memory and disk are as inventories: pure, no I/O.

A total is always said. What an operator has not configured (reserved amounts, ratios) is left out
where the service has a record already, so that it stays; a new record gets the first values.
Source: spec/compute-side.md 4.2 and 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from berth.compute.drivers.libvirt.machine import Machine
from berth.compute.drivers.libvirt.options import Options
from berth.compute.errors import BadConfiguration
from berth.compute.provider_tree import Inventory

#: What stands on the NUMA nodes, where those are modelled.
OF_CELLS: Final = ("VCPU", "PCPU", "MEMORY_MB")

#: What a record begins with, where nothing is configured.
_FIRST_RATIOS: Final = {"VCPU": 4.0}
_FIRST_RESERVED: Final = {"MEMORY_MB": 512}

Records = dict[str, dict[str, Any]]


def host_totals(machine: Machine, options: Options, disk_gib: int) -> dict[str, int]:
    """What the whole host has, by class; classes of which it has none are left out.

    Raises:
        BadConfiguration: dedicated CPUs are not online.
    """
    vcpus, pcpus = _given_out(machine, options)
    totals = {
        "VCPU": len(vcpus),
        "PCPU": len(pcpus),
        "MEMORY_MB": machine.memory_mib,
        "DISK_GB": disk_gib,
    }
    return {name: total for name, total in totals.items() if total}


def cell_totals(machine: Machine, options: Options) -> dict[int, dict[str, int]]:
    """What each NUMA node has, by its id; nodes that have nothing are left out.

    Raises:
        BadConfiguration: as `host_totals`; or libvirt tells of no NUMA nodes.
    """
    vcpus, pcpus = _given_out(machine, options)
    cells = machine.capabilities.cells
    if not cells:
        raise BadConfiguration(
            ["The libvirt driver, model: libvirt tells of no NUMA nodes here; it must be flat"]
        )
    totals = {
        cell.id: {
            "VCPU": len(cell.cpus & vcpus),
            "PCPU": len(cell.cpus & pcpus),
            "MEMORY_MB": cell.memory_mib,
        }
        for cell in cells
    }
    return {
        cell: {name: total for name, total in of_cell.items() if total}
        for cell, of_cell in totals.items()
        if any(of_cell.values())
    }


def records(totals: Mapping[str, int], there: Inventory, options: Options) -> Records:
    """The records of a provider that has the whole host's share of some classes."""
    return {
        name: _record(name, total, there, options, options.reserved.get(name))
        for name, total in totals.items()
    }


def cell_records(
    totals: Mapping[int, Mapping[str, int]],
    there: Mapping[int, Inventory],
    options: Options,
    of_host: Inventory,
) -> dict[int, Records]:
    """The records of the NUMA nodes, by their ids.

    What is reserved of the host is shared by the nodes that have the class, the remainder on the
    first.

    Args:
        there: the records that the nodes have in the service.
        of_host: those of the root, whose reserved amounts and ratios go with the inventory.
    """
    made: dict[int, Records] = {cell: {} for cell in totals}
    for name in OF_CELLS:
        having = [cell for cell in totals if name in totals[cell]]
        before = of_host.get(name, {})
        first = _FIRST_RESERVED.get(name, 0)
        reserved = options.reserved.get(name, before.get("reserved", first))
        for index, cell in enumerate(having):
            is_there = name in there.get(cell, {})
            part = None
            if name in options.reserved or not is_there:
                part = reserved // len(having) + (reserved % len(having) if index == 0 else 0)
            record = _record(name, totals[cell][name], there.get(cell, {}), options, part)
            if not is_there and name not in options.allocation_ratios and before:
                record["allocation_ratio"] = before.get("allocation_ratio", 1.0)
            made[cell][name] = record
    return made


def _given_out(machine: Machine, options: Options) -> tuple[frozenset[int], frozenset[int]]:
    """The CPUs that are given out as VCPU, and as PCPU."""
    online = machine.online_cpus
    if offline := sorted(options.cpu_dedicated - online):
        raise BadConfiguration(
            [f"The libvirt driver, cpu_dedicated: CPU {', '.join(map(str, offline))} is not online"]
        )
    if options.cpu_shared is not None:
        return options.cpu_shared & online, options.cpu_dedicated
    return (frozenset() if options.cpu_dedicated else online), options.cpu_dedicated


def _record(
    name: str, total: int, there: Inventory, options: Options, reserved: int | None
) -> dict[str, Any]:
    record: dict[str, Any] = {"total": total, "min_unit": 1, "max_unit": total, "step_size": 1}
    if reserved is not None:
        record["reserved"] = min(reserved, total)
    elif name not in there:
        record["reserved"] = min(_FIRST_RESERVED.get(name, 0), total)
    elif there[name].get("reserved", 0) > total:
        # A host that has shrunk below what is reserved offers nothing, and is reported.
        record["reserved"] = total
    if name in options.allocation_ratios:
        record["allocation_ratio"] = options.allocation_ratios[name]
    elif name == "PCPU":
        record["allocation_ratio"] = 1.0
    elif name not in there:
        record["allocation_ratio"] = _FIRST_RATIOS.get(name, 1.0)
    return record
