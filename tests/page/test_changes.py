# SPDX-License-Identifier: Apache-2.0
"""Drains, leases and flavors on the page, each with its preview. Source: page.md, views 4 and 5."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.api.claims import consumer
from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import emptied
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, provider_uuid, world

FLEET = """
    cn1  VCPU=16 MEMORY_MB=1024  @A
    cn2  VCPU=16 MEMORY_MB=1024  @A
    cn3  VCPU=8 MEMORY_MB=1024  @B
"""


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service with three hosts."""
    with (
        emptied(shared) as running,
        built_over_http(world(FLEET), Client.at(running.url)),
    ):
        yield running


@pytest.fixture
def own(service: Service) -> Client:
    """A client of it."""
    return Client.at(service.url)


def flavor(api: Client, name: str, cpus: int) -> None:
    """Store a flavor."""
    body = {"request": {"groups": {"": {"resources": {"VCPU": cpus}}}}}
    assert api.put(f"/berth/v1/flavors/{name}", json=body).status in (200, 201)


def claimed(api: Client, host: str, user: str) -> str:
    """A consumer with a processor of a host."""
    return consumer(api, {provider_uuid(host): {"VCPU": 1}}, project="web", user=user)


def value(browser: Browser, label: str) -> str:
    """What a field contains."""
    return browser.labelled(label).get_attribute("value") or ""


def confirm(browser: Browser) -> None:
    """Do what the preview shows, once it is there."""
    browser.click("dialog button.primary:enabled")
    browser.absent("dialog")


def test_a_drain_says_what_it_would_do_before_it_does(
    browser: Browser, service: Service, own: Client
) -> None:
    """Cancelled, it did nothing; confirmed, it is there; ended, it is gone."""
    flavor(own, "small", 4)
    browser.open(service.url, "#/drains")
    browser.find("p", "Nothing is drained.")
    browser.write("Name", "fans")
    browser.write("Hosts and devices", "cn1, cn3")
    browser.write("Reason", "new fans")
    browser.click("form button", "Drain…")
    browser.find("dialog", "2 hosts with 2 providers would get nothing new")
    assert ["small", "10", "4", "−6"] in browser.table("How many more fit")
    browser.click("dialog button", "Cancel")
    assert own.get("/berth/v1/drains").json["drains"] == []
    browser.click("form button", "Drain…")
    confirm(browser)
    browser.find("tbody", "fans")
    (drain,) = own.get("/berth/v1/drains").json["drains"]
    assert (drain["name"], drain["reason"], drain["hosts"]) == ("fans", "new fans", 2)
    browser.visit("#/fleet")
    browser.find(".lead", "2 drained")
    browser.visit("#/drains")
    browser.click("tbody button", "End…")
    browser.find("dialog", "can get something again")
    confirm(browser)
    browser.find("p", "Nothing is drained.")
    assert own.get("/berth/v1/drains").json["drains"] == []


def test_a_drain_is_opened_and_replaced(browser: Browser, service: Service, own: Client) -> None:
    """Its form has what it names; what is typed there outlives the changes of the fleet; the
    preview says what is replaced."""
    drain = {"providers": ["cn1"], "reason": "new fans"}
    assert own.put("/berth/v1/drains/fans", json=drain).status == 201
    browser.open(service.url, "#/drains")
    browser.click("tbody a", "fans")
    browser.find("h1", "Drain fans")
    assert browser.table("Consumers left on each host") == [["cn1", "0"]]
    assert value(browser, "Hosts and devices") == "cn1"
    assert value(browser, "Reason") == "new fans"
    browser.write("Hosts and devices", "cn2, cn3")
    reason = browser.labelled("Reason")
    reason.send_keys(" and")
    uuid = claimed(own, "cn1", "alice")
    browser.until(
        lambda: browser.table("Consumers left on each host") == [["cn1", "1"]] or None,
        "the claim is shown",
    )
    assert browser.focused == reason
    reason.send_keys(" filters")
    browser.click("form button", "Drain…")
    browser.find("dialog", "2 hosts with 2 providers would get nothing new")
    browser.find("dialog", "It replaces the drain fans")
    confirm(browser)
    browser.find("dd", "new fans and filters")
    browser.until(
        lambda: value(browser, "Hosts and devices") == "cn2, cn3" or None,
        "the form has what is new",
    )
    (left,) = own.get("/berth/v1/drains").json["drains"]
    assert (left["reason"], left["hosts"]) == ("new fans and filters", 2)
    # The change may be told before the page has left the drain, which it then reads once more.
    browser.expect("drains/fans.* 404")
    browser.click("button", "End…")
    confirm(browser)
    browser.find("p", "Nothing is drained.")
    assert own.delete(f"/allocations/{uuid}").status == 204


def test_what_another_made_since_the_preview_is_not_replaced(
    browser: Browser, service: Service, own: Client
) -> None:
    """The preview showed nothing to replace."""
    browser.open(service.url, "#/drains")
    browser.write("Name", "fans")
    browser.write("Hosts and devices", "cn1")
    browser.click("form button", "Drain…")
    browser.find("dialog", "1 host with 1 provider would get nothing new")
    assert own.put("/berth/v1/drains/fans", json={"providers": ["cn2"]}).status == 201
    browser.expect("drains/fans.* 412")
    browser.find("dialog button.primary").click()
    browser.find("dialog", "There is a drain fans already.")
    assert own.get("/berth/v1/drains/fans").json["named"][0]["name"] == "cn2"
    assert own.delete("/berth/v1/drains/fans").status == 204


def test_an_aggregate_is_labelled(browser: Browser, service: Service, own: Client) -> None:
    """Edited from its row; a value may have a comma; the preview says before and after."""
    uuid = aggregate_uuid("A")
    labels = {"labels": {"rack": "r1, left", "zone": "z1"}}
    assert own.put(f"/berth/v1/aggregates/{uuid}", json=labels).status == 200
    browser.open(service.url, "#/labels")
    browser.click("tbody button", "Edit")
    assert value(browser, "Aggregate") == uuid
    assert value(browser, "Labels") == "rack=r1, left\nzone=z1"
    browser.write("Labels", "rack=r1, left\nzone=z2")
    browser.click("form button", "Save…")
    browser.find("dialog dd", "rack=r1, left, zone=z2")
    browser.find("dialog dd", "2 hosts")
    confirm(browser)
    browser.find("tbody", "zone=z2")
    stored = own.get(f"/berth/v1/aggregates/{uuid}").json["labels"]
    assert stored == {"rack": "r1, left", "zone": "z2"}
    browser.visit("#/fleet?by=zone")
    browser.find("thead", "z2")
    browser.visit("#/labels")
    browser.write("Aggregate", uuid)
    browser.write("Labels", "nonsense")
    browser.click("form button", "Save…")
    browser.find("dialog .problem", "nonsense is not a label")
    browser.click("dialog button", "Cancel")


def test_a_flavor_is_stored_and_counted(browser: Browser, service: Service, own: Client) -> None:
    """With its preview."""
    for each in own.get("/berth/v1/flavors").json["flavors"]:
        own.delete(f"/berth/v1/flavors/{each['name']}")
    browser.open(service.url, "#/flavors")
    browser.find("p", "There are no flavors yet.")
    browser.write("Name", "big")
    browser.write("Request, as JSON", '{"groups": {"": {"resources": {"VCPU": 8}}}}')
    browser.click("form button", "Save")
    browser.find("dialog")
    confirm(browser)
    browser.find("tbody", "big")
    assert [each["name"] for each in own.get("/berth/v1/flavors").json["flavors"]] == ["big"]


def test_a_lease_is_given_renewed_and_ended(
    browser: Browser, service: Service, own: Client
) -> None:
    """To a consumer that holds something."""
    uuid = claimed(own, "cn2", "alice")
    browser.open(service.url, f"#/leases?consumer={uuid}")
    browser.find("h1", "Leases")
    browser.click("form button")
    browser.find("dialog", "It has no lease now. In 60 min it would lose")
    confirm(browser)
    browser.find("tbody", uuid)
    browser.find("tbody time")
    assert uuid in own.get("/berth/v1/leases").text
    browser.click("tbody button", "Renew")
    assert value(browser, "Consumer") == uuid
    browser.write("Minutes from now", "300")
    browser.click("form button")
    browser.find("dialog", "Its lease would end in 300 min instead of at")
    confirm(browser)
    browser.find("tbody", " h ")
    browser.click("tbody button", "End…")
    confirm(browser)
    browser.until(
        lambda: uuid not in own.get("/berth/v1/leases").text or None, "the lease has ended"
    )
    own.delete(f"/allocations/{uuid}")


def test_a_change_is_made_by_the_keyboard(browser: Browser, service: Service, own: Client) -> None:
    """Enter sends the form; the preview has the focus on what confirms it; Escape cancels it."""
    browser.open(service.url, "#/drains?name=fans&providers=cn1")
    browser.labelled("Reason").send_keys("fans", Keys.ENTER)
    browser.find("dialog", "1 host with 1 provider would get nothing new")
    browser.find("dialog button.primary:focus")
    browser.press(Keys.ESCAPE)
    browser.absent("dialog")
    assert own.get("/berth/v1/drains").json["drains"] == []
    assert browser.focused == browser.labelled("Reason")
    browser.press(Keys.ENTER)
    browser.find("dialog button.primary:focus")
    browser.press(Keys.ENTER)
    browser.find("tbody", "fans")
    assert own.delete("/berth/v1/drains/fans").status == 204
