# SPDX-License-Identifier: Apache-2.0
"""`berth place` and `berth move`, on the demo fleet."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from berth.cli.failure import CommandFailed
from berth.cli.fleet.client import Client
from berth.cli.fleet.placing import send_placement
from berth.cli.fleet.references import names_of
from berth.cli.fleet.refusals import Forbidden, NotThere
from tests.cli.fleet.ways import BothWays

CONSUMER = "11111111-2222-4333-8444-555555555501"
OTHER = "11111111-2222-4333-8444-555555555502"
OWNER = ("--project", "shop", "--user", "alice")


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


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
    assert moved == f"moved {CONSUMER} from cn010 to cn011: cn011_numa1 VCPU 1"
    assert host_of(berth, CONSUMER) == "cn011"
    to = ("--to", "cn011", "--under", "cn011_numa1")
    (bigger,) = berth.ok("move", CONSUMER, "VCPU=2", *to).lines
    assert bigger == f"{CONSUMER} stays on cn011: cn011_numa1 VCPU 2"
    for run in (berth.over_http, berth.on_database):
        # Each to a host of its choice.
        away = run("move", CONSUMER, "VCPU=2").stdout
        assert re.fullmatch(rf"moved {CONSUMER} from cn011 to cn\d+: .*VCPU 2\n", away), away
        assert " to cn011: " not in away


def test_a_job_with_groups_is_moved(berth: BothWays) -> None:
    """With its own request, in which conditions of a move do not stay; the answer says from where
    to where."""
    name = "shop/job-18"
    groups = [f"--group={group} VCPU=1" for group in ("_A", "_B")]
    apart = ("--apart", "_A,_B@provider", "--order", "any")
    berth.ok("place", *groups, *apart, "--host-in", "cn010", "--for", name)
    held = "cn01{0}_numa0 VCPU 1; cn01{0}_numa1 VCPU 1"
    for before, after in ((0, 1), (1, 2)):
        to = ("--to", f"cn01{after}", "--order", "any")
        dry = berth("move", name, *to, "--dry-run")
        line = f"{name} from cn01{before} to cn01{after}: {held.format(after)}"
        assert (dry.code, dry.stdout) == (13, f"would move {line}\n")
        assert berth.ok("move", name, *to).lines == [f"moved {line}"]
    assert berth("move", name, "--host-not-in", "cn012", "--to", "cn012").code == 14
    for elsewhere, code in (((), 13), (("--host-not-in", "cn010"), 14)):
        assert berth("move", name, *elsewhere, "--dry-run").code == code
    amounts = berth.ok("consumer", "show", name, "--json").answer
    berth.ok("release", name)
    assert len(amounts["allocations"]) == 2


def test_a_move_says_that_a_request_is_unknown(berth: BothWays) -> None:
    """That of a consumer that was not placed."""
    berth.ok("claim", CONSUMER, "cn010_numa0:VCPU=1", *OWNER)
    moved = berth.warned("move", CONSUMER, "--to", "cn011", "--order", "any")
    assert moved.stdout.startswith(f"moved {CONSUMER} from cn010 to cn011: cn011_numa")
    assert moved.stderr == (
        "warning: What it asked for when it was placed is unknown; this request is made from what"
        " it holds.\n"
    )


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
        (("--user", "alice"), "the consumers have no owner: give --for, or --project and --user"),
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
    sentence = "berth: At most 1 of the 2 consumers fit with max_per host=1\n"
    # Hosts fit, so a table of what keeps them from it would say nothing.
    assert (several.code, several.stderr, several.stdout) == (14, sentence, "")


def test_what_does_not_exist_is_said(berth: BothWays) -> None:
    """A host or a label that is misspelt does not read as a full fleet."""
    there_is_none = "warning: There is no provider cn01O; it matches nothing; did you mean cn01"
    for command, code in (
        (("why", "VCPU=1"), 0),
        (("place", "VCPU=1", *OWNER), 11),
        (("candidates", "VCPU=1"), 11),
    ):
        printed = berth(*command, "--host-in", "cn01O")
        assert printed.code == code and printed.stderr.startswith(there_is_none)
    excluded = ("candidates", "VCPU=1", "--host-in", "cn010", "--host-not-in", "cn01O")
    assert berth.warned(*excluded).stderr.startswith(there_is_none)
    at = ("--host-in", "cn010", "--consumer", CONSUMER, *OWNER)
    placed = berth.warned("place", "VCPU=1", *at, "--order", "any", "--within", "racks")
    assert placed.stdout.startswith(f"placed {CONSUMER} on cn010: ")
    assert placed.stderr == "warning: No aggregate has the label racks; it matches nothing.\n"
    moved = berth("move", CONSUMER, "--to", "cn01O")
    assert moved.code == 11
    assert moved.stderr.startswith("berth: no provider is named cn01O; ")


def test_an_argument_without_an_equals_sign_is_a_flavor(berth: BothWays) -> None:
    """As in `berth capacity`."""
    berth.ok("flavor", "set", "tiny", "VCPU=1")
    at = ("--host-in", "cn010", "--order", "any")
    (placed,) = berth.ok("place", "tiny", *at, "--consumer", CONSUMER, *OWNER).lines
    assert placed.startswith(f"placed {CONSUMER} on cn010: ")
    (moved,) = berth.ok("move", CONSUMER, "tiny", "--to", "cn011", "--order", "any").lines
    assert moved.startswith(f"moved {CONSUMER} from cn010 to cn011: ")
    for question in ("candidates", "why"):
        assert berth.ok(question, "tiny").lines == berth.ok(question, "--flavor", "tiny").lines
    for arguments, sentence in (
        (("tiny", "small"), "a request has one flavor: remove small"),
        (("tiny", "--flavor", "tiny"), "a request has one flavor: remove tiny"),
    ):
        refused = berth("why", *arguments)
        assert (refused.code, sentence in refused.stderr) == (2, True), refused
    berth.ok("flavor", "delete", "tiny")


def test_a_flavor_is_preserved(berth: BothWays) -> None:
    """Its options are those of the order of a body."""
    berth.ok("flavor", "set", "large", "VCPU=16")
    command = ("place", "VCPU=1", "--host-in", "cn010", "--consumer", CONSUMER, *OWNER)
    (placement,) = (
        berth.ok(*command, "--preserve", "large=2", "--json").answer["placements"].values()
    )
    assert 0 < placement["score"]["preserve"] <= 1
    refused = berth(*command, "--preserve", "large", "--order", "pack")
    assert "--order and --preserve exclude each other" in refused.stderr
    assert "--preserve large=x is not FLAVOR" in berth(*command, "--preserve", "large=x").stderr
    berth.ok("flavor", "delete", "large")


def test_a_dry_run_assumes_an_allocation_ratio(berth: BothWays) -> None:
    """On all hosts, or on those of some aggregates."""
    command = ("place", "VCPU=33", "--host-in", "cn010", *OWNER, "--dry-run")
    zone = "zone=z1"
    assert berth(*command).code == 14
    for run in (berth.over_http, berth.on_database):
        for ratio in ("VCPU=64", f"VCPU=64.0@{zone}", f"VCPU=64@in:{zone},zone=z3"):
            printed = run(*command, "--allocation-ratio", ratio)
            assert (printed.code, printed.stderr) == (13, "berth: nothing was written\n"), printed
    assert (
        "--allocation-ratio VCPU is not CLASS=RATIO"
        in berth(*command, "--allocation-ratio", "VCPU").stderr
    )


def test_a_move_ends_a_lease_unless_it_has_one(berth: BothWays) -> None:
    """It says so, and calls the consumer what the user called it."""
    name = "shop/job-19"
    at = ("--host-in", "cn010", "--order", "any", "--under", "cn010_numa0")
    berth.ok("place", "VCPU=1", *at, "--for", name, "--lease", "10m")
    again = ("move", name, "--to", "cn010", "--under", "cn010_numa0", "--order", "any")
    placed = f"{name} stays on cn010: cn010_numa0 VCPU 1"
    (leased,) = berth.ok(*again, "--lease", "10m").lines
    assert re.fullmatch(rf"{placed}; leased until .+", leased)
    dry = berth(*again, "--dry-run")
    would_stay = placed.replace("stays", "would stay")
    assert (dry.code, dry.stdout) == (13, f"{would_stay}; its lease would end\n")
    assert berth.ok(*again).lines == [f"{placed}; its lease ended"]
    assert berth.ok(*again).lines == [placed]
    berth.ok("release", name)


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
    assert printed.stderr == (
        f"berth: Consumer {CONSUMER} holds something already; `berth move` moves a consumer, and"
        " `berth release` gives back what it has\n"
    )
    for consumer in (CONSUMER, OTHER):
        berth("release", consumer)
    berth.ok("place", "VCPU=1", "--under", "cn010_numa0", "--for", "shop/job-20")
    named = berth("place", "VCPU=2", "--host-in", "cn010", "--for", "shop/job-20")
    assert named.stderr.startswith("berth: Consumer shop/job-20 holds something already; ")
    berth.ok("release", "shop/job-20")


def test_a_service_that_sends_names_is_not_asked_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So a member of a project sees them in a dry run, too."""

    class Newer(Member):
        def send(self, method: str, path: str, body: object) -> Any:
            """The same, with names."""
            answer = super().send(method, path, body).json()
            return SimpleNamespace(json=lambda: {**answer, "providers": {"u0": "cn1", "u1": "g0"}})

    consumers = [{"project_id": "web", "name": f"job-{number}"} for number in (1, 2)]
    with pytest.raises(CommandFailed):
        send_placement(cast(Client, Newer()), {"consumers": consumers}, dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "would place web/job-1 on cn1: g0 PGPU 1",
        "would place web/job-2 on cn1: g0 PGPU 1",
    ]


class Member:
    """A client whose caller may not read providers, but the consumers of a project."""

    as_json = False

    def read(self, path: str, *query: tuple[str, str]) -> Any:
        """Refuse."""
        raise Forbidden(f"you have the role member: {path} {query}")

    def send(self, method: str, path: str, body: object) -> Any:
        """Place two consumers, on the device of a host."""
        allocations = {"u1": {"resources": {"PGPU": 1}}}
        placed = {"host": "u0", "allocations": allocations}
        return SimpleNamespace(
            json=lambda: {"repeated": False, "placements": {"c1": placed, "c2": placed}}
        )

    def consumer(self, reference: str) -> Any:
        """One with the names of its providers; the other was released meanwhile."""
        if reference == "c2":
            raise NotThere("it holds nothing")
        return SimpleNamespace(providers={"u1": "cn1_gpu0"})


def test_a_member_sees_the_names_in_its_own_consumers(capsys: pytest.CaptureFixture[str]) -> None:
    """A placement that succeeded is no error; what has no name for the caller keeps its UUID."""
    client = cast(Client, Member())
    assert names_of(client, ["u0", "u1"]) == {"u0": "u0", "u1": "u1"}
    consumers = [{"project_id": "web", "name": f"job-{number}"} for number in (1, 2)]
    send_placement(client, {"consumers": consumers}, dry_run=False)
    assert capsys.readouterr().out.splitlines() == [
        "placed web/job-1 on u0: cn1_gpu0 PGPU 1",
        "placed web/job-2 on u0: cn1_gpu0 PGPU 1",
    ]
