# SPDX-License-Identifier: Apache-2.0
"""The fleet as the page shows it. Source: page.md, view 1."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from threading import Event, Thread

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import create_hosts
from tests.page.test_picture import claim


def test_the_fleet_is_drawn_and_counted(browser: Browser, demo: Service) -> None:
    """The demo fleet: 200 hosts and a pool, each tree under one colour, and the page is live."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    assert "201 hosts" in browser.find(".lead").text
    rows = browser.table("Hosts by colour")
    assert sum(int(count) for colour, count, *_ in rows if colour != "drained") == 201


@pytest.mark.parametrize(
    "by", ["zone", "rack", pytest.param("aggregate", marks=pytest.mark.thorough)]
)
def test_hosts_are_grouped_by_what_is_chosen(
    browser: Browser, demo: Service, api: Client, by: str
) -> None:
    """The legend has a column for each of a few groups; the choice is a part of the address."""
    browser.open(demo.url, "#/fleet?by=")
    browser.find(".light", "Live")
    browser.choose("Group by", by)
    assert browser.address.endswith(f"#/fleet?by={by}")
    groups = Counter(value for values in labels(api, by).values() for value in values)
    heads = [cell.text for cell in browser.all("[aria-label=Legend] thead th")]
    if len(groups) > 12:
        assert heads == ["Colour", "Hosts"]
        return
    assert heads[2:] == sorted(groups)
    rows = browser.table("Hosts by colour")
    sums = {
        head: sum(int(row[at]) for row in rows if row[0] != "drained")
        for at, head in enumerate(heads[2:], 2)
    }
    assert sums == groups


def labels(api: Client, key: str) -> dict[str, list[str]]:
    """The groups of each host, by its name, as the API says."""
    listed = api.get("/berth/v1/aggregates").json["aggregates"]
    values = {each["uuid"]: each["labels"] for each in listed}
    groups: dict[str, list[str]] = {}
    for line in map(json.loads, api.get("/berth/v1/fleet").text.splitlines()):
        if line.get("parent", "") is not None:
            continue
        if key == "aggregate":
            own = [values.get(uuid, {}).get("name", uuid) for uuid in line["aggregates"]]
        else:
            labelled = (values.get(uuid, {}) for uuid in line["aggregates"])
            own = [each[key] for each in labelled if key in each]
        groups[line["name"]] = sorted(set(own)) or [f"without {key}"]
    return groups


def test_the_pointer_shows_a_host_and_a_click_opens_it(
    browser: Browser, demo: Service, api: Client
) -> None:
    """What is free and used of each class, also in the last row, where it must not be cut off."""
    browser.open(demo.url, "#/fleet?by=")
    browser.find(".light", "Live")
    name, tile = max(browser.drawn_tiles().items(), key=lambda each: each[1].point[1])
    canvas = browser.find("canvas.map")
    x, y = tile.point
    size = canvas.size
    pointer = ActionChains(browser.driver)
    pointer.move_to_element_with_offset(
        canvas, int(x - size["width"] / 2), int(y - size["height"] / 2)
    ).perform()
    tip = browser.find(".tip", name)
    (host,) = api.get(f"/resource_providers?name={name}").json["resource_providers"]
    tree = api.get(f"/berth/v1/trees/{host['uuid']}?include=inventories,usages").json
    for resource_class, amounts in tree["totals"].items():
        assert f"{resource_class} {amounts['free']:,} free, {amounts['used']:,} used" in tip.text
    assert tip.rect["y"] + tip.rect["height"] <= canvas.rect["y"] + size["height"]
    ActionChains(browser.driver).click().perform()
    browser.find("h1", name)
    assert browser.address.endswith(f"#/hosts/{host['uuid']}")


def test_other_buttons_leave_the_tab_where_it_is(browser: Browser, demo: Service) -> None:
    """The right one does nothing; the middle one, and a click with Ctrl, open another tab."""
    browser.open(demo.url, "#/fleet?by=")
    browser.find(".light", "Live")
    name, tile = next(iter(browser.drawn_tiles().items()))
    here = browser.driver.current_window_handle
    for button, control, tabs in ((2, False, 1), (1, False, 2), (0, True, 3)):
        browser.script(
            """const [[x, y], button, ctrlKey] = arguments;
            const canvas = document.querySelector("canvas.map");
            const { left, top } = canvas.getBoundingClientRect();
            canvas.setPointerCapture = () => {};
            for (const type of ["pointerdown", "pointerup"]) {
                canvas.dispatchEvent(new PointerEvent(type,
                    { pointerId: 1, clientX: left + x, clientY: top + y, button, ctrlKey }));
            }""",
            tile.point,
            button,
            control,
        )
        opened = partial(has_tabs, browser, tabs)
        browser.until(opened, f"{tabs} tabs")
        assert browser.address.endswith("#/fleet?by=")
    for handle in browser.driver.window_handles:
        if handle != here:
            browser.driver.switch_to.window(handle)
            browser.find("h1", name)
            browser.driver.close()
    browser.driver.switch_to.window(here)


def has_tabs(browser: Browser, count: int) -> bool | None:
    """Whether the browser has so many tabs."""
    return len(browser.driver.window_handles) == count or None


def test_a_busy_fleet_is_polled_twice_a_second(browser: Browser, plain: Service) -> None:
    """However much changes."""
    api = Client.at(plain.url)
    create_hosts(api, "busy")
    (busy,) = api.get("/resource_providers?name=busy").json["resource_providers"]
    browser.open(plain.url)
    browser.find(".light", "Live")

    def polls() -> int:
        return sum("/berth/v1/changes" in sent.url for sent in browser.requests())

    before, began = polls(), time.monotonic()
    with steady_change(api, busy["uuid"]):
        browser.until(lambda: polls() >= before + 5 or None, "the fleet is followed")
    seconds = time.monotonic() - began
    assert polls() - before <= 3 + 2 * seconds


def test_the_map_is_moved_by_keys(browser: Browser, demo: Service) -> None:
    """Arrows move it, + makes its tiles larger, 0 shows everything again."""
    browser.open(demo.url, "#/fleet?by=")
    browser.find(".light", "Live")
    before = len(browser.drawn_tiles(step=20))
    browser.script("document.querySelector('canvas.map').focus()")
    browser.press(*"+++++")
    browser.until(lambda: len(browser.tiles(step=20)) < before / 2 or None, "tiles are larger")
    near = set(browser.tiles(step=20))
    browser.press(*[Keys.ARROW_RIGHT] * 6)
    browser.until(lambda: set(browser.tiles(step=20)) != near or None, "the map moved")
    browser.press("0")
    browser.until(lambda: len(browser.tiles(step=20)) == before or None, "everything is shown")


@contextmanager
def steady_change(api: Client, provider: str) -> Iterator[None]:
    """Ten times a second, another amount is used of a host."""
    is_over = Event()

    def change() -> None:
        for amount in cycle(range(1, 9)):
            consumer = claim(api, provider, "VCPU", amount)
            if is_over.wait(0.1):
                return
            api.delete(f"/allocations/{consumer}")

    changing = Thread(target=change)
    changing.start()
    try:
        yield
    finally:
        is_over.set()
        changing.join()


def test_what_somebody_does_survives_a_fleet_that_changes(browser: Browser, plain: Service) -> None:
    """Lists, buttons and the focus stay; only what has changed is shown anew."""
    api = Client.at(plain.url)
    create_hosts(api, "still", "busy")
    (busy,) = api.get("/resource_providers?name=busy").json["resource_providers"]
    browser.open(plain.url)
    browser.find(".light", "Live")
    browser.click("summary", "2 hosts")
    browser.find(".hosts a", "busy")
    browser.script(
        """window.kept = [...document.querySelectorAll("select, .entry, details, .hosts a")];
        document.querySelector(".entry").focus();
        window.repaints = 0;
        new MutationObserver(() => window.repaints++)
            .observe(document.querySelector("[aria-label=Totals]"),
                { subtree: true, childList: true, characterData: true });"""
    )
    with steady_change(api, busy["uuid"]):
        browser.until(lambda: browser.script("return window.repaints >= 4") or None, "changes")
        assert browser.script("return window.kept.filter((each) => !each.isConnected).length") == 0
        assert browser.focused.text == "0–10 %"
        assert browser.find(".hosts a", "busy")
        browser.press(Keys.SPACE)
        browser.find("summary", "host")
        assert browser.focused.get_attribute("aria-pressed") == "true"


def test_totals_say_what_is_stranded(browser: Browser, plain: Service) -> None:
    """Free, but of no use to any stored flavor: of two flavors, the one that wastes less counts.
    What is reserved is never free."""
    api = Client.at(plain.url)
    create_hosts(api, "cn1", "cn2")
    (host,) = api.get("/resource_providers?name=cn2").json["resource_providers"]
    inventory = {"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 1.5}}
    changed = {"resource_provider_generation": 1, "inventories": inventory}
    answer = api.put(f"/resource_providers/{host['uuid']}/inventories", json=changed)
    assert answer.status == 200, answer.text
    browser.open(plain.url)
    browser.find(".light", "Live")
    assert browser.table("Resources") == [["VCPU", "17", "0", "17", "0 %"]]
    for amount in (5, 3):
        body = {"request": {"groups": {"": {"resources": {"VCPU": amount}}}}}
        assert api.put(f"/berth/v1/flavors/f{amount}", json=body).status == 201
    browser.reload()
    browser.find("[aria-label=Totals]", "Stranded")
    assert browser.table("Resources") == [["VCPU", "17", "0", "17", "2", "0 %"]]


def test_a_device_that_is_moved_is_on_one_host(browser: Browser, plain: Service) -> None:
    """The totals have it once while the page follows the fleet."""
    api = Client.at(plain.url)
    create_hosts(api, "cn1", "cn2", "gpu1")
    hosts = api.get("/resource_providers").json["resource_providers"]
    uuids = {host["name"]: host["uuid"] for host in hosts}
    path = f"/resource_providers/{uuids['gpu1']}"
    put_below(api, path, uuids["cn1"])
    browser.open(plain.url)
    browser.find(".lead", "2 hosts")
    browser.find(".light", "Live")
    assert browser.table("Resources")[0][1] == "24"
    put_below(api, path, uuids["cn2"])
    create_hosts(api, "cn3")
    browser.find(".lead", "3 hosts")
    # A sum that no step on the way has, not even of a page that counts it twice.
    generation = api.get(path).json["generation"]
    smaller = {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": 5}}}
    assert api.put(f"{path}/inventories", json=smaller).status == 200
    browser.until(lambda: browser.table("Resources")[0][1] == "29" or None, "each counts once")


def put_below(api: Client, path: str, parent: str) -> None:
    """Move the provider gpu1."""
    answer = api.put(path, json={"name": "gpu1", "parent_provider_uuid": parent})
    assert answer.status == 200, answer.text


def test_who_drags_the_map_opens_no_host(browser: Browser, demo: Service) -> None:
    """It moves; a click opens one."""
    browser.open(demo.url, "#/fleet?by=")
    browser.find(".light", "Live")
    browser.drawn_tiles()
    canvas = browser.find("canvas.map")
    at_middle = ActionChains(browser.driver).move_to_element(canvas)
    at_middle.click_and_hold().move_by_offset(50, 0).release().perform()
    assert browser.address.endswith("#/fleet?by=")
    ActionChains(browser.driver).click().perform()
    browser.find("h1", "cn")


#: The lines of an answer that comes in these portions.
LINES = """
    const { Api } = await import("./api.js");
    const coming = new ReadableStream({
        start(stream) {
            for (const part of ['{"a":', '1}\\n{"b":2', '}\\n{"c":3}'])
                stream.enqueue(new TextEncoder().encode(part));
            stream.close();
        },
    });
    const { fetch } = window;
    window.fetch = async () => new Response(coming);
    const lines = [];
    try {
        for await (const portion of new Api().lines("berth/v1/fleet")) lines.push(...portion);
    } finally {
        window.fetch = fetch;
    }
    return lines;
"""


def test_a_line_that_comes_in_two_portions_is_one(browser: Browser, demo: Service) -> None:
    """The network cuts an answer anywhere."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    assert browser.script(LINES) == [{"a": 1}, {"b": 2}, {"c": 3}]
