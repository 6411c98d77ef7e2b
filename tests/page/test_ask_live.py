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

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.polls import known_to
from tests.page.services import emptied
from tests.page.test_picture import claim
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

#: Keeps what the service answers to an explanation until the test lets it go, in order.
HOLD: Final = """
    const send = window.fetch;
    window.held = [];
    window.asked = [];
    window.fetch = async (url, init) => {
        const answer = await send(url, init);
        if (!init.body?.includes('"paint"')) return answer;
        window.asked.push(JSON.parse(init.body));
        window.askedAt = performance.now();
        await new Promise((resolve) => window.held.push(resolve));
        return answer;
    };
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


def release(browser: Browser) -> None:
    """Let the service's answer to the last question go."""
    browser.until(lambda: browser.script("return window.held.length > 0") or None, "it was asked")
    browser.script("window.held.shift()()")


def test_an_answer_that_takes_long_is_shown(
    browser: Browser, service: Service, own: Client
) -> None:
    """Changes in the meantime neither replace it nor grey it."""
    browser.open(service.url, "#/service")
    browser.find(".light", "Live")
    browser.script(HOLD)
    browser.visit(in_address(asking(VCPU=8)))
    asked(browser, 1)
    with known_to(browser):
        consumer = claim(own, provider_uuid("cn2"), "VCPU", 1)
    old = "return performance.now() - window.askedAt > 1500"
    browser.until(lambda: browser.script(old) or None, "a change would ask now")
    assert len(asked(browser, 1)) == 1, "one question at a time"
    release(browser)
    browser.find(".verdict.fits", "1 host fits")
    assert browser.all(".stale") == []
    assert own.delete(f"/allocations/{consumer}").status == 204


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
        consumer = claim(own, provider_uuid("cn2"), "VCPU", 1)
    browser.find(".verdict.fails", "No host fits now")
    assert [question.get("seconds") for question in asked(browser, 3)[:3]] == [None, 30, 30]
    browser.absent("button", "Take more time")
    assert own.delete(f"/allocations/{consumer}").status == 204


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


def test_what_is_impossible_is_named(browser: Browser, service: Service, own: Client) -> None:
    """At the verdict, before the nearest hosts, at which it may look as if freeing something would
    help: two nodes are never in one subtree, and no provider is so large."""
    wanted = {
        "groups": {
            "_A": {"resources": {"VCPU": 1, "MEMORY_MB": 1}, "under": [provider_uuid("cn1_0")]},
            "_B": {"resources": {"VCPU": 1}, "under": [provider_uuid("cn1_1")]},
            "_C": {"resources": {"VCPU": 99}},
        },
        "together": [{"groups": ["_A", "_B"], "at": "subtree"}],
    }
    answer = own.post("/berth/v1/explain", json={"request": wanted}).json
    texts = [each["text"] for each in answer["impossible"]]
    assert answer["verdict"] == "never" and len(texts) > 1
    browser.open(service.url, in_address(wanted))
    browser.find(".verdict.fails")
    shown = browser.find("[aria-label=Answer]").text
    assert [shown.count(text) for text in texts] == [1] * len(texts), shown


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
        least = 20 if one == fits and other in palette["reasons"] else 11
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
