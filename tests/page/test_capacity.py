# SPDX-License-Identifier: Apache-2.0
"""How many more of each flavor fit, now and in a fleet that might be. Source: page.md, view 4."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.polls import known_to
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


def test_capacity_is_counted_by_label_and_class(browser: Browser, service: Service) -> None:
    """With what is stranded, and the largest amount that some host has."""
    browser.open(service.url, "#/capacity")
    assert fits(browser) == [["medium", "6", "3"]]
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


def test_hosts_are_added_and_racks_are_drained(browser: Browser, service: Service) -> None:
    """Now and then side by side, by the address too; a chip takes an assumption back."""
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


def test_what_does_not_exist_is_named(browser: Browser, service: Service) -> None:
    """A label that no host has, and a host that there is not; all else is assumed."""
    browser.open(service.url, "#/capacity?drain=rack%3Dnope,cn3,nobody")
    browser.find(".warnings", "No host has rack=nope.")
    browser.find(".warnings", "There is no provider nobody.")
    assert fits(browser) == [["medium", "6", "5", "−1", "3", "2"]]


def test_a_busy_fleet_makes_few_questions(browser: Browser, service: Service) -> None:
    """At most one in a second, since the service counts all flavors for each; but every change is
    counted."""
    api = Client.at(service.url)
    (host,) = api.get("/resource_providers?name=cn3").json["resource_providers"]
    traits = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE")
    began = time.monotonic()
    browser.open(service.url, "#/capacity")
    assert fits(browser)
    for trait in traits * 2:
        generation = api.get(f"/resource_providers/{host['uuid']}").json["generation"]
        body = {"traits": [trait], "resource_provider_generation": generation}
        with known_to(browser):
            answer = api.put(f"/resource_providers/{host['uuid']}/traits", json=body)
            assert answer.status == 200
    drain = {"providers": ["cn3"]}
    assert api.put("/berth/v1/drains/fans", json=drain).status == 201
    browser.until(lambda: fits(browser) == [["medium", "5", "2"]] or None, "it was counted again")
    assert api.delete("/berth/v1/drains/fans").status == 204
    seconds = time.monotonic() - began
    asked = [sent for sent in browser.requests() if sent.url.endswith("/berth/v1/capacity")]
    assert len(asked) <= 2 + seconds
