# SPDX-License-Identifier: Apache-2.0
"""The tour of docs/how-to/page.md: its pictures are screenshots of the demo fleet.

`make screenshots` takes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser

DOCS: Final = Path(__file__).parents[2] / "docs"
PICTURES: Final = DOCS / "images" / "page"

#: Why no host has it: see the first example of the README.
REQUEST: Final = {
    "groups": {
        "_CPU": {"resources": {"VCPU": 32}},
        "_GPU": {"resources": {"VGPU": 4}, "required": ["CUSTOM_A100"]},
    },
    "together": [{"groups": ["_CPU", "_GPU"], "at": "HW_NUMA_ROOT"}],
    "host": {"member_of": ["zone=z1"]},
}

Look = Callable[[str], None]


@pytest.fixture
def look(browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> Look:
    """Takes a picture of what the browser shows."""
    folder = PICTURES if pytestconfig.getoption("--write-golden") else tmp_path

    def taken(name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        browser.screenshot(folder / f"{name}.png")

    return taken


def test_the_tour(browser: Browser, demo: Service, api: Client, look: Look) -> None:
    """Each view that the page of the documentation shows."""
    browser.open(demo.url, "#/fleet?by=zone")
    browser.find(".light", "Live")
    look("fleet")
    browser.visit(f"#/ask?request={quote(json.dumps(REQUEST))}")
    browser.find(".verdict", "No host fits now")
    look("ask")
    (host,) = api.get("/resource_providers?name=cn020").json["resource_providers"]
    browser.visit(f"#/hosts/{host['uuid']}")
    browser.find("h1", "cn020")
    look("host")
    for name, cpus in (("m1.large", 4), ("m1.xlarge", 8)):
        body = {"request": {"groups": {"": {"resources": {"VCPU": cpus, "MEMORY_MB": 8192}}}}}
        assert api.put(f"/berth/v1/flavors/{name}", json=body).status == 201
    browser.visit("#/drains")
    browser.write("Name", "firmware-4.2")
    browser.write("Hosts and devices", "cn010, cn011, cn012")
    browser.write("Reason", "firmware 4.2")
    browser.click("form button", "Drain…")
    browser.find("dialog button.primary:enabled")
    look("drain")
    browser.click("dialog button", "Cancel")
    for name in ("m1.large", "m1.xlarge"):
        api.delete(f"/berth/v1/flavors/{name}")


def test_the_page_shows_every_picture() -> None:
    """And each that it shows is there."""
    said = (DOCS / "how-to" / "page.md").read_text()
    there = {path.name for path in PICTURES.iterdir()}
    assert there
    assert {name for name in there if f"../images/page/{name}" in said} == there
