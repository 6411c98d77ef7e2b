# SPDX-License-Identifier: Apache-2.0
"""What an operator set on a provider outlives a pass in which its device, or its host, is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest

from berth.hosts.drivers.host_model.options import LibvirtOptions
from berth.hosts.drivers.kept_settings import Keeping
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.host import Machine
from berth.hosts.drivers.provider_config import ProviderConfig, WithProviderConfig
from berth.hosts.drivers.static import StaticDriver
from berth.hosts.errors import BadConfiguration, HostUnreadable
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Driver
from tests.hosts.hosts import start
from tests.hosts.libvirt_hosts import RecordedHost, gpu_host, pci_xml
from tests.hosts.linux_hosts import driver as linux_driver
from tests.hosts.machines import ONE_SOCKET, PCI
from tests.hosts.stage import Stage

CARD: Final = "0000:81:00.0"
RULE: Final = {"address": CARD, "resource_class": "CUSTOM_CARD", "traits": ["CUSTOM_OF_RULE"]}
AGGREGATE: Final = "8a3c1f2b-55e0-4c53-8f0a-4f7a3c1f2b10"
TODAY: Final = date(2026, 11, 28)


class Unreadable(RecordedHost):
    """A host whose libvirt does not answer."""

    def machine(self) -> Machine:
        raise HostUnreadable("libvirt: no connection")


class Reporter:
    """A driver of one host with one card, which may be away."""

    def __init__(self, kind: str, folder: Path, client: ReportClient) -> None:
        self._kind = kind
        self._folder = folder
        self._client = client
        self.card = "card" if kind == "static" else f"cn1_{CARD}"
        self.today = TODAY
        self._additions: ProviderConfig | None = None
        self._file = folder / "host.yaml"
        self._static = StaticDriver(self._file, folder / "state.json")

    def report(self, *, has_card: bool | None) -> str:
        """Report the host, which cannot be read if `has_card` is None; return the notices."""
        made: Any = getattr(self, f"_{self._kind}_with")(has_card)
        keeping: Keeping = made.keeping
        keeping.drained, keeping.today = self._client.drains_of, lambda: self.today
        if self._additions is None:
            start(self._client, made)
        else:
            start(self._client, WithProviderConfig(made, self._additions))
        return "; ".join(getattr(made, "notices", ()))

    def add(self, text: str) -> None:
        """Add to the providers what a file provider.yaml says."""
        folder = self._folder / "additions"
        folder.mkdir()
        (folder / "more.yaml").write_text(dedent(text))
        self._additions = ProviderConfig(folder, self._folder / "additions.json")

    def _linux_with(self, has_card: bool | None) -> Driver:
        pci = {CARD: PCI("8086:1572")} if has_card else {}
        root = self._folder / str(has_card)
        if has_card is None:
            (root / "proc").mkdir(parents=True)
        return linux_driver(
            replace(ONE_SOCKET, pci=pci), root, used=self._client.get_usages, pci=[RULE]
        )

    def _libvirt_with(self, has_card: bool | None) -> Driver:
        host = gpu_host({}) if has_card is not None else Unreadable()
        host.node_devices = [pci_xml(CARD, "8086:1572")] if has_card else []
        made = LibvirtDriver(host, LibvirtOptions.read({"pci": [RULE]}))
        made.used = self._client.get_usages
        return made

    def _static_with(self, has_card: bool | None) -> Driver:
        card = "[{name: card, inventories: {CUSTOM_CARD: {total: 1}}, traits: [CUSTOM_OF_RULE]}]"
        if has_card is None:
            return StaticDriver(self._folder / "missing.yaml", None)
        self._file.write_text(f"children: {card if has_card else '[]'}\n")
        self._static.used = self._client.get_usages
        return self._static


def group(stage: Stage, card: str) -> None:
    uuid, seen = stage.uuid_of(card), stage.generation_of(card)
    body = {"aggregates": [AGGREGATE], "resource_provider_generation": seen}
    stage._send("PUT", f"/resource_providers/{uuid}/aggregates", body)


def drain(stage: Stage, card: str) -> None:
    stage._send("PUT", "/berth/v1/drains/fans", {"providers": [card], "reason": "fans"})


def has_drains(stage: Stage) -> bool:
    """Whether the service is berth; OpenStack Placement has no drains."""
    answer = stage.transport.request("/berth/v1/drains", "GET", raise_exc=False)
    return bool(answer.status_code == 200)


def settings_of(stage: Stage, card: str) -> object:
    """What can be set on a provider."""
    uuid = stage.uuid_of(card)
    inventories = stage._get(f"/resource_providers/{uuid}/inventories")["inventories"]
    traits = stage._get(f"/resource_providers/{uuid}/traits")["traits"]
    aggregates = stage._get(f"/resource_providers/{uuid}/aggregates")["aggregates"]
    drains = stage._get("/berth/v1/drains")["drains"] if has_drains(stage) else []
    return inventories, sorted(traits), aggregates, drains


def names(stage: Stage) -> set[str]:
    return {item["name"] for item in stage._get("/resource_providers")["resource_providers"]}


#: By what the notice says, the setting. A file of the driver static has all amounts, and sets them
#: in each pass.
AMOUNTS: Final[dict[str, Callable[[Stage, str], object]]] = {
    "1 CUSTOM_CARD reserved": lambda stage, card: stage.reserve(card, "CUSTOM_CARD", 1),
    "ratio 2.0 of CUSTOM_CARD": lambda stage, card: stage.stock(
        card, "CUSTOM_CARD", total=1, max_unit=1, allocation_ratio=2
    ),
}
OTHERS: Final[dict[str, Callable[[Stage, str], object]]] = {
    "CUSTOM_BROKEN_FAN": lambda stage, card: stage.trait(card, "CUSTOM_BROKEN_FAN"),
    f"aggregate {AGGREGATE}": group,
    "drain fans": drain,
}
CASES: Final = [
    (kind, setting, word)
    for kind in ("linux", "libvirt", "static")
    for word, setting in (OTHERS if kind == "static" else AMOUNTS | OTHERS).items()
]


@pytest.mark.parametrize(("kind", "setting", "word"), CASES)
def test_a_setting_is_there_again_with_its_device(
    stage: Stage,
    tmp_path: Path,
    kind: str,
    setting: Callable[[Stage, str], object],
    word: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Meanwhile nothing of the device is offered; after its last day, the provider is removed.
    A host that does not answer has not lost anything, and nothing is written."""
    if setting is drain and not has_drains(stage):
        return
    reporter = Reporter(kind, tmp_path, ReportClient(stage.transport))
    reporter.report(has_card=True)
    setting(stage, reporter.card)
    before = settings_of(stage, reporter.card)
    with pytest.raises((HostUnreadable, BadConfiguration)):
        reporter.report(has_card=None)
    assert settings_of(stage, reporter.card) == before
    reporter.report(has_card=False)
    assert f"kept until 2026-12-28: {word}" in caplog.text
    query = "/allocation_candidates?resources=CUSTOM_CARD:1"
    assert stage._get(query)["allocation_requests"] == []
    reporter.report(has_card=True)
    assert settings_of(stage, reporter.card) == before
    for day, is_kept in ((30, True), (31, False)):
        reporter.report(has_card=False)
        reporter.today = TODAY + timedelta(days=day)
        reporter.report(has_card=False)
        assert (reporter.card in names(stage)) == is_kept


@pytest.mark.parametrize("kind", ["linux", "libvirt", "static"])
def test_a_device_on_which_nothing_was_set_goes_at_once(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    """The traits of a rule and of the driver are no settings of a person, nor is a drain of what is
    beside it."""
    reporter = Reporter(kind, tmp_path, ReportClient(stage.transport))
    reporter.report(has_card=True)
    if has_drains(stage):
        drain(stage, "cn1")
    assert not reporter.report(has_card=False).count("kept")
    assert reporter.card not in names(stage)


@pytest.mark.parametrize("kind", ["linux", "libvirt", "static"])
def test_what_provider_yaml_adds_is_no_setting_and_is_not_offered_meanwhile(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    """The file adds it again when the device is back."""
    reporter = Reporter(kind, tmp_path, ReportClient(stage.transport))
    reporter.add(
        f"""
        meta: {{schema_version: "1.0"}}
        providers:
          - identification: {{name: "{reporter.card}"}}
            inventories: {{additional: [{{CUSTOM_LICENCE: {{total: 9, reserved: 1}}}}]}}
            traits: {{additional: [CUSTOM_LICENSED]}}
        """
    )
    reporter.report(has_card=True)
    stage.trait(reporter.card, "CUSTOM_BROKEN_FAN")
    before = settings_of(stage, reporter.card)
    query = "/allocation_candidates?resources=CUSTOM_LICENCE:1"
    assert len(stage._get(query)["allocation_requests"]) == 1
    for _ in range(2):
        reporter.report(has_card=False)
        assert stage._get(query)["allocation_requests"] == []
    reporter.report(has_card=True)
    assert settings_of(stage, reporter.card) == before
