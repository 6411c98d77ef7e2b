# SPDX-License-Identifier: Apache-2.0
"""Drains, leases and flavors on the page, each with its preview. Source: page.md, views 4 and 5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.polls import known_to
from tests.page.services import emptied
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, world

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
    uuid = str(uuid4())
    (found,) = api.get(f"/resource_providers?name={host}").json["resource_providers"]
    body = {
        "allocations": {found["uuid"]: {"resources": {"VCPU": 1}}},
        "project_id": "web",
        "user_id": user,
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{uuid}", json=body).status == 204
    return uuid


def value(browser: Browser, label: str) -> str:
    """What a field contains."""
    return browser.labelled(label).get_attribute("value") or ""


def rows(browser: Browser) -> list[str]:
    """The rows that a list shows."""
    return [row.text for row in browser.all("tbody tr") if row.is_displayed()]


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
    browser: Browser, services: ExitStack, service: Service, own: Client
) -> None:
    """The preview showed nothing to replace."""
    services.callback(own.delete, "/berth/v1/drains/fans")
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


def test_a_drain_cannot_have_any_name(browser: Browser, service: Service) -> None:
    """The form says so, and asks the service nothing."""
    browser.open(service.url, "#/drains")
    browser.write("Hosts and devices", "cn1")
    for name in ("x y/z", "..", ""):
        browser.write("Name", name)
        browser.click("form button", "Drain…")
        field = browser.labelled("Name")
        assert browser.script("return arguments[0].checkValidity()", field) is False, name
        assert browser.all("dialog") == []


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


@pytest.mark.parametrize("view", ["flavors", "labels", "leases"])
def test_a_list_is_narrowed_by_its_address(
    browser: Browser, service: Service, own: Client, view: str
) -> None:
    """Also after it was read again."""
    flavor(own, "tiny", 1)
    flavor(own, "huge", 8)
    for name in ("A", "B"):
        labels = {"labels": {"rack": f"r{name}"}}
        assert own.put(f"/berth/v1/aggregates/{aggregate_uuid(name)}", json=labels).status == 200
    uuids = [claimed(own, "cn2", user) for user in ("alice", "bob")]
    for uuid in uuids:
        assert own.put(f"/berth/v1/leases/{uuid}", json={"seconds": 600}).status in (200, 201)
    text = {"flavors": "tiny", "labels": aggregate_uuid("A"), "leases": "alice"}[view]
    browser.open(service.url, f"#/{view}?filter={text}")
    browser.until(lambda: len(rows(browser)) == 1 or None, "one row is left")
    assert text in rows(browser)[0]
    if view == "leases":
        browser.click("tbody button", "End…")
        confirm(browser)
        browser.until(lambda: rows(browser) == [] or None, "it was read again")
    for uuid in uuids:
        own.delete(f"/allocations/{uuid}")
    for name in ("tiny", "huge"):
        own.delete(f"/berth/v1/flavors/{name}")


def test_a_flavor_is_stored_and_counted(browser: Browser, service: Service, own: Client) -> None:
    """Its capacity is what the API says, now and with a host drained."""
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
    browser.visit("#/capacity")
    browser.find("tbody", "big")
    assert browser.table("How many more fit") == [["big", "5", "3"]]
    browser.write("Drain a host", "cn1")
    browser.until(
        lambda: browser.table("How many more fit") == [["big", "5", "3", "−2", "3", "2"]] or None,
        "now and then",
    )
    assert "drain=cn1" in browser.address
    assert own.get("/berth/v1/drains").json["drains"] == [], "it is only assumed"


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


def test_what_is_open_outlives_a_change(
    browser: Browser, services: ExitStack, service: Service, own: Client
) -> None:
    """On a host: the focus, and the JSON, which shows the change. A consumer is read again only for
    a change of its own hosts."""

    def claimed_until_the_end(host: str, user: str) -> str:
        uuid = claimed(own, host, user)
        services.callback(own.delete, f"/allocations/{uuid}")
        return uuid

    first = claimed_until_the_end("cn1", "alice")
    browser.open(service.url, "#/hosts/cn1")
    browser.click("details summary", "JSON")
    link = browser.find("tbody a", first)
    browser.script("arguments[0].focus()", link)
    browser.find("tbody a", claimed_until_the_end("cn1", "bob"))
    browser.find("details[open] pre", '"VCPU": 2')
    assert browser.focused == link
    browser.visit(f"#/consumers/{first}")
    assert browser.table("What it holds") == [["cn1", "cn1", "VCPU 1"]]
    with known_to(browser):
        claimed_until_the_end("cn3", "carol")
    read = [sent.url for sent in browser.requests() if sent.url.endswith(f"/consumers/{first}")]
    assert len(read) == 1
    with known_to(browser):
        claimed_until_the_end("cn1", "dave")
    browser.until(
        lambda: (
            sum(sent.url.endswith(f"/consumers/{first}") for sent in browser.requests()) == 2
            or None
        ),
        "it is read again",
    )


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
