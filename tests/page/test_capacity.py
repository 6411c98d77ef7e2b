# SPDX-License-Identifier: Apache-2.0
"""How many more of each flavor fit, now and in a fleet that might be. Source: page.md, view 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import emptied
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, world

#: Two racks; a flavor of four processors strands one of cn1's, and two of cn3's.
FLEET: Final = """
    cn1  VCPU=9   @A
    cn2  VCPU=12  @A
    cn3  VCPU=6   @B
"""


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service with three hosts in two racks, and a flavor."""
    with emptied(shared) as running:
        api = Client.at(running.url)
        with built_over_http(world(FLEET), api):
            for name in ("A", "B"):
                labels = {"labels": {"rack": f"r{name}"}}
                path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
                assert api.put(path, json=labels).status == 200
            flavor = {"request": {"groups": {"": {"resources": {"VCPU": 4}}}}}
            assert api.put("/berth/v1/flavors/medium", json=flavor).status == 201
            yield running


def fits(browser: Browser) -> list[list[str]]:
    """The rows of the first table."""
    return browser.table("How many more fit")


def test_hosts_are_added_and_racks_are_drained(browser: Browser, service: Service) -> None:
    """Now and then side by side, by the address too; a chip takes an assumption back.
    By label and class with what is stranded, and the largest amount that some host has."""
    browser.open(service.url, "#/capacity")
    browser.write("Add hosts like", "cn2")
    browser.write("How many", "10")
    added = ["medium", "6", "36", "+30", "3", "13"]
    browser.until(lambda: fits(browser) == [added] or None, "ten hosts more")
    browser.write("Drain a host", "rack=rA")
    drained = ["medium", "6", "1", "−5", "3", "1"]
    browser.open(service.url, "#/capacity?drain=rack%3DrA")
    browser.until(lambda: fits(browser) == [drained] or None, "a rack less")
    browser.click(".chip", "rack=rA")
    browser.until(lambda: fits(browser) == [["medium", "6", "3"]] or None, "nothing assumed")
    browser.choose("By", "rack")
    browser.until(lambda: len(fits(browser)) == 3 or None, "a row for each rack")
    assert fits(browser) == [
        ["medium", "rA", "5", "2"],
        ["medium", "rB", "1", "1"],
        ["medium", "all", "6", "3"],
    ]
    assert browser.table("What is left of each class") == [
        ["medium", "VCPU", "27", "24", "3", "12"]
    ]
    assert "by=rack" in browser.address
