# SPDX-License-Identifier: Apache-2.0
"""The drivers accept the examples of the pages for hosts."""

from __future__ import annotations

from pathlib import Path

from berth.hosts.agent_config import read_agent_config
from berth.hosts.drivers import load_driver
from berth.hosts.drivers.hosts.options import MdevRule
from berth.hosts.drivers.libvirt.options import Options, read_options
from berth.hosts.drivers.provider_config import read_additions
from berth.hosts.drivers.static import StaticDriver, read_declaration
from tests.docs.pages import DOCS, blocks

LIBVIRT = (DOCS / "hosts-libvirt.md").read_text()
STATIC = (DOCS / "hosts-static.md").read_text()


def test_the_files_of_the_page_are_good(tmp_path: Path) -> None:
    """Those of the static driver and of nova's format."""
    agent, static, additions = blocks(STATIC, "yaml")
    path = tmp_path / "a.yaml"
    path.write_text(agent.text)
    assert isinstance(load_driver("static", read_agent_config(path).options), StaticDriver)
    path.write_text(static.text)
    assert len(read_declaration(path).providers) == 3
    path.write_text(additions.text)
    assert len(read_additions([path])) == 1


def test_the_libvirt_options_are_all_on_the_page(tmp_path: Path) -> None:
    """In the example and in the tables."""
    (example,) = blocks(LIBVIRT, "yaml")
    path = tmp_path / "agent.yaml"
    path.write_text(example.text)
    options = read_options(read_agent_config(path).options)
    assert list(options.assume.values()) == ["pci_0000_84_00_0"]
    for field in [*Options.__struct_fields__, *MdevRule.__struct_fields__]:
        assert f"| `{field}` |" in LIBVIRT
