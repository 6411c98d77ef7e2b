# SPDX-License-Identifier: Apache-2.0
"""A host and its consumers, and the search. Source: page.md, view 2."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser


def lines(api: Client, host: str) -> list[dict[str, object]]:
    """The providers of a host, with what is used."""
    answer = api.get(f"/berth/v1/trees/{host}?include=inventories,usages,traits")
    listed: list[dict[str, object]] = answer.json["providers"]
    return listed


def test_a_host_is_found_by_the_keyboard_and_shows_what_the_api_has(
    browser: Browser, demo: Service, api: Client
) -> None:
    """Its tree, a bar for each class with numbers, its traits, and who holds what."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    browser.press("/", *"cn020")
    browser.find(".result", "cn020")
    browser.press(Keys.ENTER)
    browser.find("h1", "cn020")
    shown = [element.text for element in browser.all(".provider")]
    providers = lines(api, "cn020")
    names = [text.split(maxsplit=1)[0] for text in shown]
    assert names == [each["name"] for each in providers]
    for text, provider in zip(shown, providers, strict=True):
        used = provider["usages"]
        assert isinstance(used, dict)
        for name, amount in used.items():
            assert re.search(rf"{name}\s+(\S+ reserved, )?{amount:,} used", text), text
        traits = provider["traits"]
        assert isinstance(traits, list)
        assert all(trait in text for trait in traits)
    rows = browser.table("Who holds what")
    assert len(rows) == 7, "as the first example of the README says"
    browser.find("tbody a", rows[0][0].split()[0]).click()
    browser.find("h1", "Consumer")
    assert any("cn020" in cell for row in browser.table("What it holds") for cell in row)


def test_from_a_host_to_the_question_and_to_a_drain(
    browser: Browser, demo: Service, api: Client
) -> None:
    """Each with the host in it."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    browser.press("/", *"cn021", Keys.ENTER)
    browser.find("h1", "cn021")
    browser.click("a", "Drain this host")
    browser.find("h1", "Drains")
    assert "cn021" in (browser.labelled("Hosts and devices").get_attribute("value") or "")
    browser.driver.back()
    browser.click("a", "Ask with this host")
    (host,) = api.get("/resource_providers?name=cn021").json["resource_providers"]
    browser.find("pre", f"--host-in {host['uuid']}")


def test_a_trait_of_a_device_is_found_on_its_hosts(browser: Browser, demo: Service) -> None:
    """Not only on providers that have processors."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    browser.press("/", *"custom_a100")
    browser.find(".result", "CUSTOM_A100")
    browser.press(Keys.ENTER)
    browser.find(".verdict.fits")


def test_the_search_asks_for_the_consumers_that_it_shows(
    browser: Browser, demo: Service, api: Client
) -> None:
    """By the beginning of a UUID, and not for all that there are; what is typed on the way is not
    asked for."""
    line = json.loads(api.get("/berth/v1/consumers?limit=1").text.splitlines()[0])
    shown = f"{line['project_id']}/{line['name']}" if line["name"] else line["uuid"]
    browser.open(demo.url, "#/service")
    browser.find(".light", "Live")
    browser.press("/")
    browser.focused.send_keys(line["uuid"][:23])
    browser.find(".result", shown)
    asked = {sent.url for sent in browser.requests() if "/berth/v1/consumers" in sent.url}
    query = {"search": line["uuid"][:23], "limit": "50"}
    assert asked == {f"{demo.url}/berth/v1/consumers?{urlencode(query)}"}


def test_the_search_finds_everything_that_has_a_name(browser: Browser, demo: Service) -> None:
    """Providers, traits and labels beside hosts; Escape closes it."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    for part, found in (
        ("cn020_gpu1", "cn020_gpu1"),
        ("avx512f", "HW_CPU_X86_AVX512F"),
        ("rack=r0", "rack=r0"),
    ):
        browser.press("/", *part)
        browser.find(".result", found)
        browser.press(Keys.ESCAPE, Keys.ESCAPE)
        browser.absent(".result")
        browser.script("document.activeElement.blur()")
