# SPDX-License-Identifier: Apache-2.0
"""vGPUs that move from a host's root to their GPUs: scenarios A and D of spec/compute-side.md 8."""

from __future__ import annotations

from typing import Any

import pytest

from berth.hosts import ReshapeFailed, ReshapeNeeded
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.options import read_options
from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import node
from tests.hosts.libvirt_hosts import (
    RecordedHost,
    domain_xml,
    gpu_host,
    gpu_xml,
    mdev_xml,
)
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

#: What the root of the host has besides.
TRAITS = """COMPUTE_NODE  HW_ARCH_X86_64  HW_CPU_X86_ABM  HW_CPU_X86_AMD_SVM  HW_CPU_X86_AVX2
HW_CPU_X86_SSE4A  HW_CPU_X86_SVM""".replace("\n", "  ")
STOCKS = "DISK_GB=100(max:100)  MEMORY_MB=16384(max:16384)  VCPU=8(max:8)"
ROOT = f"cn1  {STOCKS}  {TRAITS}"

BEFORE = f"""
    cn1  {STOCKS}  VGPU=8  {TRAITS}
    i1: cn1 VCPU=2 VGPU=1
    i2: cn1 VCPU=2 VGPU=2
    i3: cn1 VCPU=2 VGPU=1
"""

GPUS = """
      cn1_pci_0000_84_00_0  VGPU=4(max:4)  CUSTOM_DIVIDED_INTO_NVIDIA_35  CUSTOM_OWNER_BERTH
      cn1_pci_0000_85_00_0  VGPU=4(max:4)  CUSTOM_DIVIDED_INTO_NVIDIA_35  CUSTOM_OWNER_BERTH
"""

GPU_84, GPU_85 = "cn1_pci_0000_84_00_0", "cn1_pci_0000_85_00_0"

I3_TOLD = f"i3: cn1 VCPU=2, {GPU_85} VGPU=1"
TOLD = f"""
    i1: cn1 VCPU=2, {GPU_84} VGPU=1
    i2: cn1 VCPU=2, {GPU_84} VGPU=2
    {I3_TOLD}
"""
AFTER = f"""
    {ROOT}
    {GPUS.strip(chr(10))}
    {TOLD.strip()}
"""

ALL = {"i1": "84", "i2": "84 84", "i3": "85"}

I1, I2, I3, M3 = (consumer_uuid(name) for name in ("i1", "i2", "i3", "m3"))


def driver(host: RecordedHost, **options: Any) -> LibvirtDriver:
    """A driver with vGPUs of one type."""
    return LibvirtDriver(host, read_options({"mdev": [{"type": "nvidia-35"}], **options}))


def world_after(drawing: str, *, kept: str = "", left: str = "") -> str:
    """The providers after a move, with an amount kept free on GPU 84 and left on the root."""
    root = ROOT.replace("VCPU=8", f"VGPU={left}  VCPU=8") if left else ROOT
    gpus = GPUS.replace("VGPU=4(max:4)", f"VGPU=4(max:4,reserved:{kept})", 1) if kept else GPUS
    return drawn(f"    {root}\n{gpus}\n{drawing}")


def test_a_vgpus_move_to_their_gpus(stage: Stage) -> None:
    """Scenario A: the domains show which guest has which device; a second start sends nothing."""
    stage.show(BEFORE)
    host = driver(gpu_host(ALL))
    with pytest.raises(ReshapeNeeded):
        periodic(stage, host)
    assert stage.picture() == drawn(BEFORE)
    assert start(stage, host).is_reshape
    assert stage.picture() == drawn(AFTER)
    assert not periodic(stage, host)
    assert not start(stage, driver(gpu_host(ALL)))
    assert host.unattributed == ()


def test_a1_a_guest_on_two_gpus_holds_of_both(stage: Stage) -> None:
    """Scenario A1."""
    stage.show(BEFORE)
    start(stage, driver(gpu_host({**ALL, "i2": "84 85"})))
    line = "i2: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=1, cn1_pci_0000_85_00_0 VGPU=1"
    assert line in stage.picture()


def test_a2_a_guest_with_other_devices_than_are_held_is_refused(stage: Stage) -> None:
    """Scenario A2: otherwise the host could be overcommitted or underused; an operator can
    decide."""
    stage.show(BEFORE)
    guests = {**ALL, "i1": "84 85"}
    with pytest.raises(
        ReshapeFailed,
        match=f"consumer {I1} holds 1 VGPU, and its guest has 2: 1 on pci_0000_84_00_0, 1 on",
    ):
        start(stage, driver(gpu_host(guests)))
    assert stage.picture() == drawn(BEFORE)
    start(stage, driver(gpu_host(guests), assume={I1: "0000:84:00.0"}))
    assert stage.picture() == drawn(AFTER)


def test_a3_a_stopped_guest_does_not_hold_up_the_others(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario A3: it keeps its allocation on the root, and as much is kept free on a GPU, so that
    nothing more fits there."""
    stage.show(BEFORE)
    host = driver(gpu_host(ALL, stopped="i3"))
    start(stage, host)
    assert stage.picture() == world_after(
        """
        i1: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=1
        i2: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=2
        i3: cn1 VCPU=2 VGPU=1
        """,
        kept="1",
        left="1(max:1,reserved:1)",
    )
    (unattributed,) = host.unattributed
    assert (unattributed.consumer, unattributed.amount) == (I3, 1)
    assert str(unattributed) == (
        f"consumer {I3} holds 1 VGPU, but its GPU is unknown: its guest is stopped and "
        f"has no mediated device; start the guest, or set its GPU: assume: {{{I3}: "
        f"pci_0000_84_00_0}}"
    )
    assert str(unattributed) in caplog.text


def test_a_guest_with_fewer_devices_than_it_holds_is_left_too(stage: Stage) -> None:
    """All of its allocation is kept free, whichever device it has lost."""
    stage.show(BEFORE)
    host = driver(gpu_host({**ALL, "i2": "85"}))
    start(stage, host)
    assert [(consumer.consumer, consumer.amount) for consumer in host.unattributed] == [(I2, 2)]
    assert host.unattributed[0].why == "its guest has only 1 on pci_0000_85_00_0"
    assert "VGPU=4(reserved:2,max:4)" in stage.picture()


def test_what_is_held_of_a_gpu_already_does_not_count_twice(stage: Stage) -> None:
    """A guest was left on the root, and has since got a vGPU on a GPU."""
    stage.show(
        f"""
        cn1  {STOCKS}  VGPU=1  {TRAITS}
          cn1_pci_0000_84_00_0  VGPU=4(max:4)  CUSTOM_DIVIDED_INTO_NVIDIA_35  CUSTOM_OWNER_BERTH
        i1: cn1 VGPU=1, cn1_pci_0000_84_00_0 VGPU=1
        """
    )
    start(stage, driver(gpu_host({"i1": "84 85"})))
    assert "i1: cn1_pci_0000_84_00_0 VGPU=1, cn1_pci_0000_85_00_0 VGPU=1" in stage.picture()


def test_an_untold_guest_moves_at_a_later_start(stage: Stage) -> None:
    """Until then, passes go on and the amount is kept free; afterwards nothing is left on the
    root."""
    stage.show(BEFORE)
    host = driver(gpu_host(ALL, stopped="i3"))
    start(stage, host)
    before = stage.picture()
    assert not periodic(stage, host)
    assert stage.picture() == before
    assert not start(stage, driver(gpu_host(ALL, stopped="i3"))), "still untold"
    start(stage, driver(gpu_host(ALL)))
    assert stage.picture() == drawn(AFTER)


def test_a_driver_that_was_made_anew_lives_with_what_is_untold(stage: Stage) -> None:
    """As after a reload of the configuration: it needs one move, and then reports."""
    stage.show(BEFORE)
    start(stage, driver(gpu_host(ALL, stopped="i3")))
    before = stage.picture()
    anew = driver(gpu_host(ALL, stopped="i3"))
    with pytest.raises(ReshapeNeeded):
        periodic(stage, anew)
    for _ in range(2):
        assert not periodic(stage, anew)
    assert stage.picture() == before


def test_what_was_kept_for_one_that_has_gone_is_given_out_again(stage: Stage) -> None:
    """Without a restart, if the usage is known."""
    stage.show(BEFORE + "    i4: cn1 VGPU=1\n")
    host = driver(gpu_host(ALL, stopped="i3"))
    host.used = stage.used
    start(stage, host)
    assert "VGPU=2(reserved:2,max:2)" in stage.picture()
    stage.hold("i4", "")
    periodic(stage, host)
    assert "VGPU=1(reserved:1,max:1)" in stage.picture()
    assert "84_00_0  VGPU=4(reserved:1,max:4)" in stage.picture()
    stage.hold("i3", "cn1 VCPU=2")
    periodic(stage, host)
    assert stage.picture() == world_after(
        """
        i1: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=1
        i2: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=2
        i3: cn1 VCPU=2
        """
    )
    assert not periodic(stage, host)


def test_a_gpu_that_an_operator_drains_stays_drained(stage: Stage) -> None:
    """What an operator reserved stays reserved, in every pass and after a start."""
    host = driver(gpu_host({}))
    start(stage, host)
    stage.reserve(GPU_84, "VGPU", 4)
    assert not periodic(stage, host)
    assert not start(stage, driver(gpu_host({})))
    assert f"{GPU_84}  VGPU=4(reserved:4,max:4)" in stage.picture()


def test_what_is_kept_for_the_untold_comes_on_top_of_what_an_operator_reserves(
    stage: Stage,
) -> None:
    """It is released without it, also if the driver was created again in between."""
    stage.show(BEFORE)
    unattributed = gpu_host(ALL, stopped="i3")
    host = driver(unattributed)
    start(stage, host)
    for reserved, then in [(0, 1), (2, 3), (4, 4), (3, 4), (1, 2)]:
        stage.reserve(GPU_84, "VGPU", reserved)
        periodic(stage, host)
        assert f"{GPU_84}  VGPU=4(reserved:{then},max:4)" in stage.picture()
        assert not periodic(stage, host)
    assert not start(stage, driver(unattributed))
    start(stage, driver(gpu_host(ALL)))
    assert stage.picture() == world_after(TOLD, kept="1"), "an operator's 1 of the 2"


def test_a_gpu_that_is_drained_stays_so_when_the_untold_have_gone(stage: Stage) -> None:
    """In the pass that notices it, and at a start: then all of the reserved amount is the
    operator's."""
    for has_gone_before_a_start in (False, True):
        stage.show(BEFORE)
        host = driver(gpu_host(ALL, stopped="i3"))
        host.used = stage.used
        start(stage, host)
        stage.reserve(GPU_84, "VGPU", 4)
        stage.hold("i3", "cn1 VCPU=2")
        if has_gone_before_a_start:
            start(stage, driver(gpu_host(ALL, stopped="i3")))
        else:
            periodic(stage, host)
        assert stage.picture() == world_after(TOLD.replace(I3_TOLD, "i3: cn1 VCPU=2"), kept="4")
        stage.clear()


def test_a_release_that_the_service_did_not_take_is_made_again(stage: Stage) -> None:
    """What was not released is not taken for an operator's amount."""
    stage.show(BEFORE)
    host = driver(gpu_host(ALL, stopped="i3"))
    host.used = stage.used
    start(stage, host)
    stage.hold("i3", "cn1 VCPU=2")
    tree = ReportClient(stage.transport).get_provider_tree_and_ensure_root(None, node().uuid, "cn1")
    host.update_provider_tree(tree, "cn1")
    periodic(stage, host)
    assert "reserved" not in stage.picture()


def test_what_an_operator_reserves_of_the_root_moves_along(stage: Stage) -> None:
    """It is divided among the GPUs; what was left for unattributed guests is not counted again."""
    stage.show(BEFORE.replace("VGPU=8", "VGPU=8(reserved:2)"))
    for _ in range(2):
        start(stage, driver(gpu_host(ALL, stopped="i3")))
        assert f"{GPU_84}  VGPU=4(reserved:1,max:4)" in stage.picture()
        assert f"{GPU_85}  VGPU=4(reserved:2,max:4)" in stage.picture()
        assert "VGPU=1(reserved:1,max:1)" in stage.picture()
    start(stage, driver(gpu_host(ALL)))
    assert f"{GPU_84}  VGPU=4(max:4)" in stage.picture()
    assert f"{GPU_85}  VGPU=4(reserved:2,max:4)" in stage.picture()


@pytest.mark.parametrize("falls", [False, True])
def test_vgpus_of_a_drained_host_move(
    stage: Stage, caplog: pytest.LogCaptureFixture, falls: bool
) -> None:
    """All free vGPUs stay reserved, and the log says that the others are not. Also after an
    interrupted pass."""
    stage.show(BEFORE)
    stage.reserve("cn1", "VGPU", 8)
    host = driver(gpu_host(ALL))
    if falls:
        with pytest.raises(ReshapeNeeded):
            periodic(stage, host)
    start(stage, host)
    assert stage.picture() == drawn(
        AFTER.replace("84_00_0  VGPU=4(max:4)", "84_00_0  VGPU=4(max:4,reserved:1)").replace(
            "85_00_0  VGPU=4(max:4)", "85_00_0  VGPU=4(max:4,reserved:3)"
        )
    )
    assert "4 VGPU that were reserved on the host or its GPUs are allocated now" in caplog.text


def test_who_turns_up_on_a_drained_gpu_moves_there(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The guest exists, and the agent must be able to start; no other guest gets a vGPU."""
    stage.show(BEFORE)
    start(stage, driver(gpu_host(ALL, stopped="i3")))
    stage.reserve(GPU_85, "VGPU", 4)
    start(stage, driver(gpu_host(ALL)))
    assert f"i3: cn1 VCPU=2, {GPU_85} VGPU=1" in stage.picture()
    assert f"{GPU_85}  VGPU=4(reserved:3,max:4)" in stage.picture()
    assert f"{GPU_84}  VGPU=4(max:4)" in stage.picture()
    assert "1 VGPU that were reserved on the host or its GPUs are allocated now" in caplog.text


def test_an_operator_says_where_an_untold_guest_is(stage: Stage) -> None:
    """By the device's PCI address or libvirt's name; any other text is refused."""
    stage.show(BEFORE)
    with pytest.raises(ReshapeFailed, match="the GPUs with VGPU are pci_0000_84_00_0, pci_0000_85"):
        start(stage, driver(gpu_host(ALL, stopped="i3"), assume={I3: "pci_0000_86_00_0"}))
    start(stage, driver(gpu_host(ALL, stopped="i3"), assume={I3: "pci_0000_85_00_0"}))
    assert stage.picture() == drawn(AFTER)


def test_without_room_for_the_untold_the_move_is_refused(stage: Stage) -> None:
    """Attributed guests fill both GPUs; the error lists all unattributed ones."""
    before = BEFORE + "    i4: cn1 VGPU=1\n    i5: cn1 VGPU=1\n"
    stage.show(before)
    guests = {"i1": "84", "i2": "85 85"}
    with pytest.raises(ReshapeFailed) as refused:
        start(stage, driver(gpu_host(guests, size=2)))
    assert "the GPUs have 1 VGPU left, too few for those that cannot" in str(refused.value)
    for name in ("i3", "i4", "i5"):
        assert consumer_uuid(name) in str(refused.value)
    assert stage.picture() == drawn(before)


def test_d_a_migration_is_moved_by_its_instances_devices(stage: Stage) -> None:
    """Scenario D: the mapping tells whose guest it is; the instance's allocations elsewhere
    stay."""
    cn2 = "    cn2  VCPU=16\n"
    world = BEFORE.replace("i3: cn1", "m3: cn1") + cn2 + "    i3: cn2 VCPU=2\n"
    stage.show(world)
    generation = stage.generation_of("cn2")
    start(stage, driver(gpu_host(ALL), migrations={M3: I3}))
    after = AFTER.replace("i3: cn1", "m3: cn1") + cn2 + "    i3: cn2 VCPU=2\n"
    assert stage.picture() == drawn(after)
    assert stage.generation_of("cn2") == generation


def test_a_migration_without_a_mapping_is_reported(stage: Stage) -> None:
    """It stays on the root; with a mapping it moves at the next start."""
    stage.show(BEFORE.replace("i3: cn1", "m3: cn1"))
    host = driver(gpu_host(ALL))
    start(stage, host)
    assert [(consumer.consumer, consumer.amount) for consumer in host.unattributed] == [(M3, 1)]
    assert "map the migration to its instance under `migrations`" in host.unattributed[0].what_to_do
    start(stage, driver(gpu_host(ALL), migrations={M3: I3}))
    assert stage.picture() == drawn(AFTER.replace("i3: cn1", "m3: cn1"))


def test_an_instance_and_its_migration_on_one_host_cannot_be_told_apart(stage: Stage) -> None:
    """A resize on one host: both stay on the root."""
    stage.show(BEFORE + "    m3: cn1 VGPU=1\n")
    host = driver(gpu_host(ALL), migrations={M3: I3})
    start(stage, host)
    assert {consumer.consumer for consumer in host.unattributed} == {I3, M3}
    assert {consumer.why for consumer in host.unattributed} == {
        "an instance and its migration both have some on this host"
    }


def test_d2_an_evacuated_guest_keeps_what_it_holds_of_its_other_host(stage: Stage) -> None:
    """Scenario D2: only the part on this host changes; if the guest is not here, it is reported."""
    other = "    cn2  VCPU=16  VGPU=4\n"
    world = BEFORE.replace("i3: cn1 VCPU=2 VGPU=1", "i3: cn1 VCPU=2 VGPU=1, cn2 VCPU=2 VGPU=1")
    stage.show(other + world)
    host = driver(gpu_host({name: ALL[name] for name in ("i1", "i2")}))
    start(stage, host)
    assert "it was evacuated" in host.unattributed[0].why
    start(stage, driver(gpu_host(ALL)))
    after = AFTER.replace("85_00_0 VGPU=1", "85_00_0 VGPU=1, cn2 VCPU=2 VGPU=1")
    assert stage.picture() == drawn(other + after)


def test_others_on_the_root_and_below_it_stay(stage: Stage) -> None:
    """A class and a trait of an operator, and the child of another agent."""
    others = f"cn1  {STOCKS}  CUSTOM_X=1  {TRAITS}  CUSTOM_Y"
    agent = "      agent  CUSTOM_VNIC_TYPE_NORMAL"
    stage.show(f"    {others}  VGPU=8\n{agent}")
    start(stage, driver(gpu_host({})))
    assert stage.picture() == drawn(f"    {others}\n{agent}\n{GPUS}")


def test_a_gpu_that_is_not_seen_keeps_its_provider(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest of its capacity is reserved, with one log line; when the GPU is back, so is its
    capacity."""
    stage.show(BEFORE)
    seen = gpu_host(ALL)
    host = driver(seen)
    host.used = stage.used
    start(stage, host)
    devices = seen.node_devices
    seen.node_devices = [text for text in devices if "_85_" not in text]
    for _ in range(2):
        periodic(stage, host)
    assert "cn1_pci_0000_85_00_0  VGPU=1(max:4)" in stage.picture()
    assert caplog.text.count("it stays while 1 are allocated") == 1
    seen.node_devices = devices
    periodic(stage, host)
    assert stage.picture() == drawn(AFTER)
    assert not host.notices
    seen.node_devices = []
    stage.hold("i3", "cn1 VCPU=2")
    periodic(stage, host)
    assert "84_00_0  VGPU=3(max:4)" in stage.picture()
    assert "85_00_0" not in stage.picture(), "nobody holds of it"


def test_without_any_gpu_the_vgpus_stay_on_the_root(stage: Stage) -> None:
    """The GPU's kernel driver is not loaded yet: it is reported, and nothing moves."""
    stage.show(BEFORE)
    host = driver(RecordedHost())
    assert not start(stage, host)
    assert host.notices == ("cn1 has VGPU, but there is no GPU to move it to",)


def test_a_gpu_without_a_rule_goes(stage: Stage) -> None:
    """A GPU that the configuration no longer offers is removed from the service."""
    start(stage, driver(gpu_host({})))
    host = driver(gpu_host({}), mdev=[{"type": "nvidia-35", "parents": ["0000:85:00.0"]}])
    host.used = stage.used
    start(stage, host)
    assert "84_00_0" not in stage.picture()
    assert "85_00_0" in stage.picture()


def test_each_gpu_has_its_type_and_class(stage: Stage) -> None:
    """A rule names its devices, and one without devices applies to the rest; a limit is observed.

    Existing devices always count.
    """
    host = gpu_host({"i1": "84 84 84"}, size=8)
    general = {"type": "nvidia-35", "instances_max": 2, "resource_class": "CUSTOM_T4"}
    named = {"type": "nvidia-36", "parents": ["pci_0000_85_00_0"]}
    start(stage, driver(host, mdev=[general, named]))
    picture = stage.picture()
    assert "cn1_pci_0000_84_00_0  CUSTOM_T4=3(max:3)" in picture
    assert "cn1_pci_0000_85_00_0  VGPU=2(max:2)" in picture


def test_a_device_that_two_guests_name_is_the_running_ones(stage: Stage) -> None:
    """The XML of a stopped guest may name a device that another guest uses now."""
    stage.show(BEFORE.replace("    i3: cn1 VCPU=2 VGPU=1\n", "").replace("VGPU=2", "VGPU=1"))
    mdev = provider_uuid("mdev")
    host = RecordedHost(
        node_devices=[
            gpu_xml("84", available=3),
            mdev_xml(mdev, "pci_0000_84_00_0", names_uuid=False),
        ],
        domains=[
            (domain_xml(I1, mdevs=[mdev]), False),
            (domain_xml(I2, mdevs=[mdev]), True),
        ],
    )
    started = driver(host)
    start(stage, started)
    assert [consumer.consumer for consumer in started.unattributed] == [I1]
    assert "i2: cn1 VCPU=2, cn1_pci_0000_84_00_0 VGPU=1" in stage.picture()
