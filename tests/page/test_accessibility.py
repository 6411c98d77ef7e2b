# SPDX-License-Identifier: Apache-2.0
"""What axe-core says of every view, in both colour schemes. Source: page.md, Tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import Serve, create_token


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_no_view_has_a_serious_barrier(browser: Browser, demo: Service, scheme: str) -> None:
    """Names, roles, contrast, order: nothing serious and nothing critical."""
    found: dict[str, list[str]] = {}
    with browser.scheme(scheme):
        browser.open(demo.url)
        browser.find(".light", "Live")
        for name in [link.text for link in browser.all("nav a")]:
            browser.click("nav a", name)
            browser.find("nav a[aria-current]", name)
            browser.until(lambda: "Reading…" not in browser.text, f"{name} was read")
            found[name] = browser.axe()
    assert len(found) == 8
    assert not {name: barriers for name, barriers in found.items() if barriers}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_the_open_search_has_no_serious_barrier(
    browser: Browser, demo: Service, scheme: str
) -> None:
    """With results, and while it says that there are none."""
    with browser.scheme(scheme):
        browser.open(demo.url, "#/service")
        browser.find(".light", "Live")
        browser.press("/", *"cn02")
        browser.find(".result", "cn021")
        assert browser.axe() == []
        browser.press(*"xyz")
        browser.find(".results", "Nothing found.")
        assert browser.axe() == []


def test_signing_in_has_no_serious_barrier(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    """Nor has its refusal."""
    tokens = tmp_path / "tokens"
    create_token(tokens, "ada", role="admin")
    service = serve(api=f"auth_strategy = token\ntoken_file = {tokens}")
    browser.expect("status of 401")
    browser.open(service.url)
    browser.write("Token", "nonsense")
    browser.click(".sign-in button")
    browser.find(".problem", "The service does not accept this token.")
    assert browser.axe() == []
