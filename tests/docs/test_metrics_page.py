# SPDX-License-Identifier: Apache-2.0
"""The page Metrics lists every metric, and no others."""

from __future__ import annotations

import re

from tests.client import Client
from tests.docs.pages import published
from tests.exposed import scrape


def test_every_metric_is_on_the_page_with_its_labels(client: Client) -> None:
    """By the name that queries use."""
    page = published("metrics.md")
    rows = re.findall(r"^\| `(berth_\w+)` \|([^|]*)\|", page, re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    client.get("/resource_providers/nowhere")
    request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    assert client.put("/berth/v1/flavors/small", json={"request": request}).status == 201
    told = scrape(client)
    assert set(documented) == told.names()
    for name, labels in documented.items():
        series = told.series(name) or told.series(f"{name}_count")
        # A single process without shared files has no pid on its gauges.
        assert all(set(one) in (labels, labels - {"pid"}) for one in series), name
