# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs, whole or divided into MIG slices, through NVIDIA's management library. Read-only.

A GPU that is not divided is one PGPU. For a divided one, the existing slices are counted by their
profiles, each of which is a resource class: CUSTOM_MIG_1G_10GB. Possible further slices are not
counted, since the profiles compete for them.
Source: spec/compute-side.md 5.4.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Protocol

from berth.hosts.drivers.hosts.devices import Device, libvirt_name
from berth.hosts.drivers.hosts.names import custom_name, trait_name
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.pci import node_of

LOG = logging.getLogger(__name__)

_MIG_PROFILE: Final = re.compile(r"\bMIG (\S+)$")


class NVML(Protocol):
    """The part of the module `pynvml` that is used."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None:
        """Open the library; NVMLError if there is no driver."""

    def nvmlShutdown(self) -> None:
        """Close it."""

    def nvmlDeviceGetCount(self) -> int:
        """The number of GPUs."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        """A GPU."""

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        """Its PCI address: `busId`."""

    def nvmlDeviceGetName(self, handle: Any) -> str:
        """Its name; of a slice, with its profile."""

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> Any:
        """Major and minor number."""

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:
        """Whether it is divided, now and after a reset; NVMLError if it cannot be."""

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:
        """The maximum number of slices."""

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:
        """A slice; NVMLError if there is none of this number."""


def find_nvml() -> NVML | None:
    """The library, if it is installed."""
    try:
        library: NVML = importlib.import_module("pynvml")
    except ImportError:
        return None
    return library


def read_nvml(files: HostFiles, nvml: NVML) -> list[Device]:
    """The GPUs, except for those that do not answer; none without NVIDIA's driver."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        LOG.debug("No NVIDIA GPUs: %s", error)
        return []
    try:
        return list(_devices(files, nvml))
    except nvml.NVMLError as error:
        LOG.warning("The NVIDIA GPUs cannot be read at the moment: %s", error)
        return []
    finally:
        nvml.nvmlShutdown()


def _devices(files: HostFiles, nvml: NVML) -> Iterator[Device]:
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            device = _device(files, nvml, nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError as error:
            # A GPU that has fallen off the bus says nothing about the others.
            LOG.warning("The NVIDIA GPU %d cannot be read at the moment: %s", index, error)
            continue
        if device.counts:
            yield device


def _device(files: HostFiles, nvml: NVML, handle: Any) -> Device:
    address = _address(nvml.nvmlDeviceGetPciInfo(handle).busId)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Device(
        name=libvirt_name(address),
        address=address,
        node=node_of(files, address),
        counts=_slices(nvml, handle) if _is_cut(nvml, handle) else Counter({"PGPU": 1}),
        traits=frozenset(
            {
                custom_name("GPU", nvml.nvmlDeviceGetName(handle)),
                trait_name(f"HW_GPU_CUDA_COMPUTE_CAPABILITY_V{major}_{minor}"),
            }
        ),
    )


def _address(bus_id: str | bytes) -> str:
    """The address in sysfs notation: the library writes the domain with eight digits."""
    text = bus_id.decode() if isinstance(bus_id, bytes) else bus_id
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _is_cut(nvml: NVML, handle: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return False
    return bool(current)


def _slices(nvml: NVML, handle: Any) -> Counter[str]:
    """The existing slices, by resource class."""
    slices: Counter[str] = Counter()
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:
            continue
        if match := _MIG_PROFILE.search(nvml.nvmlDeviceGetName(part)):
            slices[custom_name("MIG", match[1])] += 1
    return slices
