# SPDX-License-Identifier: Apache-2.0
"""nova's provider.yaml files: their additions to what a driver reports, pass after pass."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from berth.hosts.drivers.provider_config import (
    ProviderConfig,
    WithProviderConfig,
    read_additions,
)
from berth.hosts.errors import BadConfiguration
from tests.hosts.drivers import GPUHost
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, drawn
from tests.worlds import provider_uuid

META = "meta: {schema_version: '1.0'}\n"

WORLD = """
    cn1  VCPU=16  COMPUTE_NODE
      agent  CUSTOM_VNIC_TYPE_NORMAL
        bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000  CUSTOM_SEEN
"""

ADDITIONS = """
    providers:
      - identification: {uuid: $COMPUTE_NODE}
        inventories:
          additional:
            - CUSTOM_LICENCE: {total: 10, reserved: 1}
        traits:
          additional: [CUSTOM_RACK_7]
      - identification: {name: bridge}
        inventories:
          additional:
            - CUSTOM_VLAN: {total: 100}
        traits:
          additional: [CUSTOM_SEEN, CUSTOM_FAST]
"""

WORLD_WITH_ADDITIONS = """
    cn1  VCPU=16  CUSTOM_LICENCE=10(reserved:1)  COMPUTE_NODE  CUSTOM_RACK_7
      agent  CUSTOM_VNIC_TYPE_NORMAL
        bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000  CUSTOM_VLAN=100  CUSTOM_FAST  CUSTOM_SEEN
"""


class ConfiguredHost:
    """A host whose driver adds nothing, and a directory of provider.yaml files."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "provider_config"
        self.directory.mkdir()
        self.owned = folder / "owned.json"
        self.restart()

    def restart(self) -> None:
        """A new agent, which has only the file of recorded additions."""
        self.config = ProviderConfig(self.directory, self.owned)
        self.driver = WithProviderConfig(GPUHost({}), self.config)

    def write(self, text: str, name: str = "a.yaml") -> None:
        """Replace a file."""
        beside = self.directory / "new"
        beside.write_text(META + dedent(text))
        beside.replace(self.directory / name)


SERVICES = ["berth"]


@pytest.fixture
def host(tmp_path: Path) -> ConfiguredHost:
    """A host without files."""
    return ConfiguredHost(tmp_path)


def test_additions_stay_pass_after_pass(stage: Stage, host: ConfiguredHost) -> None:
    """Also on the child of another agent; the next pass recognises its own additions."""
    stage.show(WORLD)
    host.write(ADDITIONS)
    start(stage, host.driver)
    assert stage.picture() == drawn(WORLD_WITH_ADDITIONS)
    assert not periodic(stage, host.driver)
    host.restart()
    assert not start(stage, host.driver)


def test_what_leaves_the_files_leaves_the_service(stage: Stage, host: ConfiguredHost) -> None:
    """A class, a trait, an entry, a file; whatever was there before stays."""
    stage.show(WORLD)
    host.write(ADDITIONS)
    start(stage, host.driver)
    host.restart()
    host.write(
        """
        providers:
          - identification: {name: cn1}
            inventories: {additional: [{CUSTOM_LICENCE: {total: 12}}]}
        """
    )
    periodic(stage, host.driver)
    assert stage.picture() == drawn(
        WORLD.replace("VCPU=16", "VCPU=16  CUSTOM_LICENCE=12"),
    )
    (host.directory / "a.yaml").unlink()
    periodic(stage, host.driver)
    assert stage.picture() == drawn(WORLD)


def test_a_lost_note_is_made_anew(stage: Stage, host: ConfiguredHost) -> None:
    """If the service's inventory equals the entry, it counts as added from the file."""
    stage.show(WORLD)
    host.write(ADDITIONS)
    start(stage, host.driver)
    host.owned.unlink()
    host.restart()
    assert not start(stage, host.driver)
    host.write("providers: []")
    periodic(stage, host.driver)
    assert "CUSTOM_LICENCE" not in stage.picture()


def test_somebody_elses_class_is_not_overwritten(stage: Stage, host: ConfiguredHost) -> None:
    """The error names the file, the entry, the provider and the class; nothing is sent."""
    world = "    cn1  CUSTOM_LICENCE=3"
    stage.show(world)
    host.write(ADDITIONS)
    with pytest.raises(
        BadConfiguration,
        match=r"a\.yaml, providers\[0\] \(\$COMPUTE_NODE\): cn1 already has CUSTOM_LICENCE",
    ):
        start(stage, host.driver)
    assert stage.picture() == drawn(world)


def test_a_broken_change_leaves_the_last_good_one_in_force(
    stage: Stage, host: ConfiguredHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Each invalid version is logged once; before the first valid one nothing is reported."""
    stage.show(WORLD)
    host.write("providers: [{identification: {}}]")
    with pytest.raises(BadConfiguration, match="expected either a name or a uuid"):
        start(stage, host.driver)
    host.write(ADDITIONS)
    start(stage, host.driver)
    host.write("providers: 7", "b.yaml")
    for _ in range(2):
        assert not periodic(stage, host.driver)
    assert caplog.text.count("b.yaml, providers: expected a list, got 7") == 1


def test_a_directory_that_is_not_there_is_told(stage: Stage, host: ConfiguredHost) -> None:
    """A missing directory is an error, and additions from a directory that disappears stay."""
    stage.show(WORLD)
    host.directory.rmdir()
    with pytest.raises(BadConfiguration, match="provider_config is not a directory"):
        start(stage, host.driver)
    host.directory.mkdir()
    host.write(ADDITIONS)
    start(stage, host.driver)
    host.directory.rename(host.directory.with_name("elsewhere"))
    assert not periodic(stage, host.driver)


def test_entries_about_others_are_left_out(
    stage: Stage, host: ConfiguredHost, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown provider, and an entry that adds nothing; each is logged once."""
    stage.show(WORLD)
    host.write(
        """
        providers:
          - {identification: {name: cn9}, traits: {additional: [CUSTOM_X]}}
          - {identification: {name: agent}, owner: me}
        """
    )
    for _ in range(2):
        assert not periodic(stage, host.driver)
    assert caplog.text.count("providers[0] (cn9): no such provider below this node") == 1
    assert caplog.text.count("providers[1] (agent) adds nothing and is ignored") == 1


def test_an_explicit_entry_goes_before_the_general_one(stage: Stage, host: ConfiguredHost) -> None:
    """$COMPUTE_NODE applies only if no entry names the node; two entries that name it are an
    error."""
    stage.show(WORLD)
    by_uuid = f"{{uuid: {provider_uuid('cn1')}}}"
    host.write(
        f"""
        providers:
          - {{identification: {{uuid: $COMPUTE_NODE}}, traits: {{additional: [CUSTOM_ANY]}}}}
          - {{identification: {by_uuid}, traits: {{additional: [CUSTOM_THIS]}}}}
        """
    )
    start(stage, host.driver)
    assert "CUSTOM_THIS" in stage.picture()
    assert "CUSTOM_ANY" not in stage.picture()
    host.write("providers: [{identification: {name: cn1}, traits: {additional: [CUSTOM_B]}}]", "b")
    (host.directory / "b").rename(host.directory / "b.yaml")
    with pytest.raises(BadConfiguration, match="is about the same provider as"):
        periodic(stage, host.driver)


ENTRY = "providers: [{identification: {name: a}, %s}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("providers: []", "meta: is missing"),
        (
            "meta: {schema_version: 1.0}",
            "meta.schema_version: expected text like '1.0', in quotes, got 1.0",
        ),
        ("meta: {schema_version: '2.0'}", "expected version 1.x, got '2.0'"),
        (META + "providers: [{}]", "providers[0].identification: is missing"),
        (
            META + "providers: [{identification: {name: a, uuid: $COMPUTE_NODE}}]",
            "providers[0].identification: expected either a name or a uuid, got {",
        ),
        (META + "providers: [{identification: {uuid: x}}]", "uuid: expected a uuid, got 'x'"),
        (
            META + "providers: [{identification: {name: ''}}]",
            "name: expected text of length >= 1, got ''",
        ),
        (
            META + "providers: [{identification: {host: a}}]",
            "host: unknown key; possible keys: name, uuid",
        ),
        (
            META + ENTRY % "__source_file: x",
            "providers[0].__source_file: remove this key: nova sets it",
        ),
        (
            META + ENTRY % "inventories: {additional: [{VCPU: {total: 1}}]}",
            "additional[0].VCPU: expected CUSTOM_ and capital letters, digits and _, got 'VCPU'",
        ),
        (
            META + ENTRY % "inventories: {additional: [{CUSTOM_A: {total: 1, x: 2}}]}",
            "additional[0].CUSTOM_A.x: unknown key",
        ),
        (
            META + ENTRY % "traits: {additional: [HW_NUMA_ROOT]}",
            "expected CUSTOM_ and capital letters, digits and _, got 'HW_NUMA_ROOT'",
        ),
        (
            META
            + "providers: [{identification: {name: a}, traits: {additional: [CUSTOM_A]}},"
            + " {identification: {name: a}, traits: {additional: [CUSTOM_B]}}]",
            "providers[1] (a) is about the same provider as ",
        ),
    ],
)
def test_a_mistake_is_told_with_its_entry(tmp_path: Path, text: str, said: str) -> None:
    """The rules of the schema, each as one sentence with the file and the entry."""
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(BadConfiguration) as refused:
        read_additions([path])
    assert any(said in fault for fault in refused.value.faults)
    assert all(fault.startswith(str(path)) for fault in refused.value.faults)


def test_a_newer_minor_version_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a warning: unknown outer keys are ignored."""
    path = tmp_path / "a.yaml"
    path.write_text(
        "meta: {schema_version: '1.7'}\nnew: 1\n"
        + ENTRY % "traits: {additional: [CUSTOM_A], removed: []}"
    )
    (addition,) = read_additions([path])
    assert addition.traits == {"CUSTOM_A"}
    assert "newer than 1.0" in caplog.text


@pytest.mark.parametrize(
    ("entries", "total"),
    [
        ("- {I, inventories: {additional: [{CUSTOM_A: {total: 1.0, reserved: 0.0}}]}}", 1),
        ("- {I, inventories: {additional: [{CUSTOM_A: {total: 1}}, {CUSTOM_A: {total: 2}}]}}", 2),
        ("- {I, inventories: {additional: [{CUSTOM_A: {total: 3}}]}}\n- {I}", 3),
        ("- {I, traits: {}}\n- {I, inventories: {additional: [{CUSTOM_A: {total: 4}}]}}", 4),
        (
            "- {I, inventories: {additional: [{CUSTOM_A: {total: 5}}]},"
            " traits: {additional: [CUSTOM_B, CUSTOM_B]}}",
            5,
        ),
    ],
)
def test_what_nova_takes_is_taken(tmp_path: Path, entries: str, total: int) -> None:
    """Whole numbers with a point, what is listed twice, and entries that add nothing."""
    path = tmp_path / "a.yaml"
    text = entries.replace("{I", "{identification: {uuid: $COMPUTE_NODE}")
    path.write_text(f"{META}providers:\n{text}\n")
    (addition,) = read_additions([path])
    assert addition.inventories["CUSTOM_A"]["total"] == total
