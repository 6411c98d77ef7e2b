# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/leases`, and leases of placements, over HTTP. Source: spec/beyond.md 5.2 and 7.3."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
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
from tests.api.claims import claim_body, consumer, held
from tests.api.worlds import new_name, new_uuid, provider
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
def api(service: Client, clock: Clock) -> Client:
    """The service, without leases of earlier tests."""
    clock.now = NOON + timedelta(days=365)
    service.post(PATH)
    clock.now = NOON
    return service


def host_of(api: Client) -> str:
    """A new host."""
    return provider(api, {"VCPU": 16}, name=new_name("cn"))


def leased(api: Client, host: str, seconds: int = 600) -> str:
    """A new consumer of one VCPU with a lease."""
    uuid = consumer(api, {host: {"VCPU": 1}}, project="web", user="alice")
    answer = api.put(f"{PATH}/{uuid}", json={"seconds": seconds})
    assert answer.status == 200, answer.text
    return uuid


def listed(api: Client) -> list[str]:
    """The consumers with leases."""
    answer = api.get(PATH)
    assert answer.headers["content-type"] == "application/jsonl"
    *leases, end = map(json.loads, answer.text.splitlines())
    assert end == {"end": True, "lines": len(leases)}
    for lease in leases:
        assert api.get(f"{PATH}/{lease['consumer']}").json == lease
    return [lease["consumer"] for lease in leases]


def error(answer: Response, status: int) -> Any:
    """The only error of a refusal."""
    assert answer.status == status, answer.text
    (refusal,) = answer.json["errors"]
    return refusal


def test_a_lease_is_given_shown_renewed_and_ended(api: Client, clock: Clock) -> None:
    """`GET /consumers` shows it too. When it is ended, the consumer keeps what it holds."""
    uuid = leased(api, host := host_of(api))
    assert api.get(f"{PATH}/{uuid.upper()}").json == {
        "consumer": uuid,
        "name": None,
        "project_id": "web",
        "user_id": "alice",
        "expires_at": AT_12_10,
        "seconds_left": 600,
    }
    assert listed(api) == [uuid]
    shown = api.get(f"/berth/v1/consumers/{uuid}").json
    assert shown["lease"] == {"expires_at": AT_12_10}
    clock.now += timedelta(seconds=660)
    assert api.get(f"{PATH}/{uuid}").json["seconds_left"] == 0
    renewed = api.put(f"{PATH}/{uuid}", json={"seconds": 86_400})
    shown = renewed.json["expires_at"], renewed.json["seconds_left"]
    assert shown == ("2026-11-25T12:11:00Z", 86_400)
    assert api.delete(f"{PATH}/{uuid}").status == 204
    assert listed(api) == [] and held(api, uuid) == {host: {"VCPU": 1}}
    assert api.get(f"/berth/v1/consumers/{uuid}").json["lease"] is None
    for answer in (api.get(f"{PATH}/{uuid}"), api.delete(f"{PATH}/{uuid}")):
        assert error(answer, 404)["code"] == NOT_FOUND
        assert error(answer, 404)["detail"].count(f"Consumer {uuid} has no lease.")


def test_leases_are_listed_for_one_project_or_up_to_a_limit(api: Client) -> None:
    """Whoever may list all need not name a project; the last line says whether there are more."""
    host, project = host_of(api), new_name("web")
    uuids = sorted(consumer(api, {host: {"VCPU": 1}}, project=project) for _ in range(2))
    for uuid in uuids:
        assert api.put(f"{PATH}/{uuid}", json={"seconds": 60}).status == 200
    for query, expected, more in (
        (f"project_id={project}", uuids, {}),
        (f"project_id={project}&limit=1", uuids[:1], {"more": True}),
        (f"project_id={project.upper()}", [], {}),
    ):
        *leases, end = map(json.loads, api.get(f"{PATH}?{query}").text.splitlines())
        assert [lease["consumer"] for lease in leases] == expected
        assert end == {"end": True, "lines": len(expected), **more}


def test_a_consumer_that_holds_nothing_gets_no_lease(api: Client) -> None:
    """404, whether or not it ever existed."""
    for uuid in (new_uuid(), "nobody"):
        refusal = error(api.put(f"{PATH}/{uuid}", json={"seconds": 60}), 404)
        assert refusal["code"] == NOT_FOUND and uuid in refusal["detail"]


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({}, ""),
        ({"seconds": 0}, "/seconds"),
        ({"seconds": 86_401}, "/seconds"),
        ({"seconds": 1.0}, "/seconds"),
        ({"seconds": "60"}, "/seconds"),
        ({"seconds": None}, "/seconds"),
        ({"seconds": 60, "until": "noon"}, "/until"),
    ],
)
def test_a_wrong_body_is_refused(api: Client, sent: Any, pointer: str) -> None:
    """The lease stays as it was."""
    uuid = leased(api, host_of(api))
    refusal = error(api.put(f"{PATH}/{uuid}", json=sent), 400)
    assert (refusal["code"], refusal["pointer"]) == ("berth.request.invalid", pointer)
    assert api.get(f"{PATH}/{uuid}").json["expires_at"] == AT_12_10


def test_a_sweep_says_what_it_released(api: Client, clock: Clock) -> None:
    """Only consumers whose leases have expired; the candidates see at once what is free again."""
    host = host_of(api)
    first, second = leased(api, host, 60), leased(api, host, 61)
    clock.now += timedelta(seconds=60)
    name = api.get(f"/resource_providers/{host}").json["name"]
    expected = {"consumer": first, "project_id": "web", "hosts": [name]}
    assert api.post(PATH).json == {"released": [expected]}
    assert api.post(PATH).json == {"released": []}
    assert (held(api, first), held(api, second)) == ({}, {host: {"VCPU": 1}})
    query = f"/allocation_candidates?resources=VCPU:15&in_tree={host}"
    assert len(api.get(query).json["allocation_requests"]) == 1
    assert listed(api) == [second]


def _claimed(api: Client, uuid: str, host: str, version: str, seen: int | None) -> Response:
    sent = claim_body(
        version, {host: {"VCPU": 1}}, project="web", user="alice", consumer_generation=seen
    )
    return api.put(f"/allocations/{uuid}", json=sent, version=version)


def _posted(api: Client, uuid: str, host: str) -> Response:
    sent = claim_body("1.39", {host: {"VCPU": 2}}, consumer_generation=1)
    return api.post("/allocations", json={uuid: sent})


def _reshaped(api: Client, uuid: str, host: str) -> Response:
    shown = api.get(f"/resource_providers/{host}/inventories").json
    sent = {
        "inventories": {
            host: {
                "inventories": shown["inventories"],
                "resource_provider_generation": shown["resource_provider_generation"],
            }
        },
        "allocations": {uuid: claim_body("1.39", {host: {"VCPU": 1}}, consumer_generation=1)},
    }
    return api.post("/reshaper", json=sent)


def _replaced(api: Client, uuid: str, host: str, **members: Any) -> Response:
    owner = {"project_id": "web", "user_id": "alice", "consumer_type": "INSTANCE"}
    sent = {
        "request": {"groups": {"": {"resources": {"VCPU": 1}}}, "host": {"in": [host]}},
        "consumers": [{"uuid": uuid, "consumer_generation": 1, **owner}],
        "replace": True,
        **members,
    }
    return api.post("/berth/v1/place", json=sent)


def _named(api: Client, uuid: str, host: str, **members: Any) -> Response:
    sent = {
        "uuid": uuid,
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "user_id": "alice",
        "consumer_type": "INSTANCE",
        "generation": 1,
        **members,
    }
    return api.put(f"/berth/v1/consumers/web/{new_name('job')}", json=sent)


#: Every route that writes a consumer's allocations: its writes of a consumer at generation 1.
WRITES: dict[str, Callable[[Client, str, str], Response]] = {
    "PUT 1.0": lambda api, uuid, host: _claimed(api, uuid, host, "1.0", None),
    "PUT 1.8": lambda api, uuid, host: _claimed(api, uuid, host, "1.8", None),
    "PUT 1.12": lambda api, uuid, host: _claimed(api, uuid, host, "1.12", None),
    "PUT 1.28": lambda api, uuid, host: _claimed(api, uuid, host, "1.28", 1),
    "PUT 1.39": lambda api, uuid, host: _claimed(api, uuid, host, "1.39", 1),
    "PUT, nothing": lambda api, uuid, host: api.put(
        f"/allocations/{uuid}", json=claim_body("1.39", {}, consumer_generation=1)
    ),
    "POST": _posted,
    "POST, nothing": lambda api, uuid, host: api.post(
        "/allocations", json={uuid: claim_body("1.39", {}, consumer_generation=1)}
    ),
    "reshaper": _reshaped,
    "DELETE": lambda api, uuid, host: api.delete(f"/allocations/{uuid}"),
    "DELETE consumers": lambda api, uuid, host: api.delete(f"/berth/v1/consumers/{uuid}"),
    "PUT consumers": _named,
    "place with replace": _replaced,
}


@pytest.mark.parametrize("route", WRITES)
def test_a_lease_never_outlives_an_explicit_write(api: Client, clock: Clock, route: str) -> None:
    """Whoever writes the allocations owns them: what the consumer holds then is not taken back."""
    uuid = leased(api, host := host_of(api))
    answer = WRITES[route](api, uuid, host)
    assert answer.status in (200, 204), answer.text
    assert listed(api) == []
    if not held(api, uuid):
        assert _claimed(api, uuid, host, "1.39", None).status == 204
    before = held(api, uuid)
    clock.now += timedelta(days=1)
    assert api.post(PATH).json == {"released": []}
    assert held(api, uuid) == before != {}


def test_reads_and_refused_writes_leave_the_lease(api: Client) -> None:
    """It ends in the commit of a write, or not at all."""
    uuid = leased(api, host := host_of(api))
    sent = claim_body("1.39", {host: {"VCPU": 17}}, consumer_generation=1)
    assert api.put(f"/allocations/{uuid}", json=sent).status == 409
    assert _claimed(api, uuid, host, "1.39", 5).status == 409
    assert _replaced(api, uuid, host, request={"groups": {"": {"resources": {"VCPU": 17}}}}).status
    held(api, uuid)
    assert listed(api) == [uuid]


@pytest.mark.parametrize("write", [_replaced, _named])
def test_a_write_may_give_a_new_lease(api: Client, clock: Clock, write: Any) -> None:
    """`lease_seconds` of `place` and `PUT /consumers`; the answer says when it expires."""
    uuid = leased(api, host := host_of(api), 60)
    answer = write(api, uuid, host, lease_seconds=600).json
    shown = answer.get("placements", {}).get(uuid, answer)
    assert shown["lease"] == {"expires_at": AT_12_10}
    assert api.get(f"{PATH}/{uuid}").json["expires_at"] == AT_12_10
    clock.now += timedelta(seconds=60)
    assert api.post(PATH).json == {"released": []}


def test_a_placement_with_a_lease(api: Client, clock: Clock) -> None:
    """All of its consumers have it; a dry run says the same, and writes nothing."""
    sent = body(2, lease_seconds=600)
    sent["request"] = {**sent["request"], "host": {"in": [host_of(api)]}}
    uuids = [each["uuid"] for each in sent["consumers"]]
    clock.now += timedelta(milliseconds=-1)
    dry = place(api, sent, "?dry_run=true")
    assert listed(api) == []
    answer = place(api, sent)
    leases = [each["lease"] for each in answer["placements"].values()]
    assert leases == [each["lease"] for each in dry["placements"].values()]
    assert leases == [{"expires_at": AT_12_10}] * 2 and sorted(listed(api)) == sorted(uuids)
    assert "lease" not in api.get(f"/berth/v1/placements/{uuids[0]}").json
    clock.now += timedelta(seconds=601)
    assert {each["consumer"] for each in api.post(PATH).json["released"]} == {*uuids}
    again = place(api, sent)
    assert not again["repeated"] and again["placements"].keys() == {*uuids}


def test_a_repeated_call_answers_as_the_first(api: Client, clock: Clock) -> None:
    """It renews nothing. The lease is part of the body, so a call with another one, or with none,
    is another call."""
    sent = body(lease_seconds=600)
    sent["request"] = {**sent["request"], "host": {"in": [host_of(api)]}}
    (first,) = place(api, sent)["placements"].values()
    clock.now += timedelta(seconds=60)
    repeated = place(api, sent)
    (second,) = repeated["placements"].values()
    first.pop("score")
    assert repeated["repeated"] and second == first
    for other in (60, None):
        different = {**sent, "lease_seconds": other}
        answer = api.post("/berth/v1/place", json={k: v for k, v in different.items() if v})
        assert error(answer, 409)["code"] == "berth.consumer.holds"
    uuid = sent["consumers"][0]["uuid"]
    assert api.get(f"{PATH}/{uuid}").json["expires_at"] == AT_12_10
    assert api.delete(f"{PATH}/{uuid}").status == 204
    (third,) = place(api, sent)["placements"].values()
    assert third == {**first, "lease": None}


def test_a_placement_without_a_lease_says_nothing_of_one(api: Client) -> None:
    """As before there were leases."""
    sent = body()
    sent["request"] = {**sent["request"], "host": {"in": [host_of(api)]}}
    for _ in range(2):
        (placement,) = place(api, sent)["placements"].values()
        assert "lease" not in placement
    assert listed(api) == []


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("admin", [200, 200, 200, 200, 204]),
        ("service", [200, 200, 200, 200, 204]),
        ("auditor", [403, 200, 404, 403, 403]),
        ("reader", [403] * 5),
        ("member", [403] * 5),
    ],
)
def test_who_may_see_and_change_leases(api: Client, role: str, expected: list[int]) -> None:
    """Readers list, services change."""
    uuid = consumer(api, {host_of(api): {"VCPU": 1}}, project="web")
    caller = api.acting_as({"X-Auth-Token": "u:p", "X-Roles": role})
    assert expected == [
        caller.put(f"{PATH}/{uuid}", json={"seconds": 60}).status,
        caller.get(PATH).status,
        caller.get(f"{PATH}/{uuid}").status,
        caller.post(PATH).status,
        caller.delete(f"{PATH}/{uuid}").status,
    ]


# --- The thread of a worker ----------------------------------------------------------------------


def test_a_sweep_is_logged(api: Client, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Which consumer of which project, and where; and it is counted."""
    uuid = leased(api, host := host_of(api), 1)
    before = metric(api, "berth_leases_expired_total")
    assert metric(api, "berth_leases") == 1
    clock.now += timedelta(seconds=1)
    assert clock.db is not None
    with caplog.at_level(logging.INFO, "berth.edge.lease_sweeps"):
        LeaseSweeper().sweep(clock.db, None)
    name = api.get(f"/resource_providers/{host}").json["name"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert all(said in line for said in (uuid, "web", name)) and held(api, uuid) == {}
    assert metric(api, "berth_leases_expired_total") == before + 1
    assert metric(api, "berth_leases") == 0


def metric(api: Client, name: str) -> float:
    """The value of a metric without labels."""
    lines = api.get("/metrics").text.splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def test_an_outage_is_logged_once_and_ends(
    api: Client,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong, the thread goes on: it sweeps when the database is back. The next outage
    is another one."""
    uuid = leased(api, host_of(api), 1)
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
    assert held(api, uuid) == {}


def test_a_worker_sweeps_by_itself(tmp_path: Path) -> None:
    """As often as the option says, in a thread that ends with the database."""
    api = configured.serve(tmp_path, "[berth]\nlease_sweep_seconds = 0.1\n")
    uuid = leased(api, host_of(api), 1)
    wait_until(lambda: held(api, uuid) == {}, "a sweep")
    assert metric(api, "berth_leases_expired_total") == 1
