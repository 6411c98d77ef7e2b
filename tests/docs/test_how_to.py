# SPDX-License-Identifier: Apache-2.0
"""Every how-to of the documentation works, command by command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.how_to import HOW_TO, OF_THE_ORIGINAL, follow
from tests.docs.pages import DOCS
from tests.servers.keystone import Keystone

#: Needs a Keystone and the credentials of its administrator.
OF_KEYSTONE = DOCS / "how-to" / "keystone.md"

HERE = [page for page in HOW_TO if page not in (OF_THE_ORIGINAL, OF_KEYSTONE)]


@pytest.mark.parametrize("page", HERE, ids=lambda page: page.stem)
def test_a_how_to_works_as_it_is_printed(page: Path, tmp_path: Path) -> None:
    """It runs in an empty directory, with only what the page and an installation provide."""
    home = tmp_path / "home"
    home.mkdir()
    follow(page, home)


def test_the_how_to_of_keystone_works_as_it_is_printed(keystone: Keystone, tmp_path: Path) -> None:
    """It runs in an empty directory, with the credentials of an administrator."""
    home = tmp_path / "home"
    home.mkdir()
    follow(OF_KEYSTONE, home, keystone.credentials())
