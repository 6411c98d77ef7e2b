# SPDX-License-Identifier: Apache-2.0
"""The picture of the fleet is true. Source: page.md, view 1 and "Tests"."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import emptied
from tests.page.vision import difference, luminance


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service with forty random hosts, some of which have NUMA nodes, and all kinds of use."""
    dice = Random(20261124)
    with emptied(shared) as running:
        api = Client.at(running.url)
        for number in range(40):
            make_host(api, dice, f"h{number:02}")
        yield running


@pytest.fixture
def own(service: Service) -> Client:
    """A client of it."""
    return Client.at(service.url)


def make_host(api: Client, dice: Random, name: str) -> None:
    """A host with random inventories, and consumers that take some of them."""
    classes = dice.sample(["VCPU", "MEMORY_MB", "DISK_GB"], dice.randint(0, 3))
    providers: list[dict[str, Any]] = [{"name": name}]
    for resource_class in classes:
        record = {"total": dice.randint(1, 20), "allocation_ratio": dice.choice([1.0, 1.5, 4.0])}
        if dice.random() < 0.3:
            providers.append(
                {
                    "name": f"{name}_{resource_class.lower()}",
                    "parent": name,
                    "inventories": {resource_class: record},
                }
            )
        else:
            providers[0].setdefault("inventories", {})[resource_class] = record
    made = api.put(f"/berth/v1/trees/{name}", json={"providers": providers})
    assert made.status == 201, made.text
    for line in made.json["providers"]:
        for resource_class, record in line["inventories"].items():
            used = dice.choice([0, 1, record["total"] // 2, record["total"]])
            if used:
                claim(api, line["uuid"], resource_class, used)


def claim(api: Client, provider: str, resource_class: str, amount: int) -> str:
    """A new consumer that holds some of a provider."""
    uuid = str(uuid4())
    body = {
        "allocations": {provider: {"resources": {resource_class: amount}}},
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{uuid}", json=body).status == 204
    return uuid


def fullness(api: Client, wanted: str = "") -> dict[str, Fraction | None]:
    """How full each host is, of one class or of the fullest one, as the API's figures say."""
    lines = api.get("/berth/v1/fleet?include=inventories,usages").text.splitlines()
    names: dict[str, str] = {}
    sums: dict[str, dict[str, list[int]]] = {}
    for line in map(json.loads, lines):
        if "uuid" not in line:
            continue
        if line["parent"] is None:
            names[line["root"]] = line["name"]
        for name, record in line["inventories"].items():
            capacity = int((record["total"] - record["reserved"]) * record["allocation_ratio"])
            both = sums.setdefault(line["root"], {}).setdefault(name, [0, 0])
            both[0] += line["usages"].get(name, 0)
            both[1] += capacity
    return {
        name: max(
            (
                Fraction(used, capacity)
                for each, (used, capacity) in sums.get(root, {}).items()
                if capacity and each in (wanted or each)
            ),
            default=None,
        )
        for root, name in names.items()
    }


def shown_as(share: Fraction | None) -> str:
    """The entry of the legend for a fullness."""
    if share is None:
        return "no such inventory"
    if share >= 1:
        return "full"
    tenth = int(share * 10)
    return f"{tenth * 10}–{tenth * 10 + 10} %"


def counts(browser: Browser) -> dict[str, int]:
    """The legend: how many hosts have each colour."""
    rows = browser.table("Hosts by colour")
    return {row[0]: int(row[1]) for row in rows if row[0] != "drained"}


@pytest.mark.parametrize(
    "resource_class", ["", "VCPU", pytest.param("DISK_GB", marks=pytest.mark.thorough)]
)
def test_each_colour_has_as_many_hosts_as_the_api_says(
    browser: Browser, service: Service, own: Client, resource_class: str
) -> None:
    """Of the fullest class, and of a chosen one, which is a part of the address."""
    browser.open(service.url, f"#/fleet?class={resource_class}")
    browser.find(".light", "Live")
    assert counts(browser) == Counter(map(shown_as, fullness(own, resource_class).values()))


@pytest.mark.parametrize(("zooms", "step", "share"), [(0, 8, 1.0), (8, 1, 0.15)])
def test_each_tile_has_the_colour_of_its_host(
    browser: Browser, service: Service, own: Client, zooms: int, step: int, share: float
) -> None:
    """Pixel by pixel, large or small; a drained host is hatched over its colour."""
    browser.open(service.url, "#/fleet?by=")
    browser.find(".light", "Live")
    browser.drawn_tiles()
    browser.script("document.querySelector('canvas.map').focus()")
    browser.press(*"-" * zooms)
    own.put("/berth/v1/drains/fans", json={"providers": ["h03", "h04"]})
    browser.find(".lead", "2 drained")
    shown = {name: shown_as(share) for name, share in fullness(own).items()}
    legend = {
        button.text: button.find_element("css selector", ".swatch").value_of_css_property(
            "background-color"
        )
        for button in browser.all(".entry")
    }
    colours = {name: opaque(legend[text]) for name, text in shown.items()}

    def drawn() -> dict[str, str] | None:
        tiles = browser.tiles(step=step, share=share)
        if not {"h03", "h04"} <= tiles.keys():
            return None
        read = {name: tile.colour for name, tile in tiles.items() if name not in ("h03", "h04")}
        hatched = all(
            colours[name] in tiles[name].colours and len(tiles[name].colours) > 1
            for name in ("h03", "h04")
        )
        return read if hatched and read == {name: colours[name] for name in read} else None

    assert len(browser.until(drawn, f"the colours {colours}")) == 38
    own.delete("/berth/v1/drains/fans")


def opaque(colour: str) -> str:
    """A colour as the canvas has it, without its alpha of 1."""
    return colour.replace("rgba(", "rgb(").replace(", 1)", ")")


def test_fullness_gets_darker_step_by_step(browser: Browser, service: Service) -> None:
    """By a ratio that one sees without colours; all stand out from both backgrounds."""
    browser.open(service.url)
    browser.find(".light", "Live")
    colours, nothing = browser.script(
        """const { NOTHING, STEPS, ofStep } = await import("./colours.js");
        return [Array.from({ length: STEPS }, (_, step) => ofStep(step)), NOTHING];"""
    )
    assert all(difference(nothing, colour) > 10 for colour in colours), "not as a host without any"
    lights = [luminance(colour) + 0.05 for colour in colours]
    assert all(light / darker >= 1.15 for light, darker in pairwise(lights))
    assert 1.05 / lights[0] > 1.4, "on white"
    assert lights[-1] / (luminance("#161b22") + 0.05) > 1.9, "on the card of the dark scheme"


def test_a_claim_changes_its_tile_without_a_reload(
    browser: Browser, service: Service, own: Client
) -> None:
    """Also a drain, a new host, and one that goes."""
    browser.open(service.url)
    browser.find(".light", "Live")
    browser.script("window.isThisPage = true")
    made = own.put(
        "/berth/v1/trees/new",
        json={"providers": [{"name": "new", "inventories": {"VCPU": {"total": 10}}}]},
    )
    (line,) = made.json["providers"]

    def agrees() -> bool | None:
        return counts(browser) == Counter(map(shown_as, fullness(own).values())) or None

    browser.until(agrees, "the new host is there")
    browser.find(".lead", "41 hosts")
    consumer = claim(own, line["uuid"], "VCPU", 10)
    browser.until(agrees, "it is full")
    own.put("/berth/v1/drains/fans", json={"providers": ["new"]})
    browser.find(".lead", "1 drained")
    own.delete("/berth/v1/drains/fans")
    own.delete(f"/allocations/{consumer}")
    browser.until(agrees, "it is empty")
    browser.absent(".lead", "drained")
    own.delete(f"/resource_providers/{line['uuid']}")
    browser.find(".lead", "40 hosts")
    browser.until(agrees, "it is gone")
    assert browser.script("return window.isThisPage")
