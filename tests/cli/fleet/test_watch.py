# SPDX-License-Identifier: Apache-2.0
"""`berth watch`: what changes, as it changes, from a service and from the database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from berth.cli.fleet.access import access_of, connect
from berth.cli.fleet.client import Client, of_transport
from berth.cli.sources import ConfigurationSource
from berth.client import Changes, Unreachable
from berth.client import Client as ProgramClient
from berth.store.engine import journal
from berth.store.identity import renew_identity
from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.fresh import opened_at

HOST, CARD, OTHER, AGGREGATE = (f"77000000-0000-4000-8000-00000000000{n}" for n in range(4))
GPU: Final = {"uuid": CARD, "name": "cn7_gpu", "parent": HOST}
AVX2: Final = {"traits": ["HW_CPU_X86_AVX2"]}


@dataclass(frozen=True)
class Watched:
    """A fleet of one host, `cn7`, and what happens to it while a command watches."""

    run: InProcess
    database: str
    #: What happens before the first polls: after the command has read the fleet.
    pending: list[Callable[[], object]]

    def watch(self, *options: str, count: int, meanwhile: tuple[Callable[[], object], ...]) -> Any:
        """The lines of a watch without the time of day; it ends well."""
        self.pending.extend(meanwhile)
        done = self.run("watch", "--count", str(count), *options)
        assert done.returncode == 0 and "berth: " not in done.stderr
        return [line[0 if options else len("14:01:07  ") :] for line in done.stdout.splitlines()]

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client of the same fleet."""
        access = access_of(os.environ, None, None, None, ConfigurationSource((), (), False))
        with ExitStack() as stack:
            yield of_transport(connect(access, os.environ, stack, is_quiet=True))

    def send(self, method: str, path: str, body: object = None) -> None:
        """Send a request."""
        with self.client() as client:
            client.send(method, path, body)

    def put(self, host: dict[str, Any], *others: dict[str, Any]) -> None:
        """Make the host like this, with exactly these providers below it."""
        providers = [{"uuid": HOST, "name": "cn7", **host}, *others]
        body = {"providers": providers, "remove_missing": True, "create_names": True}
        self.send("PUT", f"/berth/v1/trees/{HOST}", body)

    def lose(self, how: str) -> None:
        """Let the journal forget everything, or make all revisions foreign."""
        later = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)
        db = opened_at(self.database)
        if how == "forgotten":
            db.write_unnoted(lambda tx: journal.trim(tx, later))
        else:
            renew_identity(db)
        db.dispose()


@pytest.fixture(params=["service", pytest.param("database", marks=pytest.mark.thorough)])
def watched(
    fleet: Fleet,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Watched:
    """Each way."""
    fleet.begin(request.param)
    watched = Watched(in_process, fleet.database, [])
    watched.put({"inventories": {"VCPU": {"total": 64}}, "traits": [], "aggregates": []})
    ask = ProgramClient.changes

    def changes(client: ProgramClient, after: str, *, wait: int = 0) -> Changes:
        if watched.pending:
            watched.pending.pop(0)()
        return ask(client, after, wait=wait)

    monkeypatch.setattr(ProgramClient, "changes", changes)
    monkeypatch.setattr("berth.cli.fleet.watch._PAUSE_S", 0.0)
    return watched


def test_what_changes_is_printed(watched: Watched) -> None:
    """As the commands write it that change it."""
    card = GPU | {"inventories": {"VGPU": {"total": 2}}}
    numa = {"uuid": OTHER, "name": "cn7_numa", "parent": HOST}
    edited = {
        "name": "cn8",
        "inventories": {"VCPU": {"total": 32, "allocation_ratio": 4.0}, "DISK_GB": {"total": 1000}},
        "traits": ["HW_CPU_X86_AVX2"],
        "aggregates": [AGGREGATE],
    }
    usual = {"inventories": {"VCPU": {"total": 64}}, "traits": [], "aggregates": []}
    drain, claim = "/berth/v1/drains/firmware", f"/allocations/{OTHER}"
    claimed = {
        "allocations": {HOST: {"resources": {"VCPU": 8}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }
    meanwhile = (
        lambda: watched.put(edited, card),
        lambda: watched.put(usual),
        lambda: watched.put(usual, numa, GPU),
        lambda: watched.put(usual, numa, GPU | {"parent": "cn7_numa"}),
        lambda: watched.send("PUT", drain, {"providers": ["cn7"]}),
        lambda: watched.send("DELETE", drain),
        lambda: watched.send("PUT", "/traits/CUSTOM_WATCHED"),
        lambda: watched.send("PUT", claim, claimed),
        lambda: watched.send("DELETE", claim),
    )
    assert watched.watch(count=12, meanwhile=meanwhile) == [
        "cn8  renamed from cn7  DISK_GB=1,000  VCPU=64 -> 32(allocation_ratio:4.0)"
        f"  +HW_CPU_X86_AVX2  +@{AGGREGATE}",
        "cn7_gpu  new: VGPU 2",
        "cn7_gpu  gone",
        "cn7  renamed from cn8  -DISK_GB  VCPU=32(allocation_ratio:4.0) -> 64"
        f"  -HW_CPU_X86_AVX2  -@{AGGREGATE}",
        "cn7_numa  new",
        "cn7_gpu  new",
        "cn7_gpu  below cn7_numa",
        # That the names of drains changed says nothing more.
        "cn7  drained by firmware",
        "cn7  no longer drained by firmware",
        "-  names changed: traits, resource classes, labels, flavors or drains",
        "cn7  VCPU 8/64 (+8)",
        "cn7  VCPU 0/64 (-8)",
    ]


@pytest.mark.parametrize("how", ["forgotten", "foreign"])
def test_it_goes_on_when_the_service_cannot_tell_what_changed(watched: Watched, how: str) -> None:
    """It reads the fleet again, and prints what differs. Whoever reads events keeps the copy."""

    def changed_and_lost() -> None:
        watched.put(AVX2)
        watched.lose(how)

    meanwhile = (changed_and_lost, lambda: watched.put({"traits": []}))
    printed = watched.watch(count=2, meanwhile=meanwhile)
    assert printed == ["cn7  +HW_CPU_X86_AVX2", "cn7  -HW_CPU_X86_AVX2"]
    with watched.client() as client:
        before = client.fleet(()).revision
    changed_and_lost()
    done = watched.run("watch", "--json", "--after", before)
    assert (done.returncode, done.stdout) == (11, "")
    failure = done.stderr.splitlines()[-1]
    assert failure.startswith("berth: ") and before in failure


def test_it_asks_again_when_the_service_was_away(watched: Watched) -> None:
    """And misses nothing."""

    def changed_and_away() -> None:
        watched.put(AVX2)
        raise Unreachable("the service is away")

    watched.pending.append(changed_and_away)
    done = watched.run("watch", "--count", "1")
    assert done.returncode == 0
    assert done.stderr.endswith("berth: the service is away; asking again\n")
    assert done.stdout.endswith("  cn7  +HW_CPU_X86_AVX2\n")


def test_json_prints_the_events(watched: Watched) -> None:
    """From now on, or after a revision."""
    with watched.client() as client:
        before = client.fleet(()).revision
    (line,) = watched.watch("--json", count=1, meanwhile=(lambda: watched.put(AVX2),))
    event = json.loads(line)
    assert (event["change"], event["traits"]) == ("provider", ["HW_CPU_X86_AVX2"])
    assert watched.watch("--json", "--after", before, count=1, meanwhile=()) == [line]
    meanwhile = (lambda: watched.put({"traits": []}), lambda: watched.put({"traits": []}, GPU))
    events = map(json.loads, watched.watch("--json", count=2, meanwhile=meanwhile))
    assert [each["uuid"] for each in events] == [HOST, CARD]
