# SPDX-License-Identifier: Apache-2.0
"""`berth drain`, and drains in other commands, on the demo fleet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.fleet.ways import BothWays


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


@pytest.fixture(autouse=True)
def no_drains(berth: BothWays) -> Iterator[None]:
    """Each test begins without drains."""
    yield
    if names := [item["name"] for item in berth.ok("drain", "list", "--json").answer["drains"]]:
        berth.ok("drain", "delete", *names)


def test_a_drain_is_created_listed_shown_and_deleted(berth: BothWays) -> None:
    """A dry run first, which writes nothing."""
    rack = ("rack", "--member-of", "rack=r07", "--reason", "firmware 4.2")
    dry = berth("drain", "create", *rack, "--dry-run")
    assert (dry.code, dry.lines) == (13, ["8 hosts, 28 providers, 56 consumers"])
    assert dry.stderr == "berth: dry run: nothing was written\n"
    assert berth.ok("drain", "list").lines == ["0 drains"]
    created = berth.ok("drain", "create", *rack)
    assert created.lines == ["created rack: 8 hosts, 28 providers, 56 consumers"]
    other = ("rack", "cn053", "cn060_gpu0", "--announce")
    for dry_run in ([], ["--dry-run"]):
        taken = berth("drain", "create", *other, *dry_run)
        assert (taken.code, taken.stdout) == (11, "")
        assert taken.stderr == "berth: There is a drain rack already: --replace replaces it\n"
    assert berth.ok("drain", "show", "rack").lines[0] == "reason         firmware 4.2"
    replaced = berth.ok("drain", "create", *other, "--replace")
    assert replaced.lines == ["replaced rack: 2 hosts, 4 providers, 9 consumers"]
    assert berth.ok("drain", "list").lines == [
        "DRAIN  EFFECT  HOSTS  PROVIDERS  CREATED (UTC)     REASON",
        "rack   none        2          4  2026-11-23 22:40  -",
        "1 drain",
    ]
    assert berth.ok("drain", "show", "rack").lines == [
        "reason         -",
        "effect         none",
        "created (UTC)  2026-11-23 22:40 by admin",
        "HOST   CONSUMERS",
        "cn053          9",
        "cn060          0",
        "9 consumers left on 2 hosts",
    ]
    assert berth.ok("drain", "show", "rack", "--json").answer["consumers"] == 9
    changed = berth.ok("drain", "set", "rack", "--effect", "exclude", "--reason", "now")
    assert changed.lines == ["changed rack: 2 hosts, 4 providers, 9 consumers"]
    assert berth.ok("drain", "show", "rack").lines[:2] == [
        "reason         now",
        "effect         exclude",
    ]
    nothing = berth("drain", "set", "rack")
    assert nothing.code == 2 and "nothing to change" in nothing.stderr
    assert berth.ok("drain", "delete", "rack").lines == ["deleted rack"]
    gone = berth("drain", "show", "rack")
    assert (gone.code, gone.stderr) == (11, "berth: There is no drain rack\n")


def test_a_drain_says_what_becomes_of_each_flavor(berth: BothWays) -> None:
    """How many more fit now, and how many will."""
    berth.ok("flavor", "set", "there", "VCPU=1", "--host-in", "cn053")
    created = berth.ok("drain", "create", "d", "cn053").stdout
    assert re.fullmatch(r"created d: 1 host, .*; there [1-9]\d* -> 0\n", created), created
    berth.ok("flavor", "delete", "there")


def drained_hosts(berth: BothWays, name: str) -> set[str]:
    """The hosts of a drain."""
    left = berth.ok("drain", "show", name, "--json").answer["left"]
    return {each["host"]["name"] for each in left}


def test_hosts_are_selected_by_conditions(berth: BothWays) -> None:
    """All of which must hold; without any, nothing is named."""
    options = ("--anywhere", "CUSTOM_A100", "--required", "!CUSTOM_NONE,STORAGE_DISK_SSD")
    unknown = berth("drain", "create", "x", *options)
    assert unknown.code == 11 and "There is no trait CUSTOM_NONE" in unknown.stderr
    berth.ok("drain", "create", "x", "--anywhere", "CUSTOM_A100", "--member-of", "rack=r08")
    names = drained_hosts(berth, "x")
    berth.ok(
        *("drain", "create", "x", "--anywhere", "CUSTOM_A100", "--member-of", "rack=r08"),
        *("--not-in", "cn060", "--replace"),
    )
    assert names - drained_hosts(berth, "x") == {"cn060"}
    nothing = berth("drain", "create", "y")
    assert nothing.code == 2 and "no provider is named" in nothing.stderr


def test_the_tree_shows_what_is_drained(berth: BothWays) -> None:
    """At the providers that a drain names."""
    berth.ok("drain", "create", "ecc", "cn060_gpu0")
    berth.ok("drain", "create", "later", "cn060", "--announce")
    lines = berth.ok("provider", "tree", "cn060_gpu1").lines
    assert lines[0].endswith("  to be drained: later")
    assert [line.split()[0] for line in lines if line.endswith("  drained: ecc")] == ["cn060_gpu0"]


def test_questions_tolerate_and_assume_drains(berth: BothWays) -> None:
    """With the options of every question."""
    request = ("VCPU=1", "--host-in", "cn053", "--host-in", "cn060")
    berth.ok("drain", "create", "d", "cn053")
    berth.ok("drain", "create", "e", "cn060")
    why = berth("why", *request)
    assert why.lines[0].startswith("No host fits now; 2 would without drains. ")
    assert berth("candidates", *request).code == 14
    for options, due in (
        (("--tolerate", "d"), {"cn053"}),
        (("--tolerate", "*"), {"cn053", "cn060"}),
        (("--undrain", "e"), {"cn060"}),
        (("--undrain", "d", "--undrain", "e", "--drain", "cn053"), {"cn060"}),
    ):
        lines = berth.ok("candidates", *request, "--per-host", "1", *options).lines
        assert {line.split()[0] for line in lines[1:-1]} == due
