# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/fleet`: every provider as of one state. Source: spec/beyond.md 6.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.claims import consumer
from tests.api.configured import serve
from tests.api.worlds import done, new_name, provider
from tests.client import Client, Response

PATH = "/berth/v1/fleet"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module."""
    return serve(tmp_path_factory.mktemp("fleet"))


def lines_of(answer: Response) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header, and the lines of providers."""
    done(answer, 200)
    assert answer.headers["content-type"] == "application/jsonl"
    header, *lines, end = map(json.loads, answer.text.splitlines())
    assert end == {"end": True, "lines": len(lines)}
    assert (header["berth"], header["providers"]) == ("fleet", len(lines))
    return header, lines


def test_a_line_has_everything_that_belongs_to_a_provider(api: Client) -> None:
    """Parents come before their children, with nothing of another tree in between."""
    name = new_name("cn")
    host = provider(api, {"VCPU": 8}, name=name)
    card = provider(api, {"VGPU": 4}, parent=host, name=f"{name}_0")
    consumer(api, {host: {"VCPU": 3}})
    _, lines = lines_of(api.get(PATH))
    roots = [line["root"] for line in lines]
    first = roots.index(host)
    root, child = lines[first : first + roots.count(host)]
    assert root == {
        "uuid": host,
        "name": name,
        "parent": None,
        "root": host,
        "generation": api.get(f"/resource_providers/{host}").json["generation"],
        "inventories": {
            "VCPU": {
                "total": 8,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 2**31 - 1,
                "step_size": 1,
                "allocation_ratio": 1.0,
            }
        },
        "usages": {"VCPU": 3},
        "traits": [],
        "aggregates": [],
        "drains": [],
    }
    assert (child["uuid"], child["parent"], child["usages"]) == (card, host, {"VGPU": 0})


def test_the_client_says_what_to_show(api: Client) -> None:
    """`allocations` adds what each consumer holds; without parts, the tree alone is shown."""
    host = provider(api, {"VCPU": 8, "MEMORY_MB": 64})
    holder = consumer(api, {host: {"VCPU": 3, "MEMORY_MB": 16}})
    _, lines = lines_of(api.get(f"{PATH}?include=usages,allocations"))
    (line,) = (each for each in lines if each["uuid"] == host)
    assert line["consumers"] == {holder: {"VCPU": 3, "MEMORY_MB": 16}}
    assert line["usages"] == {"VCPU": 3, "MEMORY_MB": 16}
    assert "traits" not in line
    _, lines = lines_of(api.get(f"{PATH}?include="))
    (line,) = (each for each in lines if each["uuid"] == host)
    assert line.keys() == {"uuid", "name", "parent", "root", "generation"}


def test_whoever_has_it_is_told_so(api: Client) -> None:
    """The entity tag is the revision, of the plain form and of that with allocations."""
    host = provider(api, {"VCPU": 8})
    for path in (PATH, f"{PATH}?include=allocations"):
        header, _ = lines_of(answer := api.get(path))
        assert answer.headers["etag"] == f'"{header["revision"]}"'
        tag = {"If-None-Match": answer.headers["etag"]}
        assert api.get(path, headers=tag).status == 304
        consumer(api, {host: {"VCPU": 1}})
        assert api.get(path, headers=tag).status == 200
