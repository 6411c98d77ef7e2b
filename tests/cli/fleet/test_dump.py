# SPDX-License-Identifier: Apache-2.0
"""`berth dump`: the whole fleet, over HTTP and from the database."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from tests.cli.fleet.ways import BothWays, Printed

HOST = str(UUID(int=7001))


def dumped(printed: Printed) -> list[dict[str, object]]:
    """The lines without the revision, which each database has of its own."""
    assert printed.code == 0
    header, *lines = map(json.loads, printed.lines)
    assert header.pop("revision")
    return [header, *lines]


def test_the_fleet_is_printed(berth: BothWays, tmp_path: Path) -> None:
    """Whole, or the parts that are asked for; to a file, if one is named."""
    berth.ok("provider", "create", "dumped01", "--uuid", HOST)
    berth.ok("inventory", "set", "dumped01", "VCPU=64")
    whole, on_database = (run("dump") for run in (berth.over_http, berth.on_database))
    assert dumped(whole) == dumped(on_database)
    header, *lines, end = dumped(whole)
    assert end == {"end": True, "lines": header["providers"]}
    (line,) = (each for each in lines if each["uuid"] == HOST)
    assert (line["name"], line["usages"]) == ("dumped01", {"VCPU": 0})
    target = tmp_path / "fleet.jsonl"
    assert berth.over_http("dump", "--include", "traits", "--output", str(target)).stdout == ""
    first = json.loads(target.read_text().splitlines()[1])
    assert "traits" in first
    assert "usages" not in first
    berth.ok("provider", "delete", "dumped01")
