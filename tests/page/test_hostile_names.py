# SPDX-License-Identifier: Apache-2.0
"""A fleet whose names are markup, scripts, right-to-left text, and very long. Source: page.md.

Nothing runs, and nothing breaks the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import emptied

#: Each would show itself if it were read as markup, in an attribute, an address or a script.
NAMES: Final = (
    "<script>window.isBroken = true</script>",
    '<img src=x onerror="window.isBroken = true">',
    "'\"><svg onload=window.isBroken=true>",
    "javascript:window.isBroken=true",
    "{{constructor.constructor('window.isBroken=true')()}}",
    "\u202eright to left\u202c עברית العربية",
    "🦄" * 50,
    "x" * 200,
    "__proto__",
    "100 % of & = ? # / \\",
)
VIEWS: Final = ("fleet", "ask", "capacity", "drains", "leases", "flavors", "labels", "service")


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service with a host of each name, in aggregates with such labels, drained for such
    reasons, and with such projects and users."""
    with emptied(shared) as running:
        api = Client.at(running.url)
        for number, name in enumerate(NAMES):
            aggregate, consumer = str(uuid4()), str(uuid4())
            host = {
                "name": name,
                "inventories": {"VCPU": {"total": 4}},
                "aggregates": [aggregate],
                "uuid": str(uuid4()),
            }
            # OpenStack Placement's routes take every name, berth's own some fewer characters.
            made = api.post("/resource_providers", json={"name": name, "uuid": host["uuid"]})
            assert made.status == 200
            sent = {"providers": [host]}
            assert api.put(f"/berth/v1/trees/{host['uuid']}", json=sent).status == 200
            labels = {"labels": {"zone": name}}
            assert api.put(f"/berth/v1/aggregates/{aggregate}", json=labels).status in (200, 400)
            drain = {"providers": [host["uuid"]], "reason": name, "effect": "none"}
            assert api.put(f"/berth/v1/drains/drain-{number}", json=drain).status in (201, 400)
            body = {
                "allocations": {host["uuid"]: {"resources": {"VCPU": 1}}},
                "project_id": name,
                "user_id": name,
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            assert api.put(f"/allocations/{consumer}", json=body).status == 204
            flavor = {
                "request": {"groups": {"": {"resources": {"VCPU": 1}}}},
                "description": name,
            }
            assert api.put(f"/berth/v1/flavors/flavor-{number}", json=flavor).status in (201, 400)
        yield running


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.thorough)])
def test_no_name_runs_or_breaks_anything(browser: Browser, service: Service, width: int) -> None:
    """In every view, in the search, under the pointer, and on the page of each host."""
    with browser.window(width, 844):
        browser.open(service.url)
        browser.find(".light", "Live")
        views = [f"#/{view}" for view in VIEWS]
        hosts = Client.at(service.url).get("/resource_providers").json["resource_providers"]
        views += [f"#/hosts/{host['uuid']}" for host in hosts]
        for view in views:
            browser.visit(view)
            browser.until(lambda: "Reading…" not in browser.text or None, f"{view} was read")
            assert browser.overflow() == 0, view
        browser.visit("#/fleet?by=")
        browser.find(".light", "Live")
        assert set(browser.drawn_tiles()) == set(NAMES)
        browser.press("/", *"script")
        browser.find(".result", NAMES[0])
        assert browser.script("return window.isBroken === undefined")
        assert (
            browser.script("return document.querySelectorAll('main script, main img').length") == 0
        )


def test_a_host_with_such_a_name_is_shown_by_it(browser: Browser, service: Service) -> None:
    """The name stands there as it is."""
    for name in NAMES[:3]:
        (host,) = (
            each
            for each in Client.at(service.url).get("/resource_providers").json["resource_providers"]
            if each["name"] == name
        )
        browser.open(service.url, f"#/hosts/{host['uuid']}")
        assert browser.find("h1").text == name
        assert browser.table("Who holds what")[0][2] == name
