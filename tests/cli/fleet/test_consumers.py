# SPDX-License-Identifier: Apache-2.0
"""`berth who`, and consumers by name: `claim --for`, `release`, `consumer show`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import UUID

import pytest

from berth.cli.fleet import access
from tests.cli.fleet.ways import BothWays
from tests.cli.in_process import InProcess

#: Hosts, a card, and consumers that the tests choose.
HOSTS = {"cn1": 1, "cn2": 2}
CARD = "cn1_gpu"
JOB, OTHER, THIRD = (str(UUID(int=number)) for number in (17, 18, 19))


@pytest.fixture(autouse=True)
def lab(berth: BothWays) -> Iterator[None]:
    """Two hosts, of which the first has a card, without consumers."""
    if berth("provider", "show", CARD).code:
        for host, number in HOSTS.items():
            berth.ok("provider", "create", host, "--uuid", str(UUID(int=number)))
            berth.ok("inventory", "set", host, "VCPU=64", "MEMORY_MB=65536")
        berth.ok("provider", "create", CARD, "--uuid", str(UUID(int=3)), "--parent", "cn1")
        berth.ok("inventory", "set", CARD, "VGPU=4")
    yield
    for run in (berth.over_http, berth.on_database):
        *consumers, _ = run("who", "--json").lines
        for consumer in consumers:
            assert run("release", json.loads(consumer)["uuid"]).code == 0


def test_a_named_consumer_is_claimed_listed_and_released(berth: BothWays) -> None:
    """The user is the project, unless it is given; berth makes the uuid."""
    claimed = berth.ok("claim", "--for", "web/job-17", "cn1:VCPU=8", "cn1:MEMORY_MB=16384")
    assert claimed.stdout == "claimed for web/job-17: cn1: VCPU 8, MEMORY_MB 16,384\n"
    owner = ("--user", "alice", "--type", "JOB")
    berth.ok("claim", "--for", "web/job-18", JOB, "cn1_gpu:VGPU=1", *owner)
    heads, first, second, count = berth.ok("who", "cn1").lines
    assert heads.split() == ["CONSUMER", "PROJECT", "USER", "TYPE", "SINCE", "(UTC)", "HOLDS"]
    assert first.split() == [
        *("web/job-17", "web", "web", "INSTANCE", "2026-11-23", "22:40"),
        *("cn1:", "VCPU", "8,", "MEMORY_MB", "16,384"),
    ]
    assert second.split()[:4] == ["web/job-18", "web", "alice", "JOB"]
    assert (second.split()[6:], count) == (["cn1_gpu:", "VGPU", "1"], "2 consumers")
    shown = [line.split() for line in berth.ok("consumer", "show", "web/job-18").lines]
    assert ["project", "web"] in shown and ["cn1_gpu", "VGPU", "1"] in shown
    assert berth.ok("release", "web/job-17").stdout == "released web/job-17\n"
    assert berth.ok("who", "cn1").lines[-1] == "1 consumer"
    gone = berth("release", "web/job-17")
    assert gone.code == 11 and "Project web has no consumer named job-17" in gone.stderr


def test_a_subject_is_a_host_or_a_project(berth: BothWays) -> None:
    """A host first; the options say which, and narrow the list."""
    berth.ok("claim", "--for", "cn2/a", "cn1:VCPU=1")
    berth.ok("claim", "--for", "web/b", "cn2:VCPU=1", "--user", "bob")
    assert [line.split()[0] for line in berth.ok("who", "cn2").lines[1:-1]] == ["web/b"]
    of_project = berth.ok("who", "--project", "cn2").lines
    assert [line.split()[0] for line in of_project[1:-1]] == ["cn2/a"]
    assert [line.split()[0] for line in berth.ok("who").lines[1:-1]] == ["cn2/a", "web/b"]
    assert berth.ok("who", "web").lines == berth.ok("who", "web", "--user", "bob").lines
    assert berth.warned("who", "--host", "cn1", "--name", "b").lines == ["0 consumers"]
    assert berth.warned("who", "cn2", "--project", "web", "--type", "JOB").lines == ["0 consumers"]
    nobody = berth("who", "cn3")
    assert nobody.code == 11
    assert "no provider is named cn3, and no project cn3 holds anything" in nobody.stderr
    assert "no provider is named cn3;" in berth("who", "cn3", "--project", "web").stderr
    assert berth("who", "cn1", "--host", "cn2").code == 2


class OfOneProject:
    """A service for whoever may see the project web only."""

    headers: Mapping[str, str] = {}

    def __init__(self, path: str = "") -> None:
        is_web = "project_id=web" in path and "host=" not in path
        self.status_code = 200 if is_web else 403
        self.text = '{"end": true, "lines": 0}' if is_web else '{"errors": [{"detail": "no"}]}'

    def request(self, url: str, method: str, **options: object) -> OfOneProject:
        """The answer."""
        return OfOneProject(url)

    def json(self) -> object:
        """The decoded body."""
        return json.loads(self.text)


def test_a_member_asks_for_its_project(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it may not ask whether a host has that name."""
    with monkeypatch.context() as patched:
        patched.setattr(access, "connect", lambda *_, **__: OfOneProject())
        assert in_process("who", "web").stdout == "0 consumers\n"
        refused = in_process("who", "db")
    assert (refused.returncode, refused.stderr) == (11, "berth: no\n")


class OfMember(OfOneProject):
    """A service for a member, who may read consumers of the project by berth's own routes only."""

    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        if "/berth/v1/consumers/" in path:
            self.status_code = 200
            consumer = {
                "uuid": JOB,
                "name": "job",
                "project_id": "web",
                "user_id": "alice",
                "consumer_type": "JOB",
                "generation": 3,
                "created_at": None,
                "allocations": {OTHER: {"name": "cn1", "resources": {"VCPU": 2}}},
                "lease": None,
            }
            self.text = json.dumps(consumer)

    def request(self, url: str, method: str, **options: object) -> OfMember:
        """The answer."""
        return OfMember(url)


def test_a_member_sees_a_consumer_of_its_project(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name or by UUID, with the names of the providers."""
    with monkeypatch.context() as patched:
        patched.setattr(access, "connect", lambda *_, **__: OfMember())
        shown = in_process("consumer", "show", "web/job").stdout
        assert shown == in_process("consumer", "show", JOB).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["generation", "3"] in lines
    assert lines[-1] == ["cn1", "VCPU", "2"]


def test_a_name_is_claimed_once(berth: BothWays) -> None:
    """What it has is replaced on request, or at its generation."""
    berth.ok("claim", "--for", "web/job", JOB, "cn1:VCPU=1")
    twice = berth("claim", "--for", "web/job", "cn1:VCPU=2")
    assert twice.code == 11
    assert twice.stderr == "berth: web/job has allocations already: --replace replaces them\n"
    berth.ok("claim", "--for", "web/job", "cn1:VCPU=2", "--replace")
    berth.ok("claim", "--for", "web/job", "cn1:VCPU=3", "--generation", "2")
    stale = berth("claim", "--for", "web/job", "cn1:VCPU=4", "--generation", "2")
    assert stale.code == 11 and "expected 3 but got 2" in stale.stderr
    berth.ok("claim", "--for", "web/new", OTHER, "cn1:VCPU=5", "--replace")
    shown = berth.ok("consumer", "show", "web/job", "--json").answer
    assert [each["resources"] for each in shown["allocations"].values()] == [{"VCPU": 3}]
    assert shown == berth.ok("consumer", "show", JOB, "--json").answer


def test_a_candidate_is_claimed_for_a_name(berth: BothWays, tmp_path: Path) -> None:
    """As `berth candidates --json` prints it."""
    file = tmp_path / "candidates.json"
    file.write_text(berth.ok("candidates", "VGPU=2", "--json").stdout)
    claimed = berth.ok("claim", "--for", "web/train", "--candidate", str(file), JOB, "--json")
    assert claimed.answer == {"uuid": JOB, "name": "train", "project_id": "web", "generation": 1}
    assert "cn1_gpu: VGPU 2" in berth.ok("who", "web").stdout


def test_names_and_uuids_are_released_together(berth: BothWays) -> None:
    """All or none."""
    for job, name in ((JOB, "a"), (OTHER, "b"), (THIRD, "c")):
        berth.ok("claim", "--for", f"web/{name}", job, "cn1:VCPU=1")
    assert berth("release", "web/a", "web/gone", OTHER).code == 11
    assert berth.ok("who", "web").lines[-1] == "3 consumers"
    assert berth.ok("release", "web/a", OTHER).stdout == f"released web/a, {OTHER}\n"
    assert [line.split()[0] for line in berth.ok("who", "web").lines[1:-1]] == ["web/c"]


def test_the_answer_of_who_is_that_of_the_api(berth: BothWays) -> None:
    """JSON lines."""
    berth.ok("claim", "--for", "web/job", JOB, "cn1:VCPU=1")
    line, end = map(json.loads, berth.ok("who", "web", "--json").lines)
    assert (line["uuid"], line["name"], end) == (JOB, "job", {"end": True, "lines": 1})
    assert line["allocations"] == {str(UUID(int=1)): {"name": "cn1", "resources": {"VCPU": 1}}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--for", "job", "cn1:VCPU=1"), "--for job is not PROJECT/NAME"),
        (("--for", "web/a/b", "cn1:VCPU=1"), "is not PROJECT/NAME"),
        (("--for", "web/", "cn1:VCPU=1"), "is not PROJECT/NAME"),
        (("--for", "web/a", "--project", "db", "cn1:VCPU=1"), "name two projects"),
        (("--for", "web/a"), "say what to claim"),
        (("--for", "web/a", JOB), "say what to claim"),
        (("--for", "web/a", "--request", __file__), "without --for"),
    ],
)
def test_a_claim_without_its_form_is_a_usage_error(
    berth: BothWays, arguments: tuple[str, ...], says: str
) -> None:
    """Nothing is sent."""
    refused = berth("claim", *arguments)
    assert refused.code == 2 and says in refused.stderr
