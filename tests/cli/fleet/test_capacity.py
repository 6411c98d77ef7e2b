# SPDX-License-Identifier: Apache-2.0
"""`berth capacity` on the demo fleet, and what people see of each kind of answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from berth.cli.fleet.capacity_tables import print_capacities
from tests.cli.fleet.ways import BothWays

#: Of the example of spec/beyond.md 8.
LARGE: dict[str, Any] = {
    "count": 10234,
    "at_most": 10234,
    "exact": True,
    "hosts": 412,
    "classes": {"VCPU": {"free": 61200, "usable": 40936, "stranded": 20264, "largest": 46}},
}


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


def test_a_request_given_by_options_is_counted(berth: BothWays) -> None:
    """By zone, with the sum last; the parts add up, because no zone has a pool of another."""
    heads, *lines = berth.ok("capacity", "VCPU=8", "MEMORY_MB=32768", "--by", "zone").lines
    assert heads.split() == ["FLAVOR", "ZONE", "COUNT", "HOSTS", "STRANDED", "LARGEST"]
    counts = {line.split()[1]: int(line.split()[2].replace(",", "")) for line in lines}
    assert list(counts) == ["z1", "z2", "z3", "all"]
    assert counts["all"] == counts["z1"] + counts["z2"] + counts["z3"] > 0


def test_options_are_the_body_of_a_question(berth: BothWays, tmp_path: Path) -> None:
    """--json prints the answer; a file says the same as options; --hosts names the best."""
    arguments = ("VCPU=8", "--host-member-of", "zone=z3", "--hosts", "2")
    answer = berth.ok("capacity", *arguments, "--json").answer
    figures = answer["flavors"]["request"]
    assert len(figures["best"]) == 2
    file = tmp_path / "request.json"
    request = {
        "groups": {"": {"resources": {"VCPU": 8}}},
        "host": {"member_of": ["zone=z3"]},
    }
    file.write_text(json.dumps(request))
    from_file = berth.ok("capacity", "--request", str(file), "--hosts", "2", "--json").answer
    assert from_file["flavors"] == answer["flavors"]
    best = figures["best"][0]
    shown = berth.ok("capacity", *arguments).lines
    assert shown[-1].startswith(f"request on {best['host']['name']} {best['count']}, ")


def test_what_would_be_is_shown_beside_what_is(berth: BothWays, tmp_path: Path) -> None:
    """A host less, and eleven more; what stands in a file counts beside the options."""
    assumed = ("--without-host", "cn010", "--add-host", "cn011*10", "--add-host", "cn012")
    printed = berth.ok("capacity", "VCPU=8", *assumed)
    heads, row = printed.lines
    assert heads.split()[:4] == ["FLAVOR", "NOW", "THEN", "HOSTS"]
    now, then = (int(each.replace(",", "")) for each in row.split()[1:3])
    assert now < then
    answer = berth.ok("capacity", "VCPU=8", *assumed, "--by", "host", "--json").answer
    hosts = {line["name"] for line in answer["flavors"]["request"]["by"]["host"].values()}
    assert {"cn011#1", "cn011#10", "cn012#1"} <= hosts
    assert "cn010" not in hosts
    assert "cn012#2" not in hosts
    file = tmp_path / "request.json"
    request = {"groups": {"": {"resources": {"VCPU": 8}}}}
    file.write_text(json.dumps({"request": request, "what_if": {"without_hosts": ["cn010"]}}))
    asked = ("capacity", "--request", str(file), *assumed[2:])
    assert berth.ok(*asked).lines == printed.lines


def test_without_arguments_all_flavors_are_counted(berth: BothWays) -> None:
    """There are none."""
    assert berth.ok("capacity").lines == ["There are no flavors."]
    printed = berth("capacity", "m1.large")
    assert printed.code != 0
    assert "There is no flavor m1.large" in printed.stderr


def test_a_host_that_does_not_exist_is_said(berth: BothWays) -> None:
    """It changes nothing, so the counts alone would mislead."""
    warned = berth.warned("capacity", "VCPU=8", "--without-host", "cn999")
    assert "There is no provider cn999; it matches nothing; did you mean cn" in warned.stderr


@pytest.mark.parametrize("text", ["cn1*0", "*3"])
def test_hosts_to_add_have_a_name_and_a_number(berth: BothWays, text: str) -> None:
    """A wrong option is refused before anything is asked."""
    printed = berth("capacity", "VCPU=1", "--add-host", text)
    assert printed.code == 2
    assert f"--add-host '{text}' is not PROVIDER or PROVIDER*N" in printed.stderr


def printed_of(flavors: Any, capsys: pytest.CaptureFixture[str], *by: str) -> list[str]:
    """What people see of an answer."""
    print_capacities({"complete": True, "flavors": flavors, "warnings": []}, by)
    return capsys.readouterr().out.splitlines()


def test_counts_that_differ_are_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """At least and at most; a flavor that could not be counted says why."""
    gone = {"at": "/flavors/old/groups//required/0", "kind": "trait", "name": "CUSTOM_GONE"}
    flavors = {
        "m1.large": LARGE,
        "gpu.a100": LARGE | {"count": 17, "at_most": 19, "exact": False},
        "old": {"unknown": [gone]},
    }
    assert printed_of(flavors, capsys) == [
        "FLAVOR     COUNT  HOSTS  STRANDED               LARGEST",
        "m1.large  10,234    412  VCPU 20,264 of 61,200  VCPU 46",
        "gpu.a100   17-19    412  VCPU 20,264 of 61,200  VCPU 46",
        "old was not counted: there is no trait CUSTOM_GONE",
    ]


def test_time_that_ended_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the table."""
    answer = {"complete": False, "flavors": {"m1.large": LARGE}, "warnings": []}
    print_capacities(answer, ())
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "The time ended: some figures are lower bounds."


def test_several_keys_share_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    """Each part says which key it is of."""
    line = {"count": 3, "at_most": 3, "hosts": 2, "now": {"count": 1, "at_most": 1, "hosts": 1}}
    flavors = {
        "m1": LARGE | {"now": LARGE, "by": {"zone": {"z1": line}, "rack": {"r7": line}}},
    }
    assert [text.split()[:4] for text in printed_of(flavors, capsys, "zone", "rack")] == [
        ["FLAVOR", "PART", "NOW", "THEN"],
        ["m1", "zone=z1", "1", "3"],
        ["m1", "rack=r7", "1", "3"],
        ["m1", "all", "10,234", "10,234"],
    ]
