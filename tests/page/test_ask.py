# SPDX-License-Identifier: Apache-2.0
"""Asking why a request does not fit, as the page does it. Source: page.md, view 3."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service, run_berth
from tests.page.browser import Browser

#: A request that no host of the demo fleet has: see the first example of the README.
NUMA_AND_GPU: Final[Mapping[str, Any]] = {
    "groups": {
        "_CPU": {"resources": {"VCPU": 32}},
        "_GPU": {"resources": {"VGPU": 4}, "required": ["CUSTOM_A100"]},
    },
    "together": [{"groups": ["_CPU", "_GPU"], "at": "HW_NUMA_ROOT"}],
    "host": {"member_of": ["zone=z1"]},
}

#: As placement's log has it when a scheduler has asked.
QUERY: Final = (
    "resources=VCPU%3A32%2CMEMORY_MB%3A129024&resources_G=VGPU%3A5&required_G=CUSTOM_A100"
    "&root_required=STORAGE_DISK_SSD&limit=1000&group_policy=none"
)
LOGGED: Final = (
    "2026-11-24 03:12:07.113 812 INFO placement.requestlog "
    "[req-9f3c1d5e-0a1b-4c2d-8e3f-1234567890ab"
    f' nova service - - -] 10.0.0.7 "GET /placement/allocation_candidates?{QUERY}" status: 200'
    " len: 53 microversion: 1.36"
)


def counts(browser: Browser) -> dict[str, int]:
    """The legend: how many hosts have each colour."""
    return {row[0]: int(row[1]) for row in browser.table("Hosts by colour")}


def explained(api: Client, request: Mapping[str, Any]) -> Any:
    """What the API says of a request."""
    answer = api.post("/berth/v1/explain", json={"request": request, "paint": True})
    assert answer.status == 200, answer.text
    return answer.json


def in_address(request: Mapping[str, Any], **filters: str) -> str:
    """The address of a request in the view."""
    return f"#/ask?{urlencode({'request': json.dumps(request), **filters})}"


def test_a_line_of_a_log_becomes_the_reason_and_what_would_help(
    browser: Browser, demo: Service, api: Client
) -> None:
    """Pasted as it is, and asked with Enter; each click on a change asks again."""
    browser.open(demo.url, "#/ask")
    box = browser.find("#pasted")
    box.send_keys(LOGGED, Keys.ENTER)
    browser.find(".verdict.fails")
    expected = explained(api, {"query": QUERY})
    assert browser.find(".verdict").text == expected["summary"]
    legend = counts(browser)
    assert sum(legend.values()) == expected["hosts"]["total"] == 201
    assert any("VGPU 5" in text for text in legend)
    first = browser.find(".help button")
    assert first.text.startswith(("with ", "without "))
    first.click()
    browser.find(".verdict.fits")
    assert browser.table("Candidates")
    browser.driver.back()
    browser.find(".verdict.fails")


@pytest.mark.parametrize(
    ("pasted", "said"),
    [
        ("resources=VCPU:abc", "abc"),
        ("hello", "There is no query in it"),
        ('{"groups": ', "JSON"),
        ("berth why 'VCPU=4", "quote"),
    ],
)
def test_what_cannot_be_read_is_told(
    browser: Browser, demo: Service, pasted: str, said: str
) -> None:
    """In words, at the box, and nothing is asked."""
    browser.open(demo.url, "#/ask")
    # The service says what is wrong.
    browser.expect("explain .* 400")
    browser.find("#pasted").send_keys(pasted, Keys.ENTER)
    browser.find("#unread", said)
    browser.absent(".verdict")


def failure(stage: Mapping[str, Any]) -> str:
    """What the legend says of hosts that fail a constraint."""
    if "has" in stage:
        return f"lacks {stage['text']}"
    return f"is not {stage['text']}"


def test_the_colours_are_the_first_constraints_that_fail(
    browser: Browser, demo: Service, api: Client
) -> None:
    """Counted as the API counts them; choosing one lists exactly its hosts, also by address."""
    browser.open(demo.url, in_address(NUMA_AND_GPU))
    browser.find(".verdict", "No host fits now")
    expected = explained(api, NUMA_AND_GPU)
    before, wanted = expected["hosts"]["total"], {}
    for stage in expected["stages"]:
        if before - stage["left"]:
            wanted[failure(stage)] = before - stage["left"]
        before = stage["left"]
    assert counts(browser) == wanted
    (few,) = (text for text, count in wanted.items() if count == 1)
    browser.click(".entry", few)
    browser.find("details[open] summary", "1 host")
    assert len(browser.all("ul.hosts li")) == 1
    assert "only=" in browser.address
    browser.open(demo.url, browser.address.partition("/ui/")[2])
    browser.find("details[open] summary", "1 host")


def test_the_same_request_stands_in_every_form(
    browser: Browser, demo: Service, tmp_path: Path
) -> None:
    """The command line, when it is run, says the same; JSON that is edited changes the form."""
    browser.open(demo.url, in_address(NUMA_AND_GPU))
    verdict = browser.find(".verdict", "No host fits now").text
    command = browser.find("pre", "berth why").text
    words = shlex.split(command)
    assert words.pop(0) == "berth"
    reach = {"BERTH_URL": demo.url, "OS_TOKEN": "admin"}
    assert verdict in run_berth(tmp_path, *words, variables=reach).stdout
    form = browser.find("textarea[data-at=json]")
    form.send_keys(Keys.CONTROL, "a")
    form.send_keys('{"groups": {"": {"resources": {"VCPU": 3}}}}', Keys.TAB)
    browser.find("pre", "resources=VCPU:3")
    browser.find("pre", "berth why VCPU=3")
    browser.click("button.primary", "Ask")
    browser.find(".verdict.fits")


def test_a_field_takes_one_of_several_traits(browser: Browser, demo: Service) -> None:
    """Written with a bar between them."""
    browser.open(demo.url, in_address({"groups": {"": {"resources": {"VGPU": 1}}}}))
    field = browser.find("input[data-at='/groups//required']")
    field.send_keys("CUSTOM_A100 | CUSTOM_T4, CUSTOM_SSD", Keys.TAB)
    browser.find("pre", "in:CUSTOM_A100,CUSTOM_T4")


def test_an_answer_follows_the_fleet(browser: Browser, demo: Service, api: Client) -> None:
    """A host that is drained no longer fits, without a reload."""
    browser.open(demo.url, in_address({"groups": {"": {"resources": {"VGPU": 1}}}}))
    browser.find(".verdict.fits")
    fitting = counts(browser)["fits"]
    api.put("/berth/v1/drains/test-ask", json={"providers": ["cn020"]})
    try:
        browser.until(lambda: counts(browser)["fits"] == fitting - 1 or None, "one host less fits")
        assert counts(browser)["drained"] == 1
    finally:
        api.delete("/berth/v1/drains/test-ask")
    browser.until(lambda: counts(browser)["fits"] == fitting or None, "it fits again")


def test_a_name_that_is_unknown_is_suggested(browser: Browser, demo: Service) -> None:
    """A click takes the suggestion, and asks again."""
    request = {"groups": {"": {"resources": {"VCPU": 1}, "required": ["HW_CPU_X86_AVX22"]}}}
    browser.open(demo.url, in_address(request))
    browser.click(".help button", "HW_CPU_X86_AVX2 instead of HW_CPU_X86_AVX22")
    browser.find(".verdict.fits")
    assert quote("HW_CPU_X86_AVX22") not in browser.address
