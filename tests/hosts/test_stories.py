# SPDX-License-Identifier: Apache-2.0
"""Drivers and recorded hosts: the stories of `stories/*.yaml`, and what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.stage import Stage
from tests.hosts.stories import Story, live, read_stories

SERVICES = ["berth"]


@pytest.mark.parametrize(("kind", "story"), read_stories("linux"))
def test_linux(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Machines that the driver reads from the kernel's files."""
    live(kind, story, stage, tmp_path, caplog)


@pytest.mark.parametrize(("kind", "story"), read_stories("libvirt"))
def test_libvirt(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hosts of which libvirt tells."""
    live(kind, story, stage, tmp_path, caplog)


@pytest.mark.parametrize(("kind", "story"), read_stories("gpus"))
def test_gpus(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """vGPUs that move from a host's root to their GPUs: scenarios A and D of the specification."""
    live(kind, story, stage, tmp_path, caplog)


@pytest.mark.parametrize(("kind", "story"), read_stories("pci"))
def test_pci(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PCI functions of guests: scenario J of the specification."""
    live(kind, story, stage, tmp_path, caplog)


@pytest.mark.parametrize(("kind", "story"), read_stories("static"))
def test_static(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hosts whose providers are in a file."""
    live(kind, story, stage, tmp_path, caplog)


@pytest.mark.parametrize(("kind", "story"), read_stories("provider_config"))
def test_provider_config(
    kind: str, story: Story, stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Additions of nova's provider.yaml files."""
    live(kind, story, stage, tmp_path, caplog)
