# SPDX-License-Identifier: Apache-2.0
"""How often metrics are added up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from berth.api import exposition
from berth.api.exposition import TOLD_S, Exposition
from berth.api.instruments import Instruments
from berth.api.readiness import NotReady, Readiness

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Unready:
    """Whatever it is that is not there."""

    def snapshot(self) -> None:
        """Nothing."""
        raise NotReady("no database here")


class Folder:
    """The files of one process, which counts."""

    def __init__(self, path: Path) -> None:
        self._file = MmapedDict(str(path / f"counter_{os.getpid()}.db"))  # type: ignore[no-untyped-call]

    def count(self, value: float) -> None:
        """It has counted so many by now."""
        key = mmap_key("berth_claims", "berth_claims_total", [], [], "Claims.")
        self._file.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]


def test_who_asks_within_a_second_gets_what_was_told_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each form of its own; then all is added up again."""
    now = 100.0
    folder = Folder(tmp_path)
    monkeypatch.setattr(exposition, "shared_folder", lambda: str(tmp_path))
    told = Exposition(
        Instruments(strategy="noauth2", pool_size=1, pool_max=1),
        cast(Readiness, Unready()),
        classes_max=1,
        clock=lambda: now,
    )

    def claims(accept: str | None = None) -> float:
        _, body = told.render(accept)
        lines = body.decode().splitlines()
        return next(float(one.split()[1]) for one in lines if one.startswith("berth_claims_total"))

    folder.count(1)
    assert claims() == 1
    folder.count(2)
    now += TOLD_S / 2
    assert (claims(), claims(OPENMETRICS)) == (1, 2)
    folder.count(3)
    now += TOLD_S / 2
    assert (claims(), claims(OPENMETRICS)) == (3, 2)
