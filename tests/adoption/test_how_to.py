# SPDX-License-Identifier: Apache-2.0
"""The how-to of migration, followed with the original itself."""

from __future__ import annotations

from pathlib import Path

from tests.adoption.originals import Original
from tests.docs.how_to import OF_THE_ORIGINAL, follow


def test_the_way_over_and_back_works_as_it_is_printed(tmp_path: Path) -> None:
    """From the original to berth and back again, on one database."""
    home = tmp_path / "home"
    home.mkdir()
    newest = Original("16.0.0", f"sqlite:///{home}/placement.db", home)
    follow(OF_THE_ORIGINAL, home, {"ORIGINAL": str(newest.folder)})
