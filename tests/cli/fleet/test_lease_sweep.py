# SPDX-License-Identifier: Apache-2.0
"""`berth lease sweep`: what has expired is released at once, without waiting for a worker."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.e2e.serving import wait_until

JOB = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("way", ["service", "database"])
def test_an_expired_lease_is_swept(fleet: Fleet, in_process: InProcess, way: str) -> None:
    """Once, and not before it has expired."""
    fleet.begin(way, is_demo=True)
    owner = ("--consumer", JOB, "--project", "web", "--user", "alice")
    assert in_process("place", "VCPU=1", *owner, "--lease", "1s").returncode == 0

    def swept() -> list[str]:
        return in_process("lease", "sweep").stdout.splitlines()

    said: list[str] = []

    def is_swept() -> bool:
        said[:] = swept()
        return said[-1] == "released 1 consumer"

    wait_until(is_swept, "it to expire")
    assert said[0].startswith(f"released {JOB} of project web on cn")
    assert swept() == ["released 0 consumers"]
