# SPDX-License-Identifier: Apache-2.0
"""What the libvirt driver reads in libvirt's documents, without libvirt."""

from __future__ import annotations

import pytest

from berth.hosts.drivers.host_model.options import LibvirtOptions
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.host import feature_traits
from berth.hosts.drivers.libvirt.xml_documents import (
    Cell,
    read_capabilities,
    read_cpu_features,
    read_encryption_slots,
    read_host_model,
    read_node_device,
)
from berth.hosts.errors import HostUnreadable
from tests.hosts.libvirt_hosts import RECORDED, RecordedHost, domain_xml
from tests.hosts.linux_hosts import empty_tree
from tests.hosts.stage import consumer_uuid


def test_capabilities_of_libvirts_own_test_driver() -> None:
    """As recorded from libvirt 9.0."""
    read = read_capabilities((RECORDED / "test-default.xml").read_text())
    assert (read.arch, read.cpu, read.has_hyperthreads) == ("i686", None, False)
    assert read.cells == (
        Cell(0, frozenset(range(8)), 2097152),
        Cell(1, frozenset(range(8, 16)), 4194304),
    )


def test_the_cpu_that_guests_get() -> None:
    """From the domain capabilities, mode host-model; disabled and forbidden features do not
    count."""
    model = read_host_model(
        """
        <domainCapabilities><cpu>
          <mode name='host-passthrough' supported='yes'/>
          <mode name='host-model' supported='yes'>
            <model fallback='forbid'>Skylake</model>
            <feature policy='require' name='vmx'/>
            <feature policy='disable' name='avx2'/>
            <feature policy='forbid' name='rtm'/>
          </mode>
        </cpu></domainCapabilities>
        """
    )
    assert model is not None
    assert read_cpu_features(model) == {"vmx"}
    assert read_host_model("<domainCapabilities/>") is None


@pytest.mark.parametrize(
    ("arch", "traits"),
    [("aarch64", {"AARCH64_AES", "AARCH64_SHA1"}), ("armv7l", set()), ("x86_64", {"X86_AESNI"})],
)
def test_a_word_has_the_meaning_of_its_processor(arch: str, traits: set[str]) -> None:
    """`aes` is AES-NI on x86 only."""
    read = feature_traits(["aes", "sha1"], arch)
    assert read == {f"HW_CPU_{trait}" for trait in traits}


@pytest.mark.parametrize(
    ("features", "slots"),
    [
        ("<sev supported='no'><maxGuests>59</maxGuests></sev>", {}),
        ("<sev supported='yes'><cbitpos>47</cbitpos></sev>", {"sev": None, "sev_es": None}),
        ("<tdx supported='yes'/>", {"tdx": None}),
    ],
)
def test_encryption_that_is_supported_may_have_no_number(
    features: str, slots: dict[str, int | None]
) -> None:
    """libvirt before 8 tells none."""
    text = f"<domainCapabilities><features>{features}</features></domainCapabilities>"
    assert read_encryption_slots(text) == slots


def test_other_node_devices_are_left_aside() -> None:
    """Devices that are unrelated to mediated devices are ignored."""
    text = "<device><name>scsi_host1</name><capability type='scsi_host'/></device>"
    assert not list(read_node_device(text))
    with pytest.raises(HostUnreadable, match="cannot parse libvirt's XML"):
        list(read_node_device("<device>"))


def test_the_use_of_guests_is_asked_for_when_something_changed() -> None:
    """And again after a while: who is deleted changes no provider."""
    host, asked = RecordedHost(), list[str]()

    def used(uuid: str) -> dict[str, int]:
        asked.append(uuid)
        return {}

    driver, tree = LibvirtDriver(host, LibvirtOptions.read({})), empty_tree()
    driver.used = used
    for _ in range(20):
        driver.update_provider_tree(tree, "cn1")
        for uuid in tree.get_provider_uuids():
            tree.update_inventory(uuid, tree.data(uuid).inventory, generation=1)
        if not host.domains:
            host.domains.append((domain_xml(consumer_uuid("i1"), size=(1, 0)), True))
    assert len(asked) == 2
