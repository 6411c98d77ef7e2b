# SPDX-License-Identifier: Apache-2.0
"""What axe-core says of what is open: a host, a consumer, a drain, an answer, a dialog. Source:
page.md, Tests."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import emptied
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

FLEET = """
    cn1      MEMORY_MB=64 HW_CPU_X86_AVX2 @A
      numa0  VCPU=4(used:2,reserved:1) HW_NUMA_ROOT
      numa1  VCPU=4 HW_NUMA_ROOT
    cn2      MEMORY_MB=64 VCPU=8 @A
"""


@pytest.fixture(scope="module")
def service(shared: Service) -> Iterator[Service]:
    """A service with two hosts, one drained, and a consumer with a lease."""
    with emptied(shared) as running:
        api = Client.at(running.url)
        with built_over_http(world(FLEET), api):
            consumer = str(uuid4())
            claim = {
                "allocations": {provider_uuid("cn1"): {"resources": {"MEMORY_MB": 1}}},
                "project_id": "web",
                "user_id": "alice",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            assert api.put(f"/allocations/{consumer}", json=claim).status == 204
            lease = api.put(f"/berth/v1/leases/{consumer}", json={"seconds": 600})
            assert lease.status in (200, 201)
            assert api.put("/berth/v1/drains/fans", json={"providers": ["cn2"]}).status == 201
            yield running
            for path in ("/berth/v1/drains/fans", f"/allocations/{consumer}"):
                assert api.delete(path).status == 204


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_nothing_that_is_open_has_a_serious_barrier(
    browser: Browser, service: Service, scheme: str
) -> None:
    """Names, roles, contrast, order: nothing serious and nothing critical."""
    found: dict[str, list[str]] = {}
    with browser.scheme(scheme):
        browser.open(service.url, "#/hosts/cn1")
        browser.find("tbody a")
        found["host"] = browser.axe()
        browser.click("tbody a")
        browser.find("table", "cn1")
        found["consumer"] = browser.axe()
        browser.visit("#/drains/fans")
        browser.find("legend", "Create or replace a drain")
        found["drain"] = browser.axe()
        browser.click("form button", "Drain…")
        browser.find("dialog button.primary:enabled")
        found["dialog"] = browser.axe()
        browser.visit('#/ask?request={"groups":{"":{"resources":{"VCPU":5}}}}')
        browser.find(".verdict.fails")
        browser.click(".entry", "drained")
        browser.find("details[open] summary", "1 host")
        found["answer"] = browser.axe()
        browser.visit('#/ask?request={"groups":{"":{"resources":{"MEMORY_MB":5}}}}')
        browser.find(".verdict.fits")
        found["candidates"] = browser.axe()
        amount = browser.find("[data-at='/groups//resources/0/amount']")
        amount.send_keys(Keys.CONTROL, "a")
        amount.send_keys("6", Keys.TAB)
        browser.find("[role=status]", "The request has changed")
        found["another request"] = browser.axe()
        browser.visit("#/capacity?drain=cn1")
        browser.find(".chip", "cn1")
        found["capacity"] = browser.axe()
    assert not {name: barriers for name, barriers in found.items() if barriers}
