# SPDX-License-Identifier: Apache-2.0
"""Hosts that change the structure of their trees: scenarios of spec/compute-side.md 8, each with
the world before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from berth.hosts import ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.tracker import Driver
from tests.hosts.drivers import PCIHost
from tests.hosts.hosts import AFTER, BEFORE, gpu_host, three_guests
from tests.hosts.stage import consumer_uuid

CARD, VF = "0000:81:00.0", "CUSTOM_PCI_8086_1528"


def pci_host(**guests: int) -> PCIHost:
    """The host cn1, with two functions of one card."""
    had = {consumer_uuid(name): {CARD: count} for name, count in guests.items()}
    return PCIHost(VF, {CARD: 2}, had)


@dataclass
class StandardClass:
    """A host whose custom class has become a standard one, on a provider given by the test, which
    may be below a NUMA node.
    """

    target: str = "cn1"
    numa_node: str | None = None

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        root = provider_tree.data(nodename)
        if "CUSTOM_PGPU" not in root.inventory:
            return
        if allocations is None:
            raise ReshapeNeeded
        if self.numa_node:
            provider_tree.new_child(self.numa_node, nodename)
        if not provider_tree.exists(self.target):
            provider_tree.new_child(self.target, self.numa_node or nodename)
        left = {name: record for name, record in root.inventory.items() if name != "CUSTOM_PGPU"}
        provider_tree.update_inventory(nodename, left)
        target = provider_tree.data(self.target)
        record = root.inventory["CUSTOM_PGPU"]
        provider_tree.update_inventory(self.target, {**target.inventory, "PGPU": record})
        for body in allocations.values():
            parts = body["allocations"]
            amount = parts[root.uuid]["resources"].pop("CUSTOM_PGPU")
            part = parts.setdefault(target.uuid, {"resources": {}})
            part["resources"]["PGPU"] = amount


@dataclass
class Merging:
    """A host that goes back to a single provider."""

    moves: bool = True

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Move everything from the children to the root, and remove them."""
        root = provider_tree.data(nodename)
        children = provider_tree.get_provider_uuids(nodename)[1:]
        if children and self.moves and allocations is None:
            raise ReshapeNeeded
        total = 0
        for child in children:
            total += provider_tree.data(child).inventory["VGPU"]["total"]
            provider_tree.remove(child)
            for body in (allocations or {}).values():
                parts = body["allocations"]
                if part := parts.pop(child, None):
                    resources = parts[root.uuid]["resources"]
                    resources["VGPU"] = resources.get("VGPU", 0) + part["resources"]["VGPU"]
        if total:
            provider_tree.update_inventory(nodename, {**root.inventory, "VGPU": {"total": total}})


@dataclass(frozen=True)
class Scenario:
    """A host with its world before and after, and providers that are not written to."""

    before: str
    driver: Driver
    after: str
    still: tuple[str, ...] = ()


GPUS: Final = """
  cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
  cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
"""

SHARED_DISK: Final = "nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A\n"

_OTHERS: Final = "\ncn2  VCPU=16  @A\nx9: cn2 VCPU=1, nfs DISK_GB=50\nvol: nfs DISK_GB=7"

_BRIDGE: Final = """
  agent  CUSTOM_VNIC_TYPE_NORMAL
    bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000000  CUSTOM_PHYSNET_PHYS1
i6: cn1 VCPU=1, bridge NET_BW_EGR_KILOBIT_PER_SEC=1000
"""
AGENT: Final = f"cn1  VCPU=16  VGPU=8{_BRIDGE}i1: cn1 VCPU=1 VGPU=1"
AGENT_AFTER: Final = (
    f"cn1  VCPU=16{GPUS}{_BRIDGE.strip(chr(10))}\ni1: cn1 VCPU=1, cn1_pci_84 VGPU=1"
)

SPLIT: Final = """
    cn1  VCPU=16
      g1  VGPU=4
      g2  VGPU=4
    i1: cn1 VCPU=1, g1 VGPU=1
    i2: cn1 VCPU=1, g1 VGPU=2, g2 VGPU=1
"""

UNTOLD: Final = "cn1  VCPU=8\ni1: cn1 VCPU=1"
HEALED: Final = f"""
    cn1  VCPU=8
      cn1_{CARD}  {VF}=2  COMPUTE_MANAGED_PCI_DEVICE  OWNER_NOVA
    i1: cn1 VCPU=1, cn1_{CARD} {VF}=2
"""

SCENARIOS: Final = {
    # vGPUs move to their GPUs.
    "A": Scenario(BEFORE, three_guests(), AFTER),
    # A guest on two GPUs holds of both.
    "A1": Scenario(
        BEFORE,
        gpu_host(i1={"84": 1}, i2={"84": 1, "85": 1}, i3={"85": 1}),
        AFTER.replace("cn1_pci_84 VGPU=2", "cn1_pci_84 VGPU=1, cn1_pci_85 VGPU=1"),
    ),
    # A GPU comes to be below a NUMA node; both are new.
    "B": Scenario(
        "cn1  VCPU=8  CUSTOM_PGPU=2\ni1: cn1 VCPU=1 CUSTOM_PGPU=1",
        StandardClass(target="g", numa_node="numa0"),
        "cn1  VCPU=8\n  numa0\n    g  PGPU=2\ni1: cn1 VCPU=1, g PGPU=1",
    ),
    # A custom class becomes standard.
    "C": Scenario(
        "cn1  VCPU=8  CUSTOM_PGPU=2\ni1: cn1 VCPU=1 CUSTOM_PGPU=1\ni2: cn1 VCPU=1 CUSTOM_PGPU=1",
        StandardClass(),
        "cn1  VCPU=8  PGPU=2\ni1: cn1 VCPU=1 PGPU=1\ni2: cn1 VCPU=1 PGPU=1",
    ),
    # What has become empty is left out: the service refuses an allocation without amounts.
    "C2": Scenario(
        "cn1  CUSTOM_PGPU=2\ni1: cn1 CUSTOM_PGPU=1",
        StandardClass(target="g"),
        "cn1\n  g  PGPU=2\ni1: g PGPU=1",
    ),
    # A migration moves like the guest that it stands for.
    "D": Scenario(
        "cn1  VCPU=16  VGPU=8\ncn2  VCPU=16\nm3: cn1 VCPU=2 VGPU=1\ni3: cn2 VCPU=2",
        gpu_host(m3={"85": 1}),
        f"cn1  VCPU=16{GPUS}cn2  VCPU=16\nm3: cn1 VCPU=2, cn1_pci_85 VGPU=1\ni3: cn2 VCPU=2",
        ("cn2",),
    ),
    # An evacuated guest keeps what it holds elsewhere.
    "D2": Scenario(
        "cn1  VCPU=16  VGPU=8\ncn2  VCPU=16  VGPU=4\ni3: cn1 VCPU=2 VGPU=1, cn2 VCPU=2 VGPU=1",
        gpu_host(i3={"85": 1}),
        f"cn1  VCPU=16{GPUS}cn2  VCPU=16  VGPU=4\n"
        "i3: cn1 VCPU=2, cn1_pci_85 VGPU=1, cn2 VCPU=2 VGPU=1",
    ),
    # A sharing provider is never written, in use or not, even if the service would let it go.
    "E": Scenario(
        f"{SHARED_DISK}cn1  VGPU=8  @A\ni1: cn1 VGPU=1, nfs DISK_GB=20{_OTHERS}",
        gpu_host(i1={"84": 1}),
        f"{SHARED_DISK}cn1  @A{GPUS}i1: cn1_pci_84 VGPU=1, nfs DISK_GB=20{_OTHERS}",
    ),
    "E2": Scenario(
        f"{SHARED_DISK}cn1  VCPU=16  VGPU=8  @A\ni1: cn1 VGPU=1",
        gpu_host(i1={"84": 1}),
        f"{SHARED_DISK}cn1  VCPU=16  @A{GPUS}i1: cn1_pci_84 VGPU=1",
        ("nfs",),
    ),
    # Other agents' children stay.
    "G": Scenario(AGENT, gpu_host(i1={"84": 1}), AGENT_AFTER, ("agent", "bridge")),
    # Children merge back.
    "I": Scenario(
        SPLIT.replace("g1  VGPU=4", "g1  VGPU=4  CUSTOM_GOLD  @A"),
        Merging(),
        "cn1  VCPU=16  VGPU=8\ni1: cn1 VCPU=1 VGPU=1\ni2: cn1 VCPU=1 VGPU=3",
    ),
    # What guests have is added to what they hold.
    "J": Scenario(UNTOLD, pci_host(i1=2), HEALED),
    # An idle node keeps its inventory while another of its agent is reshaped.
    "K": Scenario(
        "cn1  VCPU=16  VGPU=8\ncn2  VCPU=16\ni1: cn1 VGPU=1",
        gpu_host(i1={"84": 1}),
        f"cn1  VCPU=16{GPUS}cn2  VCPU=16\ni1: cn1_pci_84 VGPU=1",
        ("cn2",),
    ),
}
