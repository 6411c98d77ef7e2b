# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/leases`, and leases of placements, over HTTP. Source: spec/beyond.md 5.2 and 7.3."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.edge.lease_sweeps import LeaseSweeper, _run
from berth.model.errors import DatabaseUnavailable
from berth.store import lease_sweep
from berth.store.engine.database import Database
from tests.api import configured
from tests.api.berth_v1.test_place import body, place
from tests.api.claims import consumer, held
from tests.api.wire import Rule, rules
from tests.api.worlds import new_name, provider
from tests.client import Client, Response
from tests.e2e.serving import wait_until

PATH = "/berth/v1/leases"
NOT_FOUND = "berth.not_found"
NOON = datetime(2026, 11, 24, 12)
AT_12_10 = "2026-11-24T12:10:00Z"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module alone."""
    return configured.serve(tmp_path_factory.mktemp("leases"))


class Clock:
    """The clock that decides; `db` is the last database that asked it."""

    now = NOON
    db: Database | None = None

    def of(self, db: Database) -> datetime:
        """See `Database.clock`."""
        self.db = db
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the test sets, at noon."""
    clock = Clock()
    monkeypatch.setattr(Database, "clock", lambda db: clock.of(db))
    return clock


@pytest.fixture
def leasing(service: Client, clock: Clock) -> Client:
    """The service, without leases of earlier tests."""
    clock.now = NOON + timedelta(days=365)
    service.post(PATH)
    clock.now = NOON
    return service


def host_of(leasing: Client) -> str:
    """A new host."""
    return provider(leasing, {"VCPU": 16}, name=new_name("cn"))


def leased(leasing: Client, host: str, seconds: int = 600) -> str:
    """A new consumer of one VCPU with a lease."""
    uuid = consumer(leasing, {host: {"VCPU": 1}}, project="web", user="alice")
    answer = leasing.put(f"{PATH}/{uuid}", json={"seconds": seconds})
    assert answer.status == 200, answer.text
    return uuid


def listed(leasing: Client) -> list[str]:
    """The consumers with leases."""
    answer = leasing.get(PATH)
    assert answer.headers["content-type"] == "application/jsonl"
    *leases, end = map(json.loads, answer.text.splitlines())
    assert end == {"end": True, "lines": len(leases)}
    for lease in leases:
        assert leasing.get(f"{PATH}/{lease['consumer']}").json == lease
    return [lease["consumer"] for lease in leases]


def error(answer: Response, status: int) -> Any:
    """The only error of a refusal."""
    assert answer.status == status, answer.text
    (refusal,) = answer.json["errors"]
    return refusal


@rules(
    """
    a lease is given, shown with its consumer, and ended
        PUT /berth/v1/leases/$host.consumer {seconds: 86400}
        200 {consumer: $host.consumer, name: null, project_id: $project, user_id: user,
            expires_at: $at, seconds_left: _}
        GET /berth/v1/leases/$host.consumer
        200 {expires_at: $at, ...}
        GET /berth/v1/consumers/$host.consumer
        200 {lease: {expires_at: $at}, ...}
        DELETE /berth/v1/leases/$host.consumer
        204
        GET /berth/v1/consumers/$host.consumer
        200 {lease: null, allocations: {$host: _}, ...}
        $1 /berth/v1/leases/$host.consumer
        404 Consumer $host.consumer has no lease.
        | GET
        | DELETE

    leases are listed for one project, or up to a limit
        PUT /allocations/$c CLAIM host VCPU=1
        204
        PUT /berth/v1/leases/$c {seconds: 60}
        200
        PUT /berth/v1/leases/$host.consumer {seconds: 60}
        200
        GET /berth/v1/leases?$1
        200 $2
        | project_id=$project          | [{consumer: $c, ...}, {consumer: $host.consumer, ...},
            {end: true, lines: 2}]
        | project_id=$project&limit=1  | [_, {end: true, lines: 1, more: true}]
        | project_id=x$project         | [{end: true, lines: 0}]

    a consumer that holds nothing gets no lease
        PUT /berth/v1/leases/$1 {seconds: 60}
        404 $1
        | $nowhere
        | nobody

    a lease never outlives an explicit write of its consumer
        PUT /berth/v1/leases/$host.consumer {seconds: 60}
        200
        $1
        $2
        GET /berth/v1/leases/$host.consumer
        404
        | PUT /allocations/$host.consumer CLAIM host VCPU=2 @1.0   | 204
        | PUT /allocations/$host.consumer CLAIM host VCPU=2 @1.8   | 204
        | PUT /allocations/$host.consumer CLAIM host VCPU=2 @1.12  | 204
        | PUT /allocations/$host.consumer CLAIM host VCPU=2 {consumer_generation: 1} @1.28 | 204
        | PUT /allocations/$host.consumer CLAIM host VCPU=1 {consumer_generation: 1} @1.39 | 204
        | PUT /allocations/$host.consumer CLAIM {consumer_generation: 1} | 204
        | POST /allocations {$host.consumer: {allocations: {$host: {resources: {VCPU: 2}}},
            project_id: p, user_id: u, consumer_generation: 1, consumer_type: T}} | 204
        | POST /allocations {$host.consumer: {allocations: {}, project_id: p, user_id: u,
            consumer_generation: 1, consumer_type: T}} | 204
        | POST /reshaper {inventories: {$host: {inventories: {VCPU: {total: 16}}, seen: $host}},
            allocations: {$host.consumer: {allocations: {$host: {resources: {VCPU: 1}}},
            project_id: p, user_id: u, consumer_generation: 1, consumer_type: T}}} | 204
        | DELETE /allocations/$host.consumer | 204
        | DELETE /berth/v1/consumers/$host.consumer | 204
        | PUT /berth/v1/consumers/$project/job {uuid: $host.consumer, generation: 1, user_id: u,
            consumer_type: T, allocations: {$host: {resources: {VCPU: 1}}}} | 200
        | POST /berth/v1/place {request: {groups: {"": {resources: {VCPU: 1}}},
            host: {in: [$host]}}, replace: true, consumers: [{uuid: $host.consumer,
            consumer_generation: 1, project_id: $project, user_id: u, consumer_type: T}]} | 200

    a write may give a new lease
        PUT /berth/v1/leases/$host.consumer {seconds: 60}
        200 {expires_at: $at, ...}
        $1
        200 $2
        GET /berth/v1/leases/$host.consumer
        200 {expires_at: $then, ...}
        | PUT /berth/v1/consumers/$project/job {uuid: $host.consumer, generation: 1, user_id: u,
            consumer_type: T, allocations: {$host: {resources: {VCPU: 1}}}, lease_seconds: 9600} |
            {lease: {expires_at: $then}, ...}
        | POST /berth/v1/place {request: {groups: {"": {resources: {VCPU: 1}}},
            host: {in: [$host]}}, replace: true, lease_seconds: 9600, consumers: [{
            uuid: $host.consumer, consumer_generation: 1, project_id: $project, user_id: u,
            consumer_type: T}]} |
            {placements: {$host.consumer: {lease: {expires_at: $then}, ...}}, ...}

    reads and refused writes leave the lease, and a placement without one says nothing of it
        PUT /berth/v1/leases/$host.consumer {seconds: 60}
        200 {expires_at: $at, ...}
        PUT /allocations/$host.consumer CLAIM host VCPU=17 {consumer_generation: 1}
        409 VCPU
        PUT /allocations/$host.consumer CLAIM host VCPU=1 {consumer_generation: 5}
        409 placement.concurrent_update
        GET /allocations/$host.consumer
        200
        POST /berth/v1/place {request: {groups: {"": {resources: {VCPU: 1}}}, host: {in: [$host]}},
            consumers: [{uuid: $new, project_id: p, user_id: u, consumer_type: T}]}
        200 {placements: {$new: {host: $host, allocations: _, mappings: _, score: _,
            consumer_generation: 1}}, ...}
        GET /berth/v1/leases/$host.consumer
        200 {expires_at: $at, ...}

    readers list leases, services change them
        >> X-Roles: $1
        >> X-Auth-Token: u:p
        PUT /berth/v1/leases/$host.consumer {seconds: 60}
        $2
        GET /berth/v1/leases
        $3
        GET /berth/v1/leases/$host.consumer
        $4
        POST /berth/v1/leases
        $2
        DELETE /berth/v1/leases/$host.consumer
        $5
        | admin   | 200 | 200 | 200 | 204
        | service | 200 | 200 | 200 | 204
        | auditor | 403 | 200 | 404 | 403
        | reader  | 403 | 403 | 403 | 403
        | member  | 403 | 403 | 403 | 403
    """,
    world="host  VCPU=16(used:1)",
)
def test_leases(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


def test_a_lease_is_given_shown_renewed_and_ended(leasing: Client, clock: Clock) -> None:
    """A sweep says what it released: only consumers whose leases have expired, and the candidates
    see at once what is free again."""
    host = host_of(leasing)
    first, second, third = (
        leased(leasing, host),
        leased(leasing, host, 660),
        leased(leasing, host, 661),
    )
    shown = leasing.get(f"{PATH}/{first.upper()}").json
    assert (shown["expires_at"], shown["seconds_left"]) == (AT_12_10, 600)
    assert sorted(listed(leasing)) == sorted([first, second, third])
    clock.now += timedelta(seconds=660)
    assert leasing.get(f"{PATH}/{first}").json["seconds_left"] == 0
    renewed = leasing.put(f"{PATH}/{first}", json={"seconds": 86_400}).json
    shown = renewed["expires_at"], renewed["seconds_left"]
    assert shown == ("2026-11-25T12:11:00Z", 86_400)
    name = leasing.get(f"/resource_providers/{host}").json["name"]
    expected = {"consumer": second, "project_id": "web", "hosts": [name]}
    assert leasing.post(PATH).json == {"released": [expected]}
    assert leasing.post(PATH).json == {"released": []}
    assert (held(leasing, second), held(leasing, third)) == ({}, {host: {"VCPU": 1}})
    query = f"/allocation_candidates?resources=VCPU:14&in_tree={host}"
    assert len(leasing.get(query).json["allocation_requests"]) == 1
    assert leasing.delete(f"{PATH}/{first}").status == 204
    clock.now += timedelta(days=2)
    assert [each["consumer"] for each in leasing.post(PATH).json["released"]] == [third]
    assert listed(leasing) == [] and held(leasing, first) == {host: {"VCPU": 1}}


def test_a_placement_with_a_lease(leasing: Client, clock: Clock) -> None:
    """All of its consumers have it; a dry run says the same, and writes nothing."""
    sent = body(2, lease_seconds=600)
    sent["request"] = {**sent["request"], "host": {"in": [host_of(leasing)]}}
    uuids = [each["uuid"] for each in sent["consumers"]]
    clock.now += timedelta(milliseconds=-1)
    dry = place(leasing, sent, "?dry_run=true")
    assert listed(leasing) == []
    answer = place(leasing, sent)
    leases = [each["lease"] for each in answer["placements"].values()]
    assert leases == [each["lease"] for each in dry["placements"].values()]
    assert leases == [{"expires_at": AT_12_10}] * 2 and sorted(listed(leasing)) == sorted(uuids)
    assert "lease" not in leasing.get(f"/berth/v1/placements/{uuids[0]}").json
    clock.now += timedelta(seconds=601)
    assert {each["consumer"] for each in leasing.post(PATH).json["released"]} == {*uuids}
    again = place(leasing, sent)
    assert not again["repeated"] and again["placements"].keys() == {*uuids}


def test_a_repeated_call_answers_as_the_first(leasing: Client, clock: Clock) -> None:
    """It renews nothing. The lease is part of the body, so a call with another one, or with none,
    is another call."""
    sent = body(lease_seconds=600)
    sent["request"] = {**sent["request"], "host": {"in": [host_of(leasing)]}}
    (first,) = place(leasing, sent)["placements"].values()
    clock.now += timedelta(seconds=60)
    repeated = place(leasing, sent)
    (second,) = repeated["placements"].values()
    first.pop("score")
    assert repeated["repeated"] and second == first
    for other in (60, None):
        different = {**sent, "lease_seconds": other}
        answer = leasing.post("/berth/v1/place", json={k: v for k, v in different.items() if v})
        assert error(answer, 409)["code"] == "berth.consumer.holds"
    uuid = sent["consumers"][0]["uuid"]
    assert leasing.get(f"{PATH}/{uuid}").json["expires_at"] == AT_12_10
    assert leasing.delete(f"{PATH}/{uuid}").status == 204
    (third,) = place(leasing, sent)["placements"].values()
    assert third == {**first, "lease": None}


def test_a_sweep_is_logged(leasing: Client, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Which consumer of which project, and where; and it is counted."""
    uuid = leased(leasing, host := host_of(leasing), 1)
    before = metric(leasing, "berth_leases_expired_total")
    assert metric(leasing, "berth_leases") == 1
    clock.now += timedelta(seconds=1)
    assert clock.db is not None
    with caplog.at_level(logging.INFO, "berth.edge.lease_sweeps"):
        LeaseSweeper().sweep(clock.db, None)
    name = leasing.get(f"/resource_providers/{host}").json["name"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert all(said in line for said in (uuid, "web", name)) and held(leasing, uuid) == {}
    assert metric(leasing, "berth_leases_expired_total") == before + 1
    assert metric(leasing, "berth_leases") == 0


def metric(leasing: Client, name: str) -> float:
    """The value of a metric without labels."""
    lines = leasing.get("/metrics").text.splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def test_an_outage_is_logged_once_and_ends(
    leasing: Client,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong, the thread goes on: it sweeps when the database is back. The next outage
    is another one."""
    uuid = leased(leasing, host_of(leasing), 1)
    clock.now += timedelta(seconds=1)
    away = DatabaseUnavailable("away")
    failures: list[Exception | None] = [away, away, away, KeyError("a bug"), None, away, away]
    real = lease_sweep._due

    def failing(db: Database) -> Any:
        if failures and (failure := failures.pop(0)) is not None:
            raise failure
        return real(db)

    monkeypatch.setattr(lease_sweep, "_due", failing)
    pauses: list[float] = []
    living = [clock.db] * 7
    with caplog.at_level(logging.WARNING, "berth.edge.lease_sweeps"):
        _run(lambda: living.pop() if living else None, lambda: None, 5.0, pauses.append)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "WARNING"]
    assert 5 <= pauses[0] <= 10 and pauses[1:] == [5.0] * 7
    assert held(leasing, uuid) == {}


def test_a_worker_sweeps_by_itself(tmp_path: Path) -> None:
    """As often as the option says, in a thread that ends with the database."""
    leasing = configured.serve(tmp_path, "[berth]\nlease_sweep_seconds = 0.1\n")
    uuid = leased(leasing, host_of(leasing), 1)
    # It is counted once it is committed.
    wait_until(lambda: metric(leasing, "berth_leases_expired_total") == 1, "a sweep")
    assert held(leasing, uuid) == {}
