# SPDX-License-Identifier: Apache-2.0
"""The answer of Ask is to the request that was asked, and its numbers are the API's. Source:
page.md, view 3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from tests.candidates.strategies import Dice, fleet, request
from tests.client import Client
from tests.e2e.serving import Service
from tests.effort import SEED
from tests.page.browser import Browser
from tests.page.services import create_hosts, emptied
from tests.world_over_http import built_over_http
from tests.worlds import world

CHANGED: Final = "The request has changed: ask again."

#: Two hosts of the same size: what one has on one node, the other has on two.
NODES: Final = """
    cn1      DISK_GB=10
      cn1_0  VCPU=4 MEMORY_MB=8
      cn1_1  VCPU=4 MEMORY_MB=8
    cn2      VCPU=4 MEMORY_MB=8 DISK_GB=10
"""


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service without hosts."""
    with emptied(shared) as running:
        yield running


@pytest.fixture
def own(service: Service) -> Client:
    """A client of it."""
    return Client.at(service.url)


def in_address(wanted: Mapping[str, Any]) -> str:
    """The address of a request."""
    return f"#/ask?request={quote(json.dumps(wanted))}"


def asking(cpus: int) -> Mapping[str, Any]:
    """A request for some processors."""
    return {"groups": {"": {"resources": {"VCPU": cpus}}}}


def amount(browser: Browser, cpus: int) -> None:
    """Write another amount into the form."""
    field = browser.find("[data-at='/groups//resources/0/amount']")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(str(cpus), Keys.TAB)


def test_an_answer_to_another_request_says_so(
    browser: Browser, service: Service, own: Client
) -> None:
    """While the form has another request: in words, greyed, and neither the address nor a change of
    the fleet asks it."""
    with built_over_http(world("cn1 VCPU=8"), own):
        browser.open(service.url, in_address(asking(7)))
        browser.find(".verdict", "1 host fits")
        amount(browser, 9)
        browser.find("pre", "berth why VCPU=9")
        browser.find("[role=status]", CHANGED)
        assert browser.find(".stale .verdict").text == "1 host fits."
        create_hosts(own, "more")
        browser.find(".verdict", "2 hosts fit")
        assert json.dumps(asking(7), separators=(",", ":")) in browser.script(
            "return decodeURIComponent(location.hash)"
        )
        browser.find("[role=status]", CHANGED)
        browser.click("button.primary", "Ask")
        browser.find(".verdict.fails", "No host")
        browser.absent("[role=status]", CHANGED)
        amount(browser, 8)
        browser.find("[role=status]", CHANGED)
        amount(browser, 9)
        browser.absent("[role=status]", CHANGED)
        assert browser.all(".stale") == []
    (more,) = own.get("/resource_providers?name=more").json["resource_providers"]
    assert own.delete(f"/resource_providers/{more['uuid']}").status == 204


def test_an_amount_that_several_providers_have_is_a_button(
    browser: Browser, service: Service, own: Client
) -> None:
    """Of the group without a name, and of one with a name, which becomes several groups."""
    amounts = {"VCPU": 6, "MEMORY_MB": 12}
    with built_over_http(world(NODES), own):
        for wanted in (
            {"groups": {"": {"resources": amounts}}},
            {
                "groups": {"_A": {"resources": amounts}, "": {"resources": {"DISK_GB": 10}}},
                "together": [{"groups": ["_A", ""], "at": "tree"}],
            },
        ):
            browser.open(service.url, in_address(wanted))
            browser.find(".verdict.fails")
            browser.click(".help button", "with amounts from several providers: 1 host")
            browser.find(".verdict.fits", "1 host fits")
            ((host, gives),) = browser.table("Candidates")
            assert host == "cn1"
            assert gives.count("VCPU") == gives.count("MEMORY_MB") == 2
            browser.absent("p", "These are the first")


@pytest.mark.parametrize("number", range(2))
def test_the_legend_counts_what_the_api_counts(
    browser: Browser, service: Service, own: Client, number: int
) -> None:
    """Of random requests to a random fleet: the hosts of each colour, in the order of the
    constraints."""
    seed = SEED + number
    dice = Dice(seed)
    drawn = fleet(dice)
    with built_over_http(drawn, own):
        browser.open(service.url)
        browser.find(".light", "Live")
        for _ in range(5):
            wanted = request(dice, drawn)
            browser.visit(in_address(wanted))
            wait_for_answer(browser, wanted)
            # As the page writes it: in a JavaScript object, a group "1" is the first.
            body = {"request": written(browser), "paint": True}
            answer = own.post("/berth/v1/explain", json=body)
            assert answer.status == 200, (wanted, answer.text)
            shown = [int(row[1]) for row in browser.table("Hosts by colour")]
            assert shown == counted(answer.json), (seed, wanted)


def wait_for_answer(browser: Browser, wanted: Any) -> None:
    """Wait until a request is in the form, and answered."""
    browser.until(lambda: written(browser) == wanted or None, f"{wanted} in the form")
    browser.find(".asking .hint", "As of")


def written(browser: Browser) -> Any:
    """The request that the form has."""
    return json.loads(browser.find("[data-at=json]").get_attribute("value") or "null")


def counted(explained: Mapping[str, Any]) -> list[int]:
    """The hosts that fit, and those that fail each constraint first; without zeros."""
    lefts = [explained["hosts"]["total"], *(stage["left"] for stage in explained["stages"])]
    failing = [before - after for before, after in pairwise(lefts)]
    return [count for count in (explained["hosts"]["fit"], *failing) if count]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("null", "This JSON is not a request"),
        ("3", "This JSON is not a request"),
        ('{"groups": {', "This is not JSON"),
        ("{}", "it has none of groups"),
    ],
)
def test_an_address_without_a_request_says_so(
    browser: Browser, service: Service, sent: str, said: str
) -> None:
    """And the form is there to write one."""
    browser.open(service.url, f"#/ask?request={quote(sent)}")
    browser.find("#unread", said)
    browser.click("button.primary", "Ask")
    browser.find(".verdict", "The fleet has no hosts yet.")
