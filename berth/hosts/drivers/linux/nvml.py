# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs, whole or divided into MIG slices, through NVIDIA's management library. Read-only.

A GPU that is not divided is one PGPU. For a divided one, the existing slices are counted by their
profiles, each of which is a resource class: CUSTOM_MIG_1G_10GB. Possible further slices are not
counted, since the profiles compete for them. Each GPU or slice that is not offered has a notice.
Source: spec/compute-side.md 5.4.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

from berth.hosts.drivers.host_model.devices import Device
from berth.hosts.drivers.host_model.names import custom_name, libvirt_name, trait_name
from berth.hosts.drivers.linux.devices import node_of
from berth.hosts.drivers.linux.files import HostFiles

#: The library's words for errors that are answers: a GPU that cannot be divided, or a driver that
#: divides none; no slice of that number; a host without NVIDIA's driver.
_CANNOT_BE_CUT: Final = ("Not Supported", "Function Not Found")
_NO_SLICE: Final = "Not Found"
_NO_DRIVER: Final = ("Driver Not Loaded", "NVML Shared Library Not Found")

#: Takes a notice for the operator.
Tell = Callable[[str], None]

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


def read_nvml(
    files: HostFiles, nvml: NVML | None, tell: Tell, unclaimed: Collection[str] = ()
) -> list[Device]:
    """The GPUs, except for those that do not answer; none without NVIDIA's driver.

    Args:
        tell: takes a notice of each GPU and slice that is not offered.
        unclaimed: the addresses of the GPUs that the kernel lists and that nothing else offers.
    """
    devices, lost = [], "NVIDIA's driver does not list it"
    if nvml is None:
        lost = "the Python library pynvml is missing; pip install 'berthd[nvidia]'"
    else:
        try:
            nvml.nvmlInit()
            try:
                devices = _devices(files, nvml, tell)
            finally:
                nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            lost = f"NVIDIA's library fails: {error}"
            if not unclaimed and str(error) not in _NO_DRIVER:
                tell(f"No GPU is offered: {lost}")
    for address in sorted(set(unclaimed) - {device.address for device in devices}):
        tell(f"The GPU {address} is not offered: {lost}")
    return [device for device in devices if device.counts]


def _devices(files: HostFiles, nvml: NVML, tell: Tell) -> list[Device]:
    devices = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            devices.append(_device(files, nvml, nvml.nvmlDeviceGetHandleByIndex(index), tell))
        except nvml.NVMLError as error:
            # A GPU that has fallen off the bus says nothing about the others.
            tell(f"The NVIDIA GPU {index} is not offered, because it cannot be read: {error}")
    return devices


def _device(files: HostFiles, nvml: NVML, handle: Any, tell: Tell) -> Device:
    """A GPU, without counts if it is divided and has no slices."""
    address = _address(nvml.nvmlDeviceGetPciInfo(handle).busId)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    counts = Counter({"PGPU": 1})
    if _is_cut(nvml, handle) and not (counts := _slices(nvml, handle, address, tell)):
        tell(f"The GPU {address} is not offered: it is in MIG mode, and has no slices to offer")
    return Device(
        name=libvirt_name(address),
        address=address,
        node=node_of(files, address),
        counts=counts,
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
    """Whether a GPU is divided; NVMLError if it does not say."""
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError as error:
        if str(error) in _CANNOT_BE_CUT:
            return False
        raise
    return bool(current)


def _slices(nvml: NVML, handle: Any, address: str, tell: Tell) -> Counter[str]:
    """The existing slices, by resource class."""
    slices: Counter[str] = Counter()
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            name = nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
        except nvml.NVMLError as error:
            if str(error) != _NO_SLICE:
                tell(f"Slice {index} of the GPU {address} is not offered: {error}")
            continue
        if match := _MIG_PROFILE.search(name):
            slices[custom_name("MIG", match[1])] += 1
        else:
            tell(f"Slice {index} of the GPU {address} is not offered: {name!r} names no profile")
    return slices
