# SPDX-License-Identifier: Apache-2.0
"""`berth watch`: what changes, as it changes, over HTTP and from the database."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.cli.fleet.access import Access, connect
from berth.cli.fleet.client import Client, of_transport
from berth.cli.options import ConfigurationSource
from berth.client import Changes, Unreachable
from berth.client import Client as ProgramClient
from berth.store.engine import journal
from berth.store.identity import renew_identity
from tests.cli.in_process import InProcess
from tests.e2e.serving import configured, served
from tests.fresh import opened_at

HOST, CARD, OTHER, AGGREGATE = (f"77000000-0000-4000-8000-00000000000{n}" for n in range(4))
TREE = f"/berth/v1/trees/{HOST}"
DRAIN = "/berth/v1/drains/firmware"


@dataclass(frozen=True)
class Way:
    """How `berth watch` reaches a fleet: over HTTP, or on its database."""

    run: InProcess
    options: tuple[str, ...]
    access: Access
    database: str

    def watch(self, *options: str, count: int) -> list[str]:
        """The lines of a watch, without the time of day; it ends well."""
        done = self.run("watch", "--count", str(count), *options, *self.options)
        named = f"Database: {self.database}\n" if "--config-file" in self.options else ""
        assert (done.returncode, done.stderr) == (0, named)
        return done.stdout.splitlines()

    def words(self, *, count: int) -> list[str]:
        """What a watch prints beside the time of day."""
        return [line[len("14:01:07  ") :] for line in self.watch(count=count)]

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client of the same fleet."""
        with ExitStack() as stack:
            yield of_transport(connect(self.access, {}, stack, is_quiet=True))

    def send(self, method: str, path: str, body: object = None) -> Any:
        """Send a request."""
        with self.client() as client:
            answer = client.send(method, path, body)
            return answer.json() if answer.text else None

    def put_tree(self, host: dict[str, Any], *others: dict[str, Any]) -> None:
        """Make the host like this, with exactly these providers below it."""
        body = {
            "providers": [{"uuid": HOST, "name": "cn7", **host}, *others],
            "remove_missing": True,
            "create_names": True,
        }
        self.send("PUT", TREE, body)

    def forget(self) -> None:
        """Let the journal forget everything."""
        later = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)
        db = opened_at(self.database)
        db.write_unnoted(lambda tx: journal.trim(tx, later))
        db.dispose()

    def renew_identity(self) -> None:
        """Make all revisions foreign."""
        db = opened_at(self.database)
        renew_identity(db)
        db.dispose()


@pytest.fixture(scope="module")
def fleets(
    tmp_path_factory: pytest.TempPathFactory, prepared: Path
) -> Iterator[dict[str, tuple[Any, str]]]:
    """By way: what follows the command, and the URL of the database."""
    homes = {way: tmp_path_factory.mktemp(way) for way in ("http", "database")}
    shutil.copy(prepared, homes["database"])
    urls = {way: f"sqlite:///{home}/berth.db" for way, home in homes.items()}
    confs = {way: configured(homes[way], urls[way]) for way in homes}
    with served(homes["http"], "--config-file", str(confs["http"])) as url:
        yield {
            "http": (url, urls["http"]),
            "database": (confs["database"], urls["database"]),
        }


@pytest.fixture(params=["http", "database"])
def way(
    fleets: dict[str, tuple[Any, str]],
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Way:
    """Each way, with a fleet of one host, `cn7`."""
    for name in ("BERTH_URL", "OS_TOKEN", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    place, database = fleets[request.param]
    if isinstance(place, Path):
        options: tuple[str, ...] = ("--config-file", str(place))
        access = Access(None, None, None, ConfigurationSource((str(place),), (), False))
    else:
        options = ("--url", place, "--token", "admin")
        access = Access(place, "admin", None, ConfigurationSource((), (), False))
    way = Way(in_process, options, access, database)
    way.put_tree({"inventories": {"VCPU": {"total": 64}}, "traits": [], "aggregates": []})
    return way


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stages what happens after the command has read the fleet: before its first polls."""
    pending: list[Callable[[], object]] = []
    ask = ProgramClient.changes

    def changes(client: ProgramClient, after: str, *, wait: int = 0) -> Changes:
        if pending:
            pending.pop(0)()
        return ask(client, after, wait=wait)

    monkeypatch.setattr(ProgramClient, "changes", changes)
    return lambda *actions: pending.extend(actions)


Meanwhile = Callable[..., None]


def test_what_changes_of_a_provider_is_printed(way: Way, meanwhile: Meanwhile) -> None:
    """As the commands write it that change it."""
    card = {"uuid": CARD, "name": "cn7_gpu", "parent": HOST, "inventories": {"VGPU": {"total": 2}}}
    edited = {
        "name": "cn8",
        "inventories": {"VCPU": {"total": 32, "allocation_ratio": 4.0}, "DISK_GB": {"total": 1000}},
        "traits": ["HW_CPU_X86_AVX2"],
        "aggregates": [AGGREGATE],
    }
    usual = {"inventories": {"VCPU": {"total": 64}}, "traits": [], "aggregates": []}

    meanwhile(
        lambda: way.put_tree(edited, card),
        lambda: way.put_tree(usual),
    )
    assert way.words(count=4) == [
        "cn8  renamed from cn7  DISK_GB=1,000  VCPU=64 -> 32(allocation_ratio:4.0)"
        f"  +HW_CPU_X86_AVX2  +@{AGGREGATE}",
        "cn7_gpu  new: VGPU 2",
        "cn7_gpu  gone",
        "cn7  renamed from cn8  -DISK_GB  VCPU=32(allocation_ratio:4.0) -> 64"
        f"  -HW_CPU_X86_AVX2  -@{AGGREGATE}",
    ]


def test_a_provider_that_moves_is_below_another(way: Way, meanwhile: Meanwhile) -> None:
    """By its name."""
    usual = {"inventories": {"VCPU": {"total": 64}}}
    numa = {"uuid": OTHER, "name": "cn7_numa", "parent": "cn7"}
    card = {"uuid": CARD, "name": "cn7_gpu", "parent": "cn7"}
    way.put_tree(usual, numa, card)
    meanwhile(lambda: way.put_tree(usual, numa, {**card, "parent": "cn7_numa"}))
    assert way.words(count=1) == ["cn7_gpu  below cn7_numa"]


def test_drains_are_named(way: Way, meanwhile: Meanwhile) -> None:
    """In one line: that the names of drains changed says nothing more."""
    meanwhile(
        lambda: way.send("PUT", DRAIN, {"providers": ["cn7"]}),
        lambda: way.send("DELETE", DRAIN),
        lambda: way.send("PUT", "/traits/CUSTOM_WATCHED"),
    )
    assert way.words(count=3) == [
        "cn7  drained by firmware",
        "cn7  no longer drained by firmware",
        "-  names changed: traits, resource classes, labels, flavors or drains",
    ]
    way.send("DELETE", "/traits/CUSTOM_WATCHED")


def test_claims_are_amounts(way: Way, meanwhile: Meanwhile) -> None:
    """The present amount, the capacity and the difference."""
    claim = f"/allocations/{OTHER}"
    body = {
        "allocations": {HOST: {"resources": {"VCPU": 8}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }
    meanwhile(lambda: way.send("PUT", claim, body), lambda: way.send("DELETE", claim))
    assert way.words(count=2) == ["cn7  VCPU 8/64 (+8)", "cn7  VCPU 0/64 (-8)"]


@pytest.mark.parametrize("lost", [Way.forget, Way.renew_identity])
def test_it_goes_on_when_the_service_cannot_tell_what_changed(
    way: Way, meanwhile: Meanwhile, lost: Callable[[Way], None]
) -> None:
    """It reads the fleet again, and prints what differs."""

    def changed_and_lost() -> None:
        way.put_tree({"traits": ["HW_CPU_X86_AVX2"]})
        lost(way)

    meanwhile(changed_and_lost, lambda: way.put_tree({"traits": []}))
    assert way.words(count=2) == ["cn7  +HW_CPU_X86_AVX2", "cn7  -HW_CPU_X86_AVX2"]


def test_it_asks_again_when_the_service_was_away(
    way: Way, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And misses nothing."""
    monkeypatch.setattr("berth.cli.fleet.watch._PAUSE_S", 0.0)

    def changed_and_away() -> None:
        way.put_tree({"traits": ["HW_CPU_X86_AVX2"]})
        raise Unreachable("the service is away")

    meanwhile(changed_and_away)
    done = way.run("watch", "--count", "1", *way.options)
    assert done.returncode == 0
    assert done.stderr.endswith("berth: the service is away; asking again\n")
    assert done.stdout.endswith("  cn7  +HW_CPU_X86_AVX2\n")


def test_json_prints_the_events(way: Way, meanwhile: Meanwhile) -> None:
    """From now on, or after a revision."""
    meanwhile(lambda: way.put_tree({"traits": ["HW_CPU_X86_AVX2"]}))
    with way.client() as client:
        before = client.fleet(()).revision
    (event,) = map(json.loads, way.watch("--json", count=1))
    assert (event["change"], event["traits"]) == ("provider", ["HW_CPU_X86_AVX2"])
    (again,) = map(json.loads, way.watch("--json", "--after", before, count=1))
    assert again == event
    card = {"uuid": CARD, "name": "cn7_gpu", "parent": "cn7"}
    meanwhile(lambda: way.put_tree({"traits": []}), lambda: way.put_tree({"traits": []}, card))
    events = map(json.loads, way.watch("--json", count=2))
    assert [each["uuid"] for each in events] == [HOST, CARD]


@pytest.mark.parametrize("lost", [Way.forget, Way.renew_identity])
def test_json_ends_when_the_service_cannot_tell_what_changed(
    way: Way, lost: Callable[[Way], None]
) -> None:
    """Whoever reads the events keeps the copy, and reads it again."""
    with way.client() as client:
        before = client.fleet(()).revision
    way.put_tree({"traits": ["HW_CPU_X86_AVX2"]})
    lost(way)
    done = way.run("watch", "--json", "--after", before, *way.options)
    assert (done.returncode, done.stdout) == (11, "")
    failure = done.stderr.splitlines()[-1]
    assert failure.startswith("berth: ") and before in failure
