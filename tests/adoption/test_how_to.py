# SPDX-License-Identifier: Apache-2.0
"""The how-to of the migration, with OpenStack Placement itself."""

from __future__ import annotations

from pathlib import Path

from tests.adoption.originals import Original
from tests.docs.how_to import OF_THE_ORIGINAL, follow


def test_the_way_over_and_back_works_as_it_is_printed(tmp_path: Path) -> None:
    """From OpenStack Placement to berth and back, on one database."""
    home = tmp_path / "home"
    home.mkdir()
    newest = Original("16.0.0", f"sqlite:///{home}/placement.db", home)
    follow(OF_THE_ORIGINAL, home, {"ORIGINAL": str(newest.folder)})
