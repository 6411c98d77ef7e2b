# SPDX-License-Identifier: Apache-2.0
"""`berth audit`: what nobody stands behind any more (spec/compute-side.md 7)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

from berth import config
from berth.cli.failure import ExitCode
from berth.direct import PlacementDirect
from berth.hosts.audit import Known, read_world, suspects
from berth.hosts.service import Service
from tests.cli.in_process import InProcess
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

WORLD = """
    nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    cn1  VCPU=8  @A
      gpu  VGPU=4  CUSTOM_GOLD
    cn2  VCPU=8(reserved:1,ratio:2.0)  @A
    old  VCPU=8
      old-gpu  VGPU=2  CUSTOM_GOLD  @A
    i1: cn1 VCPU=1, gpu VGPU=1, nfs DISK_GB=5
    i2: cn1 VCPU=1, nfs DISK_GB=5
    i3: cn1 VCPU=1, cn2 VCPU=1, nfs DISK_GB=5
    m1: cn2 VCPU=1
"""


class Office:
    """A database with a drawn world in it, and `berth audit` beside it, with no service."""

    def __init__(self, folder: Path, run: InProcess) -> None:
        self.folder = folder
        self._run = run
        self._url = f"sqlite:///{folder}/berth.db"
        self._conf = folder / "placement.conf"
        self._conf.write_text(f"[placement_database]\nconnection = {self._url}\n")
        with self.stage() as stage:
            stage.show(WORLD)
            stage.hold("m1", "cn2 VCPU=1", kind="MIGRATION")

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        """The service in this process."""
        with PlacementDirect(config.load([str(self._conf)])) as client:
            stage = Stage(client)
            stage.name_consumers("i1", "i2", "i3", "m1")
            stage.name_aggregates("A")
            yield stage

    def picture(self) -> str:
        """The state of the database, drawn."""
        with self.stage() as stage:
            return stage.picture()

    def write(self, name: str, *lines: str) -> Path:
        """A list in a file."""
        path = self.folder / name
        path.write_text("# a list\n" + "".join(f"{line}\n" for line in lines))
        return path

    def audit(self, *options: object, answer: str = "") -> subprocess.CompletedProcess[str]:
        """`berth audit ...`."""
        arguments = [str(option) for option in options]
        stdin = StringIO(answer)
        return self._run("audit", *arguments, "--config-file", str(self._conf), stdin=stdin)


@pytest.fixture
def office(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Office:
    """An office whose files are written into an empty directory."""
    monkeypatch.chdir(tmp_path)
    return Office(tmp_path, InProcess(monkeypatch, capsys))


def without(drawing: str, *parts: str) -> str:
    """A drawing with some parts left out."""
    for part in parts:
        assert part in drawing
        drawing = drawing.replace(part, "")
    return drawing


def test_without_lists_nothing_is_judged_but_what_contradicts_itself(office: Office) -> None:
    """One consumer on two hosts is told, and nothing can be fixed."""
    done = office.audit("--fix", "--yes")
    assert done.returncode == ExitCode.INCONSISTENT
    assert done.stdout.splitlines() == [
        f"consumer {consumer_uuid('i3')} has allocations on several hosts, cn1, cn2; --placed does "
        f"not say which is right",
        "4 consumers not checked: pass --living TYPE=FILE",
    ]
    assert office.picture() == drawn(WORLD)


def test_who_is_known_to_live_costs_no_request(office: Office) -> None:
    """Of a fleet, one request a provider and not one a guest."""
    living = frozenset(map(consumer_uuid, ("i1", "i2", "i3")))
    with office.stage() as stage:
        service = Service(stage.transport)
        world = read_world(service)
        assert service.requests.total() == 2 + len(world.providers)
        found = suspects(world, Known(living={"INSTANCE": living}))
    assert set(found) == {consumer_uuid("i3"), consumer_uuid("m1")}


def test_consumers_that_are_gone_are_released_and_can_be_put_back(office: Office) -> None:
    """All of what they hold, in one step for each; the undo file restores it exactly."""
    living = office.write("living", *map(consumer_uuid, ("i1", "i3")))
    office.write("placed", f"{consumer_uuid('i3')} cn1", f"{consumer_uuid('i3')} cn2")
    lists = ("--living", f"INSTANCE={living}", "--placed", office.folder / "placed")
    told = office.audit(*lists)
    assert (
        f"orphaned consumer (INSTANCE) {consumer_uuid('i2')} still holds VCPU=1 on cn1, DISK_GB=5 "
        f"on nfs\n"
    ) in told.stdout
    assert "1 problem found, none fixed (use --fix)" in told.stderr
    assert (told.returncode, office.picture()) == (ExitCode.INCONSISTENT, drawn(WORLD))

    assert office.audit(*lists, "--fix", "--yes", "--undo-file", "undo").returncode == ExitCode.OK
    assert office.picture() == drawn(without(WORLD, "i2: cn1 VCPU=1, nfs DISK_GB=5\n"))
    assert "no problems found" in office.audit(*lists).stdout

    assert office.audit("--undo", "undo").returncode == ExitCode.OK
    assert office.picture() == drawn(WORLD)
    assert "nothing to do" in office.audit("--undo", "undo").stdout


def test_consumers_of_nova_are_released_and_come_back_without_a_type(office: Office) -> None:
    """It writes none, so that their type is shown as `unknown`, which cannot be written."""
    with office.stage() as stage:
        for name, held in (("i2", "cn1 VCPU=1, nfs DISK_GB=5"), ("m1", "cn2 VCPU=1")):
            stage.hold(name, "")
            stage.hold(name, held, kind=None)
    told = office.audit("--living", f"INSTANCE={office.write('living', consumer_uuid('i1'))}")
    assert (
        "2 consumers of type unknown not checked: pass --living unknown=FILE (nova's instances and "
        "migrations are both of this type: list both in the file)"
    ) in told.stdout

    unknown = office.write("unknown", consumer_uuid("m1"))
    placed = office.write("placed", *(f"{consumer_uuid('i3')} {host}" for host in ("cn1", "cn2")))
    lists = ("--living", f"unknown={unknown}", "--placed", placed)
    done = office.audit(*lists, "--fix", "--yes", "--undo-file", "undo")
    assert f"fixed: orphaned consumer {consumer_uuid('i2')} still holds VCPU=1 on" in done.stdout
    assert done.returncode == ExitCode.OK
    assert office.picture() == drawn(without(WORLD, "i2: cn1 VCPU=1, nfs DISK_GB=5\n"))

    assert office.audit("--undo", "undo").returncode == ExitCode.OK
    assert office.picture() == drawn(WORLD)
    with office.stage() as stage:
        assert stage.type_of("i2") == "unknown"


def test_a_consumer_of_nova_that_holds_of_two_hosts_keeps_the_right_one(office: Office) -> None:
    """And stays without a type."""
    with office.stage() as stage:
        stage.hold("i3", "")
        stage.hold("i3", "cn1 VCPU=1, cn2 VCPU=1, nfs DISK_GB=5", kind=None)
    placed = office.write("placed", f"{consumer_uuid('i3')} cn2")
    assert office.audit("--placed", placed, "--fix", "--yes").returncode == ExitCode.OK
    assert office.picture() == drawn(WORLD.replace("i3: cn1 VCPU=1, cn2", "i3: cn2"))
    with office.stage() as stage:
        assert stage.type_of("i3") == "unknown"


def test_several_lists_of_one_type_count_together(office: Office) -> None:
    """Who is in one of them lives, be it of a file or of a command."""
    first = office.write("first", consumer_uuid("i1"))
    second = office.write("second", consumer_uuid("i2"))
    third = f"INSTANCE=echo {consumer_uuid('i3')}"
    files = ("--living", f"INSTANCE={first}", "--living", f"INSTANCE={second}")
    assert "orphaned" not in office.audit(*files, "--living-command", third).stdout


def test_who_is_created_while_the_lists_are_made_is_no_orphan(office: Office) -> None:
    """A --living-command runs after the service is read, so it lists everyone who was there."""
    living = office.write("living", *map(consumer_uuid, ("i1", "i2", "i3")))
    claim = f"claim {consumer_uuid('i4')} cn1:VCPU=1 --project web --user alice"
    berth = f"{sys.executable} -m berth.cli {claim} --config-file placement.conf"
    told = office.audit("--living-command", f"INSTANCE=cat {living}; {berth} >&2")
    assert (told.returncode, consumer_uuid("i4") in told.stdout) == (ExitCode.INCONSISTENT, False)
    assert consumer_uuid("i4") in office.audit("--living", f"INSTANCE={living}").stdout


def test_a_refusal_is_that_of_one_finding(office: Office) -> None:
    """It is told, the others are taken down, and the exit code says that something is left."""
    with office.stage() as stage:
        stage.hold("i3", "cn1 VCPU=1, cn2 VCPU=3")
        # The host was cut down, so that what is left of it does not fit any more.
        stage.stock("cn1", "VCPU", total=8, min_unit=2)
    living = office.write("living", consumer_uuid("i1"), consumer_uuid("i3"))
    placed = office.write("placed", f"{consumer_uuid('i3')} cn1")
    lists = ("--living", f"INSTANCE={living}", "--placed", placed)
    done = office.audit(*lists, "--fix", "--yes", "--at-most", 2, "--undo-file", "undo")
    assert done.returncode == ExitCode.INCONSISTENT
    assert f"refused: consumer {consumer_uuid('i3')} has allocations on several" in done.stdout
    assert f"fixed: orphaned consumer (INSTANCE) {consumer_uuid('i2')} still" in done.stdout
    assert "2 problems found, 1 fixed" in done.stderr

    done = office.audit("--undo", "undo")
    assert f"refused: {consumer_uuid('i2')}: PUT " in done.stdout
    assert f"nothing to do: {consumer_uuid('i3')}" in done.stdout
    assert "1 of 2 were not restored" in done.stderr
    assert done.returncode == ExitCode.INCONSISTENT


def test_a_leaked_migration_is_told_by_its_name(office: Office) -> None:
    """By what a command prints."""
    living = f"MIGRATION=echo {consumer_uuid('m9')}"
    done = office.audit("--living-command", living, "--fix", "--yes")
    assert f"leaked migration {consumer_uuid('m1')} still holds VCPU=1 on cn2\n" in done.stdout
    assert office.picture() == drawn(without(WORLD, "m1: cn2 VCPU=1\n"))


@pytest.mark.parametrize("host", ["cn2", provider_uuid("cn2")])
def test_who_holds_of_two_hosts_keeps_the_right_one(office: Office, host: str) -> None:
    """And what is shared; a host may be named by its uuid."""
    placed = office.write("placed", f"{consumer_uuid('i3')} {host}")
    assert office.audit("--placed", placed, "--fix", "--yes").returncode == ExitCode.OK
    assert office.picture() == drawn(WORLD.replace("i3: cn1 VCPU=1, cn2", "i3: cn2"))


def test_who_is_on_neither_host_is_left_alone(office: Office) -> None:
    """What is known contradicts what is held: nothing is certain."""
    placed = office.write("placed", f"{consumer_uuid('i3')} cn9")
    done = office.audit("--placed", placed, "--fix", "--yes")
    assert "several hosts, cn1, cn2; --placed has it on cn9" in done.stdout
    assert (done.returncode, office.picture()) == (ExitCode.INCONSISTENT, drawn(WORLD))


def test_a_list_that_cannot_be_read_is_named_with_the_reason(office: Office) -> None:
    """One sentence in words, without an error number or a codec."""
    binary = office.folder / "binary"
    binary.write_bytes(b"\xff")
    for path, reason in (
        (office.folder / "absent", "cannot read {}: no such file or directory"),
        (office.folder, "cannot read {}: is a directory"),
        (binary, "{} is not UTF-8 text"),
    ):
        done = office.audit("--living", f"INSTANCE={path}")
        assert (done.returncode, done.stderr) == (
            ExitCode.USAGE,
            f"berth: {reason.format(path)}\n",
        )


@pytest.mark.parametrize("host", ["cn1", provider_uuid("cn1")])
def test_a_tree_without_a_host_goes_and_comes_back_whole(office: Office, host: str) -> None:
    """Where nobody holds anything of it; sharing providers are no hosts, and a host may be named
    by its uuid."""
    hosts = office.write("hosts", host)
    done = office.audit("--hosts", hosts, "--fix", "--yes", "--undo-file", "undo")
    assert (
        f"old ({provider_uuid('old')}) is not in --hosts; 2 providers with VCPU=8 on old, VGPU=2 "
        f"on old-gpu\n"
    ) in done.stdout
    assert (
        f"cn2 ({provider_uuid('cn2')}) is not in --hosts; 1 of its providers still have allocations"
    ) in done.stdout
    lines = [line for line in WORLD.splitlines(keepends=True) if "old" in line]
    assert f"cn1 ({provider_uuid('cn1')})" not in done.stdout
    assert office.picture() == drawn(without(WORLD, *lines))
    assert office.audit("--undo", "undo").returncode == ExitCode.OK
    assert office.picture() == drawn(WORLD)


def test_what_was_changed_since_is_left_alone(office: Office) -> None:
    """An undo does not take from a consumer what it was given later."""
    living = office.write("living", consumer_uuid("i3"))
    options = ("--fix", "--yes", "--at-most", 2, "--undo-file", "undo")
    office.audit("--living", f"INSTANCE={living}", *options)
    with office.stage() as stage:
        stage.hold("i1", "cn2 VCPU=2")
    done = office.audit("--undo", "undo")
    assert done.returncode == ExitCode.INCONSISTENT
    assert f"changed since, left alone: {consumer_uuid('i1')}" in done.stdout
    assert "i1: cn2 VCPU=2" in office.picture()
    assert "i2: cn1 VCPU=1, nfs DISK_GB=5" in office.picture()


def test_nothing_is_done_without_a_yes(office: Office) -> None:
    """And what would be is shown."""
    living = office.write("living", consumer_uuid("i1"))
    options = ("--living", f"INSTANCE={living}", "--fix", "--at-most", 2)
    done = office.audit(*options, answer="n\n")
    assert "Remove 2 of 2?" in done.stderr
    assert (done.returncode, office.picture()) == (ExitCode.INCONSISTENT, drawn(WORLD))


def test_where_nobody_can_answer_it_says_how_to(office: Office) -> None:
    """As under cron."""
    living = office.write("living", consumer_uuid("i1"))
    done = office.audit("--living", f"INSTANCE={living}", "--fix", "--at-most", 2)
    assert "got no answer: add --yes" in done.stderr
    assert (done.returncode, office.picture()) == (2, drawn(WORLD))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--living", "INSTANCE"), "is not TYPE=FILE"),
        (("--living", "INSTANCE=nowhere"), "cannot read nowhere: no such file"),
        (("--living", "INSTANCE=empty"), "empty is empty, which is probably a mistake"),
        (("--living", "INSTANCE=bad"), "`cn1` is not a uuid"),
        (("--living-command", "INSTANCE=echo; exit 3"), "ended with exit code 3"),
        (("--placed", "bad"), "names no host"),
        (("--undo", "bad"), "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(
    office: Office, options: tuple[str, ...], said: str
) -> None:
    """Nobody is judged by half a list."""
    office.write("empty")
    office.write("bad", "cn1")
    done = office.audit(*options, "--fix", "--yes")
    assert said in done.stderr and done.returncode in (ExitCode.USAGE, ExitCode.CONFIGURATION)
    assert office.picture() == drawn(WORLD)


def test_what_is_found_can_be_read_by_programs(office: Office) -> None:
    """As JSON, with what was not judged."""
    office.write("instances", *map(consumer_uuid, ("i1", "i2", "i3")))
    done = office.audit("--json", "--living", "INSTANCE=instances")
    assert json.loads(done.stdout)["not_judged"] == {"MIGRATION": 1}
    placed = office.write("placed", f"{consumer_uuid('i3')} cn1")
    (fixable,) = json.loads(office.audit("--json", "--placed", placed).stdout)["found"]
    assert fixable["lost"] == {provider_uuid("cn2"): {"VCPU": 1}}
    (found,) = json.loads(done.stdout)["found"]
    assert found["subject"] == consumer_uuid("i3") and not found["can_be_fixed"]


@pytest.mark.parametrize("list_cut_short", ["hosts", "consumers"])
def test_a_list_that_was_cut_short_removes_nothing(office: Office, list_cut_short: str) -> None:
    """More than a tenth of the hosts, or of the consumers, looks like a mistake: the message says
    how many of how many, and --at-most allows as many as somebody has counted."""
    with office.stage() as stage:
        stage.show("".join(f"    spare{number}  VCPU=8\n" for number in range(9)))
    before = office.picture()
    lists: tuple[object, ...]
    if list_cut_short == "hosts":
        lists = ("--hosts", office.write("hosts", "cn1", "cn2", "old"))
        share, number = "9 of 12 hosts", 9
    else:
        lists = ("--living", f"INSTANCE={office.write('living', consumer_uuid('i1'))}")
        share, number = "2 of 4 consumers", 2
    fix = (*lists, "--fix", "--yes")
    done = office.audit(*fix)
    assert f"nothing was removed: {share} would be, which is more than a tenth" in done.stderr
    assert f"--at-most {number} removes" in done.stderr
    assert (done.returncode, office.picture()) == (ExitCode.INCONSISTENT, before)

    done = office.audit(*fix, "--at-most", number - 1)
    assert f"{number} would be, and --at-most allows {number - 1}" in done.stderr
    assert office.picture() == before

    office.audit(*fix, "--at-most", number)
    assert office.picture() != before


def test_none_may_go_where_at_most_none_is_allowed(office: Office) -> None:
    """Not even one, which could go where nothing is said."""
    before = office.picture()
    fix = ("--hosts", office.write("hosts", "cn1", "cn2"), "--fix", "--yes")
    done = office.audit(*fix, "--at-most", 0)
    assert "nothing was removed: 1 would be, and --at-most allows 0" in done.stderr
    assert (done.returncode, office.picture()) == (ExitCode.INCONSISTENT, before)
    office.audit(*fix)
    assert office.picture() != before


def test_a_tenth_may_go(office: Office) -> None:
    """Of twenty hosts two, without another word; and three not."""
    with office.stage() as stage:
        stage.show("".join(f"    spare{number}  VCPU=8\n" for number in range(17)))
    names = ["cn1", "cn2", "old", *(f"spare{number}" for number in range(17))]
    for gone, word in ((3, "refused"), (2, "done")):
        hosts = office.write("hosts", *names[: 20 - gone])
        done = office.audit("--hosts", hosts, "--fix", "--yes")
        assert ("nothing was removed" in done.stderr) is (word == "refused"), done.stderr
    assert "2 fixed" in done.stderr
