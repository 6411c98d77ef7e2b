# SPDX-License-Identifier: Apache-2.0
"""Drivers of recorded hosts, and trees without a service, drawn as `tests/worlds.py` draws them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from berth.hosts.drivers import Used
from berth.hosts.drivers.host_model.options import LinuxOptions
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.drivers.linux.nvml import NVML
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from tests.hosts.machines import Machine
from tests.worlds import provider_uuid


def driver(
    machine: Machine,
    root: Path,
    *,
    used: Used | None = None,
    nvml: NVML | None = None,
    **said: object,
) -> LinuxDriver:
    """The driver of a machine whose files are written below a directory."""
    if not (root / "proc").exists():
        machine.write(root)
    options = LinuxOptions.read({"root": str(root), **said})
    made = LinuxDriver(options, nvml=nvml, measure=machine.measure)
    made.used = used
    return made


def empty_tree(name: str = "cn1") -> ProviderTree:
    """The tree of a host that has not reported yet."""
    tree = ProviderTree()
    tree.new_root(name, provider_uuid(name))
    return tree


def report(host: LinuxDriver, tree: ProviderTree, allocations: Allocations | None = None) -> None:
    """Run the driver once on the tree of `cn1`."""
    host.update_provider_tree(tree, "cn1", allocations)


def picture(tree: ProviderTree) -> dict[str, Any]:
    """Everything in a tree, in an order that does not depend on its history, for comparison."""
    return {
        data.name: data._replace(generation=None)
        for data in map(tree.data, tree.get_provider_uuids())
    }


class FakeNVMLError(Exception):
    """The error of the fake library."""


@dataclass
class FakeNVML:
    """NVIDIA's library with two GPUs: one whole, one divided into three slices of seven."""

    #: "no driver", or "lost": all GPUs are; a number: that one is.
    fault: str | int = ""
    first: str = "Tesla V100"
    #: A call that answers something else, or fails, for the GPU 0, its slices, or slice 0.
    odd: str = ""
    answer: Any = None
    NVMLError: type[Exception] = FakeNVMLError
    is_open: bool = False

    def __post_init__(self) -> None:
        call = self.odd

        def answer(*numbers: int) -> Any:
            if numbers[-1:] in ((), (0,)) or (numbers == (1,) and "MigMode" not in call):
                if self.answer == "error":
                    raise FakeNVMLError("Timeout")
                return tuple(self.answer) if isinstance(self.answer, list) else self.answer
            return getattr(FakeNVML, call)(self, *numbers)

        if call:
            setattr(self, call, answer)

    def nvmlInit(self) -> None:
        if self.fault == "no driver":
            raise FakeNVMLError("Driver Not Loaded")
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return index

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        if self.fault in ("lost", handle):
            raise FakeNVMLError("GPU is lost")
        return SimpleNamespace(busId=["00000000:84:00.0", b"00000000:85:00.0"][handle])

    def nvmlDeviceGetName(self, handle: Any) -> str:
        if isinstance(handle, str):
            return f"NVIDIA A100-SXM4-40GB MIG {handle}"
        return self.first if handle == 0 else "NVIDIA A100-SXM4-40GB"

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> Any:
        return [(7, 0) if "V100" in self.first else (8, 9), (8, 0)][handle]

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:
        if handle == 0:
            raise FakeNVMLError("Not Supported")
        return (1, 1)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:
        if index > 2:
            raise FakeNVMLError("Not Found")
        return ["1g.5gb", "3g.20gb", "1g.5gb"][index]
