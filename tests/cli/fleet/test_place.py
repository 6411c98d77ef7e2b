# SPDX-License-Identifier: Apache-2.0
"""`berth place` and `berth move`, on the demo fleet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fleet.demo import load_demo
from tests.cli.fleet.ways import BothWays

CONSUMER = "11111111-2222-4333-8444-555555555501"
OTHER = "11111111-2222-4333-8444-555555555502"
OWNER = ("--project", "shop", "--user", "alice")


@pytest.fixture(scope="module", autouse=True)
def fleet(ways: tuple[str, Path]) -> None:
    """The demo fleet, both ways."""
    load_demo(*ways)


@pytest.fixture(autouse=True)
def released(berth: BothWays) -> Any:
    """Nothing of a test is left."""
    yield
    for consumer in (CONSUMER, OTHER):
        berth("release", consumer)


def host_of(berth: BothWays, consumer: str) -> str:
    """The host on which a consumer is, by the name of one of its providers."""
    shown = berth.ok("consumer", "show", consumer, "--json").answer
    (provider, *_) = shown["allocations"]
    name: str = berth.ok("provider", "show", provider, "--json").answer["name"]
    return name.partition("_")[0]


def test_a_consumer_is_placed_and_moved(berth: BothWays) -> None:
    """The command can be run again; a move keeps the amounts, and goes to another host."""
    at = ("--under", "cn010_numa0")
    command = ("place", "VCPU=1", *at, "--consumer", CONSUMER, *OWNER)
    (line,) = berth.ok(*command).lines
    assert line == f"placed {CONSUMER} on cn010: cn010_numa0 VCPU 1"
    assert berth.ok(*command).lines == [f"already {line}"]
    (moved,) = berth.ok("move", CONSUMER, "--under", "cn011_numa1", "--order", "pack").lines
    assert moved == f"placed {CONSUMER} on cn011: cn011_numa1 VCPU 1"
    assert host_of(berth, CONSUMER) == "cn011"
    to = ("--to", "cn011", "--under", "cn011_numa1")
    (bigger,) = berth.ok("move", CONSUMER, "VCPU=2", *to).lines
    assert bigger == f"placed {CONSUMER} on cn011: cn011_numa1 VCPU 2"
    for run in (berth.over_http, berth.on_database):
        # Each to a host of its choice.
        away = run("move", CONSUMER).stdout
        assert re.fullmatch(rf"placed {CONSUMER} on cn\d+: .*VCPU 2\n", away), away
        assert " on cn011: " not in away


def test_a_consumer_with_a_name_is_placed(berth: BothWays) -> None:
    """It needs no UUID, and the command can be run again."""
    command = ("place", "VCPU=1", "--under", "cn010_numa0", "--for", "shop/job-17")
    (line,) = berth.ok(*command).lines
    assert line == "placed shop/job-17 on cn010: cn010_numa0 VCPU 1"
    assert berth.ok(*command).lines == [f"already {line}"]
    assert "shop/job-17" in berth.ok("release", "shop/job-17").stdout
    for options, complaint in (
        (("--for", "job-17"), "--for job-17 is not PROJECT/NAME, as in web/job-17"),
        (("--for", "a/b", "--count", "2"), "--for excludes --project, --consumer and --count"),
        (("--user", "alice"), "say whose consumers they are: --for, or --project and --user"),
    ):
        refused = berth("place", "VCPU=1", *options)
        assert (refused.code, complaint in refused.stderr) == (2, True), refused


def test_several_are_placed_together(berth: BothWays) -> None:
    """Within the limits."""
    hosts = ("--host-in", "cn010", "--host-in", "cn011")
    consumers = ("--consumer", CONSUMER, "--consumer", OTHER)
    for run in (berth.over_http, berth.on_database):
        # The nodes are chosen by chance.
        lines = run("place", "VCPU=1", *hosts, *consumers, *OWNER, "--max-per", "host=1").stdout
        assert sorted(re.findall(r"on (cn\d+):", lines)) == ["cn010", "cn011"]


def test_a_dry_run_writes_nothing(berth: BothWays) -> None:
    """Its exit code says that it found places."""
    at = ("--under", "cn010_numa0", "--order", "any")
    command = ("place", "VCPU=1", *at, "--consumer", CONSUMER, *OWNER)
    printed = berth(*command, "--dry-run", "--within", "rack")
    assert (printed.code, printed.stderr) == (13, "berth: nothing was written\n")
    assert printed.stdout.startswith(f"would place {CONSUMER} on cn010: ")
    assert not berth.ok("consumer", "show", CONSUMER, "--json").answer["allocations"]
    answer = berth(*command, "--dry-run", "--json").answer
    assert [*answer["placements"]] == [CONSUMER]
    assumed = berth(*command, "--without-host", "cn010", "--dry-run")
    assert assumed.code == 14


def test_nothing_fits(berth: BothWays) -> None:
    """It prints what `berth why` prints."""
    printed = berth("place", "VCPU=33", *OWNER)
    assert (printed.code, printed.stderr) == (14, "berth: No host fits the request\n")
    assert printed.lines == berth.ok("why", "VCPU=33").lines
    several = berth(
        "place", "VCPU=1", "--host-in", "cn010", "--count", "2", *OWNER, "--max-per=host=1"
    )
    assert (several.code, several.stderr) == (14, "berth: At most 1 of the 2 consumers fit\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--max-per", "host"), "--max-per host is not KEY=N, as in host=1 or rack=2"),
        (("--consumer", OTHER, "--count", "2"), "--consumer and --count exclude each other"),
    ],
)
def test_a_wrong_option_is_refused(
    berth: BothWays, arguments: tuple[str, ...], sentence: str
) -> None:
    """Before anything is sent."""
    printed = berth("place", "VCPU=1", *arguments, *OWNER)
    assert printed.code == 2
    assert sentence in printed.stderr


def test_who_holds_nothing_cannot_be_moved(berth: BothWays) -> None:
    """Nor can a consumer be placed twice, elsewhere."""
    assert berth("move", CONSUMER).code == 11
    berth.ok("place", "VCPU=1", "--under", "cn010_numa0", "--consumer", CONSUMER, *OWNER)
    printed = berth("place", "VCPU=2", "--host-in", "cn010", "--consumer", CONSUMER, *OWNER)
    assert printed.code == 11
    assert "holds something already" in printed.stderr
