# SPDX-License-Identifier: Apache-2.0
"""The frame of the page, by keyboard and on a telephone. Source: page.md, Rules."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.e2e.serving import Service
from tests.page.browser import Browser


def test_the_frame_is_used_by_keyboard(browser: Browser, demo: Service) -> None:
    """The first key skips the navigation, which works without a mouse, and so does the search;
    another view takes the focus and the title."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    assert browser.driver.title == "Fleet – berth"

    browser.press(Keys.TAB)
    assert browser.focused.text == "Skip to the content"
    browser.press(Keys.ENTER)
    assert browser.focused.tag_name == "main"
    assert browser.find("nav a[aria-current]").text == "Fleet"

    browser.open(demo.url)
    browser.find(".light", "Live")
    for _ in range(100):
        browser.press(Keys.TAB)
        if browser.focused.text == "Drains":
            break
    browser.press(Keys.ENTER)
    browser.find("h1", "Drains")
    assert browser.driver.title == "Drains – berth"
    assert browser.find("nav a[aria-current]").text == "Drains"
    assert browser.focused.tag_name == "main"

    browser.press("/", "cn042")
    browser.find(".result", "cn042")
    browser.press(Keys.ENTER)
    browser.find("h1", "cn042")
    assert browser.driver.title == "cn042 – berth"
    assert not browser.all("nav a[aria-current]")
    browser.driver.back()
    browser.find("h1", "Drains")


def test_enter_opens_what_was_typed_last(browser: Browser, demo: Service) -> None:
    """Not the first of what was found before, however fast it is typed."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    browser.press("/", *"cn02")
    browser.find(".result", "cn021")
    browser.script(
        """const input = document.querySelector(".search input");
        input.value = "cn029";
        input.dispatchEvent(new InputEvent("input"));
        input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));"""
    )
    browser.find("h1", "cn029")


def test_an_address_that_cannot_be_read_says_so(browser: Browser, demo: Service) -> None:
    """A view that breaks is no reason to leave another one under its address."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    for broken in ("#/ask?request=null", "#/ask?request=%7B"):
        browser.visit("#/service")
        browser.find("h1", "Service")
        browser.visit(broken)
        browser.absent("h1", "Service")
        browser.find("main [role=alert], main .problem, main .hint")


def test_an_address_that_is_no_view_shows_the_fleet(browser: Browser, demo: Service) -> None:
    """Also one that every object of JavaScript has."""
    browser.open(demo.url, "#/constructor")
    browser.find(".lead", "201 hosts")
    assert browser.find("nav a[aria-current]").text == "Fleet"


def test_every_view_is_as_wide_as_a_telephone(browser: Browser, demo: Service) -> None:
    """At 390 pixels nothing scrolls sideways but what says so; the header leaves room."""
    with browser.window(390, 844):
        browser.open(demo.url)
        browser.find(".light", "Live")
        assert browser.script("return document.getElementById('header').offsetHeight") < 844 / 3
        for name in [link.text for link in browser.all("nav a")]:
            browser.click("nav a", name)
            browser.until(lambda: "Reading…" not in browser.text, f"{name} was read")
            assert browser.overflow() == 0, name
