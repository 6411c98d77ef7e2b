# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/how-to/capacity.md show the demonstration fleet as it is counted now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.charts import Panel, Row, panel_chart
from berth.cli.fleet.client import Client, of_transport
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_loading import load
from berth.config import Settings
from berth.direct import PlacementDirect
from berth.store.engine.database import Database
from tests.golden.files import Compare

PICTURES: Final = Path(__file__).parents[2] / "docs" / "images" / "capacity"

#: The flavors of the page.
FLAVORS: Final[Mapping[str, Any]] = {
    "m1.large": {"groups": {"": {"resources": {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40}}}},
    "gpu.large": {
        "groups": {
            "": {"resources": {"VCPU": 8, "MEMORY_MB": 32768}},
            "_GPU": {"resources": {"VGPU": 1}, "required": ["CUSTOM_A100"]},
        },
        "together": [{"groups": ["", "_GPU"], "at": "HW_NUMA_ROOT"}],
    },
}

Counted = Mapping[str, Any]


def test_the_pictures_of_capacity(golden: Compare, settings: Settings, database: Database) -> None:
    """`make golden` draws them again."""
    with PlacementDirect(settings.conf) as direct:
        client = of_transport(direct)
        load(client, demo_fleet())
        scenario = {
            "without_hosts": ["cn010", "cn011"],
            "add_hosts": [{"like": "cn012", "count": 10}],
        }
        present = count(client, by=["zone"])
        golden(
            PICTURES,
            {
                "zones.svg": by_zone(present),
                "scenario.svg": now_and_then(count(client, what_if=scenario)),
                "stranded.svg": free_and_stranded(present),
            },
        )


def count(client: Client, **body: Any) -> Counted:
    """How many more of the flavors fit."""
    answer = client.send("POST", "/berth/v1/capacity", {"requests": FLAVORS, **body})
    flavors: Counted = answer.json()["flavors"]
    assert all(figures["exact"] for figures in flavors.values())
    return flavors


def by_zone(flavors: Counted) -> str:
    """The count of each flavor by zone."""
    return panel_chart(
        "How many more fit, by zone",
        (),
        [
            Panel(
                name,
                [
                    Row(zone, [(0, line["count"])], f"{line['count']:,} on {line['hosts']} hosts")
                    for zone, line in figures["by"]["zone"].items()
                ],
            )
            for name, figures in flavors.items()
        ],
    )


def now_and_then(flavors: Counted) -> str:
    """The count of each flavor at present, and with other hosts."""
    return panel_chart(
        "How many more fit without cn010 and cn011, and with ten more like cn012",
        (),
        [
            Panel(
                name,
                [
                    Row(when, [(number, count)], f"{count:,}")
                    for number, (when, count) in enumerate(
                        (("now", figures["now"]["count"]), ("then", figures["count"]))
                    )
                ],
            )
            for name, figures in flavors.items()
        ],
    )


def free_and_stranded(flavors: Counted) -> str:
    """What is free of each class, as shares: what each flavor can use, and what it cannot."""
    return panel_chart(
        "What is free, and what of it is stranded",
        ("can be used", "stranded"),
        [
            Panel(name, [_shares(*each) for each in figures["classes"].items()])
            for name, figures in flavors.items()
        ],
    )


def _shares(resource_class: str, left: Mapping[str, int]) -> Row:
    free = left["free"]
    parts = [(0, left["usable"] / free), (1, left["stranded"] / free)]
    return Row(resource_class, parts, f"{left['stranded']:,} of {free:,} stranded")
