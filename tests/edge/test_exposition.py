# SPDX-License-Identifier: Apache-2.0
"""How often the metrics are computed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from berth.config import MetricsSettings
from berth.edge import exposition
from berth.edge.exposition import REUSED_S, Exposition
from berth.edge.instruments import Instruments
from berth.edge.readiness import NotReady, Readiness

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Unready:
    """A part that is not available."""

    def state(self) -> None:
        """Fail."""
        raise NotReady("no database here")


class Folder:
    """The metrics files of one process."""

    def __init__(self, path: Path) -> None:
        self._file = MmapedDict(str(path / f"counter_{os.getpid()}.db"))  # type: ignore[no-untyped-call]

    def count(self, value: float) -> None:
        """Set its counter to a number."""
        key = mmap_key("berth_claims", "berth_claims_total", [], [], "Claims.")
        self._file.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]


def test_who_asks_within_a_second_gets_what_was_told_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each format; afterwards they are computed again."""
    now = 100.0
    folder = Folder(tmp_path)
    monkeypatch.setattr(exposition, "shared_folder", lambda: str(tmp_path))
    metrics = Exposition(
        Instruments(strategy="noauth2", pool_size=1, pool_max=1),
        cast(Readiness, Unready()),
        MetricsSettings(networks=(), classes_max=1, flavors_max=1, capacity_by=""),
        engine="sqlite",
        leases=lambda: 0,
        clock=lambda: now,
    )

    def claims(accept: str | None = None) -> float:
        _, body = metrics.render(accept)
        lines = body.decode().splitlines()
        return next(
            float(line.split()[1]) for line in lines if line.startswith("berth_claims_total")
        )

    folder.count(1)
    assert claims() == 1
    folder.count(2)
    now += REUSED_S / 2
    assert (claims(), claims(OPENMETRICS)) == (1, 2)
    folder.count(3)
    now += REUSED_S / 2
    assert (claims(), claims(OPENMETRICS)) == (3, 2)
