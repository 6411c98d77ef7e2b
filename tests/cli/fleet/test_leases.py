# SPDX-License-Identifier: Apache-2.0
"""`berth lease`, and `berth place --lease`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest

from berth.cli.exit_codes import ExitCode
from berth.cli.fleet.durations import time_left, utc_time
from tests.cli.fleet.ways import BothWays, Printed
from tests.e2e.serving import wait_until

JOB = str(UUID(int=17))
PLACE = ("place", "VCPU=1", "--for", "web/job-17")

#: A time for people, today's or not.
TIME = r"(20\d\d-\d\d-\d\d )?\d\d:\d\d UTC"


@pytest.fixture(autouse=True)
def host(berth: BothWays) -> Iterator[None]:
    """A host, without consumers afterwards."""
    if berth("provider", "show", "cn1").code:
        berth.ok("provider", "create", "cn1", "--uuid", str(UUID(int=1)))
        berth.ok("inventory", "set", "cn1", "VCPU=8")
    yield
    berth("release", "web/job-17")


def each_way(berth: BothWays, *arguments: str) -> list[Printed]:
    """What a command prints both ways, one after the other, so that times may differ."""
    return [run(*arguments) for run in (berth.over_http, berth.on_database)]


def test_a_consumer_is_placed_with_a_lease(berth: BothWays) -> None:
    """The line says until when; the command can be run again."""
    for said in ("placed", "already placed"):
        for done in each_way(berth, *PLACE, "--lease", "10m"):
            line = rf"{said} web/job-17 on cn1: VCPU 1; leased until {TIME}\n"
            assert re.fullmatch(line, done.stdout), done
    assert berth.ok("release", "web/job-17").stdout.startswith("released")


def test_a_lease_is_set_listed_and_ended(berth: BothWays) -> None:
    """By the consumer's name; the list has the time that is left."""
    berth.ok("claim", "--for", "web/job-17", JOB, "cn1:VCPU=1")
    assert berth.ok("lease", "list").lines == ["0 leases"]
    for done in each_way(berth, "lease", "set", "web/job-17", "2h"):
        assert re.fullmatch(rf"web/job-17 is leased until {TIME}\n", done.stdout), done
    for done in each_way(berth, "lease", "list"):
        heads, row, count = done.lines
        assert heads.split() == ["CONSUMER", "USER", "EXPIRES", "LEFT"] and count == "1 lease"
        assert re.fullmatch(rf"web/job-17  web +{TIME}  (1h 59m|2h( 1s)?)", row), row
    for done in each_way(berth, "lease", "list", "--json"):
        assert '"seconds_left":' in done.stdout and '"end":true' in done.stdout
    ended = "ended the lease of web/job-17; it keeps its allocations\n"
    assert berth.ok("lease", "end", "web/job-17").stdout == ended
    refused = berth("lease", "end", "web/job-17")
    assert (refused.code, refused.stdout) == (ExitCode.SERVICE, "")
    assert "has no lease" in refused.stderr
    assert berth("lease", "set", "web/job-18", "10m").code == ExitCode.SERVICE


def test_the_next_to_expire_is_listed_first(berth: BothWays) -> None:
    """Whatever the names are."""
    for name, time in (("a", "1h"), ("b", "10m"), ("c", "2h")):
        each_way(berth, "place", "VCPU=1", "--for", f"web/{name}", "--lease", time)
    for done in each_way(berth, "lease", "list"):
        assert [row.split()[0] for row in done.lines[1:-1]] == ["web/b", "web/a", "web/c"]
    berth.ok("release", "web/a", "web/b", "web/c")


def prints(run: Callable[..., Printed], lines: list[str], *arguments: str) -> bool:
    """Whether a command prints these lines."""
    return run(*arguments).lines == lines


def test_expired_leases_are_swept(berth: BothWays) -> None:
    """Once, without waiting for a worker."""
    place = ("place", "VCPU=1", "--consumer", JOB, "--project", "web", "--user", "alice")
    expected = [f"released {JOB} of project web on cn1", "released 1 consumer"]
    for run in (berth.over_http, berth.on_database):
        assert run(*place, "--lease", "1s").code == 0
        wait_until(partial(prints, run, expected, "lease", "sweep"), "it to expire")
    assert berth.ok("lease", "sweep").lines == ["released 0 consumers"]
    assert berth.ok("lease", "sweep", "--json").answer == {"released": []}


@pytest.mark.parametrize("time", ["0", "10x", "-5", "25h", "", "1.5h"])
def test_a_wrong_time_is_refused(berth: BothWays, time: str) -> None:
    """Before anything is sent."""
    refused = berth("lease", "set", "--", "web/job-17", time)
    assert refused.code == ExitCode.USAGE
    assert f"{time} is not" in refused.stderr


def test_times_for_people() -> None:
    """With the date unless it is today's; a duration in two units."""
    now = datetime.now(UTC)
    assert utc_time(now) == f"{now:%H:%M} UTC"
    assert utc_time(datetime(2026, 3, 1, 14, 32, tzinfo=UTC)) == "2026-03-01 14:32 UTC"
    shown = {0: "0s", 59: "59s", 60: "1m", 605: "10m 5s", 86_400: "1d", 3_601: "1h 1s"}
    assert {seconds: time_left(seconds) for seconds in shown} == shown
