# SPDX-License-Identifier: Apache-2.0
"""Ask on a fleet that changes while the service still thinks, and what its colours, its pointer and
its help say. Source: page.md, view 3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from tests.api.claims import consumer
from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.polls import known_to
from tests.page.services import create_hosts, emptied
from tests.page.vision import contrast, difference, hue, luminance
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

#: Two hosts of the same size: what one has on one node, the other has on two. The third is full.
FLEET: Final = """
    cn1      DISK_GB=10
      cn1_0  VCPU=4 MEMORY_MB=8
      cn1_1  VCPU=4 MEMORY_MB=8
    cn2      VCPU=8 MEMORY_MB=8 DISK_GB=10 @A
    cn3      VCPU=2 MEMORY_MB=8 CUSTOM_GPU=1(used:1)
"""


#: What the page says while the form has another request than the answer.
CHANGED: Final = "The request has changed: ask again."


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


def in_address(wanted: Mapping[str, Any]) -> str:
    """The address of a request."""
    return f"#/ask?request={quote(json.dumps(wanted))}"


def asking(**resources: int) -> dict[str, Any]:
    """A request for some amounts."""
    return {"groups": {"": {"resources": resources}}}


def asked(browser: Browser, times: int) -> list[dict[str, Any]]:
    """The questions so far, once there are so many."""

    def enough() -> list[dict[str, Any]] | None:
        questions: list[dict[str, Any]] = browser.script("return window.asked")
        return questions if len(questions) >= times else None

    return browser.until(enough, f"{times} questions")


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
    browser.open(service.url, in_address(asking(VCPU=7)))
    browser.find(".verdict", "1 host fits")
    amount(browser, 9)
    browser.find("pre", "berth why VCPU=9")
    browser.find("[role=status]", CHANGED)
    assert browser.find(".stale .verdict").text == "1 host fits."
    create_hosts(own, "more")
    browser.find(".verdict", "2 hosts fit")
    assert json.dumps(asking(VCPU=7), separators=(",", ":")) in browser.script(
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
    browser: Browser, service: Service
) -> None:
    """Of the group without a name, and of one with a name, which becomes several groups."""
    amounts = {"VCPU": 6, "MEMORY_MB": 12}
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


def test_changes_during_a_question_ask_once_more_after_it(
    browser: Browser, service: Service
) -> None:
    """After a rest of ten times what it took; a person's question replaces the pending one at once.
    With a clock that the test sets."""
    browser.open(service.url, "#/service")
    browser.find(".light", "Live")
    noted = browser.script(
        """const { follower } = await import("./parts.js");
        const [now, later] = [Date.now, window.setTimeout];
        let [clock, timers] = [1_000_000, []];
        Date.now = () => clock;
        window.setTimeout = (act, wait) => timers.push({ act, at: clock + wait });
        const pass = (wait) => {
            clock += wait;
            const due = timers.filter(({ at }) => at <= clock);
            timers = timers.filter(({ at }) => at > clock);
            due.forEach(({ act }) => act());
        };
        const settled = () => new Promise((resolve) => later(resolve));
        const signals = [];
        const answers = [];
        const { ask, changed } = follower((signal) => {
            signals.push(signal);
            return new Promise((resolve) => answers.push(resolve));
        });
        const noted = [];
        const note = () =>
            noted.push([signals.length, signals.filter(({ aborted }) => aborted).length]);
        ask();
        changed(); changed(); pass(300); changed();
        note();
        answers[0](); await settled(); pass(2_999);
        note();
        pass(1);
        note();
        ask();
        note();
        answers[1](); answers[2](); await settled(); pass(60_000);
        note();
        [Date.now, window.setTimeout] = [now, later];
        return noted;"""
    )
    assert noted == [[1, 0], [1, 0], [2, 0], [3, 1], [3, 1]]


def test_more_time_is_taken_until_something_else_is_asked(
    browser: Browser, service: Service, own: Client
) -> None:
    """Its answer is shown, and those that follow take as long."""
    browser.open(service.url, "#/service")
    browser.find(".light", "Live")
    browser.script(
        """const send = window.fetch;
        window.asked = [];
        window.fetch = async (url, init) => {
            const answer = await send(url, init);
            if (!init.body?.includes('"paint"')) return answer;
            const asked = JSON.parse(init.body);
            window.asked.push(asked);
            const sent = await answer.json();
            return new Response(JSON.stringify({ ...sent, complete: asked.seconds !== undefined }));
        };"""
    )
    browser.visit(in_address(asking(VCPU=8)))
    browser.click("button", "Take more time")
    asked(browser, 2)
    browser.find(".verdict.fits", "1 host fits")
    browser.absent(".stale")
    browser.absent("button", "Take more time")
    with known_to(browser):
        uuid = consumer(own, {provider_uuid("cn2"): {"VCPU": 1}})
    browser.find(".verdict.fails", "No host fits now")
    assert [question.get("seconds") for question in asked(browser, 3)[:3]] == [None, 30, 30]
    browser.absent("button", "Take more time")
    assert own.delete(f"/allocations/{uuid}").status == 204


def test_only_what_was_checked_would_fit(browser: Browser, service: Service) -> None:
    """A name that is like an unknown one is no promise: nothing of it is free. Without the unknown
    name, the service has counted what fits."""
    browser.open(service.url, in_address(asking(CUSTOM_GPUS=1)))
    browser.find(".verdict.fails")
    titles = {
        title.text: title.find_element("xpath", "following-sibling::ul").text
        for title in browser.all("[aria-label='What would help'] h2")
    }
    assert "CUSTOM_GPU instead of CUSTOM_GPUS" in titles["Did you mean"]
    assert "CUSTOM_GPU instead" not in titles.get("It would fit", "")
    browser.visit(in_address(asking(VCPU=1, CUSTOM_GPUS=1)))
    browser.click(".help button", "without CUSTOM_GPUS: 3 hosts")
    browser.find(".verdict.fits", "3 hosts fit")


def test_a_host_that_the_request_names_says_who_uses_it(browser: Browser, service: Service) -> None:
    """With a link to each of those who hold what it lacks."""
    wanted = {**asking(CUSTOM_GPU=1), "host": {"in": ["cn3"]}}
    browser.open(service.url, in_address(wanted))
    browser.find(".verdict.fails")
    host, lacks = browser.table("Nearest hosts")[0]
    assert host == "cn3"
    assert lacks.startswith("lacks 1 CUSTOM_GPU (0 free of 1)\nUsed by ")
    browser.click("[aria-label='Nearest hosts'] td a")
    browser.find("h1", "Consumer")
    assert browser.table("What it holds")[0][0] == "cn3"


def test_the_pointer_says_why_a_host_does_not_fit(browser: Browser, service: Service) -> None:
    """First, and with what one provider has free: a sum over the nodes would contradict it."""
    browser.open(service.url, in_address(asking(VCPU=6)))
    browser.find(".verdict.fits")
    tips = {
        name: browser.script(
            """const canvas = document.querySelector("canvas.map");
            const { left, top } = canvas.getBoundingClientRect();
            const [x, y] = arguments[0];
            const point = { clientX: left + x, clientY: top + y };
            canvas.dispatchEvent(new PointerEvent("pointermove", point));
            return document.querySelector(".tip").innerText;""",
            tile.point,
        )
        for name, tile in browser.drawn_tiles().items()
    }
    assert tips["cn1"].splitlines()[1:] == [
        "lacks VCPU 6",
        "VCPU at most 4 free of one provider, 8 in all",
    ]
    assert tips["cn2"].splitlines()[1:] == ["fits", "VCPU 8 free, 0 used"]


def colours(browser: Browser) -> dict[str, tuple[str, str]]:
    """The colour and the mark of each entry of the legend."""
    return {
        entry.text: (
            swatch.value_of_css_property("background-color"),
            swatch.get_attribute("data-mark") or "",
        )
        for entry in browser.all("[aria-label=Legend] .entry")
        for swatch in entry.find_elements("css selector", ".swatch")
    }


def test_a_constraint_keeps_its_colour(browser: Browser, service: Service) -> None:
    """Whatever else is asked and however many hosts it excludes; and the tiles have it."""
    browser.open(service.url, in_address(asking(VCPU=6, MEMORY_MB=9)))
    browser.find(".verdict.fails")
    first = colours(browser)
    amounts = {name.split()[1]: look for name, look in first.items() if name.startswith("lacks")}
    assert len(set(first.values())) == len(first)
    wanted = asking(MEMORY_MB=9)
    wanted["groups"]["_A"] = {"resources": {"DISK_GB": 99}}
    for request in (asking(MEMORY_MB=99), asking(VCPU=99, DISK_GB=1), wanted):
        browser.visit(in_address(request))
        browser.until(lambda: browser.all(".asking .stale") == [] or None, "it is answered")
        browser.find("[aria-label=Legend] .entry")
        for name, look in colours(browser).items():
            if name.startswith("lacks") and name.split()[1] in amounts:
                assert look == amounts[name.split()[1]], name


@pytest.mark.parametrize(("scheme", "card"), [("light", "#ffffff"), ("dark", "#161b22")])
def test_everybody_can_tell_the_colours_of_an_answer_apart(
    browser: Browser, service: Service, scheme: str, card: str
) -> None:
    """To any kind of colour vision; a host that fits stands out most, no failure is green, and each
    mark can be read on its tile."""
    browser.open(service.url, "#/service")
    browser.find(".light", "Live")
    palettes, undecided = browser.script(
        """const { PALETTES, UNDECIDED } = await import("./colours.js");
        return [PALETTES, UNDECIDED];"""
    )
    palette = palettes[scheme]
    fits, others = palette["fits"], [*palette["reasons"], palette["other"], undecided]
    for one, other in combinations([fits, *others], 2):
        least = 30 if one == fits and other in palette["reasons"] else 12
        assert difference(one, other) >= least, (one, other)
    for colour in others:
        angle, chroma = hue(colour)
        assert not (100 < angle < 200 and chroma > 12), colour
        assert 1.3 < contrast(colour, card) < contrast(fits, card), colour
    assert contrast(fits, card) >= 7
    for colour in (fits, *others):
        ink = browser.script(
            'const { inkOn } = await import("./colours.js"); return inkOn(arguments[0])', colour
        )
        assert contrast(colour, ink) >= 4.5, colour
    with browser.scheme(scheme):
        browser.visit(in_address(asking(VCPU=6)))
        browser.find(".verdict.fits")
        (fitting, mark) = colours(browser)["fits"]
        assert (opaque(fitting), mark) == (fits, "✓")
    assert (luminance(fits) > 0.5) == (scheme == "dark")


def opaque(colour: str) -> str:
    """A colour of a style as `#rrggbb`."""
    red, green, blue = (int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"
