# SPDX-License-Identifier: Apache-2.0
"""`berth.client`: questions, claims, lists and errors as values, over HTTP and on a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from berth import config
from berth.client import (
    Client,
    Conflict,
    Incomplete,
    NewConsumer,
    NoOwnApi,
    NotThere,
    Refused,
    Unreachable,
)
from berth.direct import PlacementDirect
from tests.e2e.serving import configured, served
from tests.servers.ports import free_port

SMALL = {"groups": {"": {"resources": {"VCPU": 2}}}}
LARGE = {"groups": {"": {"resources": {"VCPU": 99}}}}
OWNERS: dict[str, Any] = {"project_id": "web", "user_id": "alice"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service."""
    with served(tmp_path_factory.mktemp("service")) as url:
        yield url


@pytest.fixture(params=["token", pytest.param("session", marks=pytest.mark.thorough), "direct"])
def berth(request: pytest.FixtureRequest, service: str, tmp_path: Path) -> Iterator[Client]:
    """A client of each kind."""
    match request.param:
        case "token":
            yield Client.at(service, "admin")
        case "session":
            yield Client.of_session(Session(auth=Token(service, "admin")))
        case _:
            conf = configured(tmp_path, f"sqlite:///{tmp_path}/berth.db")
            with PlacementDirect(config.load([str(conf)])) as adapter:
                yield Client.of_transport(adapter)


def host(berth: Client, vcpu: int = 8) -> str:
    """The name of a new host."""
    name, uuid = f"cn-{uuid4()}", str(uuid4())
    berth.send("POST", "/resource_providers", {"name": name, "uuid": uuid})
    inventories = {"VCPU": {"total": vcpu}}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    berth.send("PUT", f"/resource_providers/{uuid}/inventories", body)
    return name


def on(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """A request that only one host may serve."""
    return {**request, "host": {"in": [name]}}


def test_a_candidate_is_claimed_listed_and_released(berth: Client) -> None:
    """The whole life of a job."""
    name, job = host(berth), str(uuid4())
    answer = berth.candidates(on(name, SMALL), order="pack", limit=1)
    (candidate,) = answer.candidates
    assert (answer.complete, answer.more, answer.explanations) == (True, False, ())
    assert candidate.allocations == {candidate.host: {"VCPU": 2}}
    assert candidate.mappings == {"": [candidate.host]}
    assert candidate.score == pytest.approx(0.25)
    berth.claim(job, candidate, **OWNERS)
    (consumer,) = berth.consumers(host=name)
    assert consumer == berth.consumer(job)
    assert (consumer.uuid, consumer.project_id, consumer.user_id) == (job, "web", "alice")
    assert (consumer.name, consumer.lease_until, consumer.generation) == (None, None, 1)
    assert consumer.allocations == candidate.allocations
    assert consumer.providers == {candidate.host: name}
    assert consumer.created_at is not None
    assert datetime.now(UTC) - consumer.created_at < timedelta(minutes=5)
    berth.release(job, generation=1)
    assert list(berth.consumers(host=name)) == []


def test_a_name_stands_for_a_consumer(berth: Client) -> None:
    """Within its project; it is free again after the release."""
    name = host(berth)
    (candidate,) = berth.candidates(on(name, SMALL)).candidates
    job = f"{name}/job 17"
    uuid = berth.claim_for(job, candidate, user_id="alice", lease_seconds=60)
    consumer = berth.consumer(job)
    assert (consumer.uuid, consumer.name, consumer.project_id) == (uuid, "job 17", name)
    assert consumer.lease_until is not None
    assert list(berth.consumers(provider=name, project_id=name, name="job 17")) == [consumer]
    assert list(berth.consumers(host=name, user_id="bob", consumer_type="INSTANCE")) == []
    assert (berth.lease(job, 600).consumer, berth.lease(job, 600).name) == (uuid, "job 17")
    berth.end_lease(job)
    with pytest.raises(Conflict) as taken:
        berth.claim_for(job, candidate, user_id="bob")
    assert taken.value.code == "berth.consumer.name_taken"
    berth.release(job)
    berth.claim_for(job, candidate, user_id="bob")
    assert berth.consumer(job).user_id == "bob"


def test_a_consumer_moves_and_a_dry_run_writes_nothing(berth: Client) -> None:
    """It gives back what it holds, if it is still at the generation that was seen."""
    name, other = host(berth), host(berth)
    job = NewConsumer(project_id=name, user_id="alice", name="job")
    (dry,) = berth.place(on(name, SMALL), [job], dry_run=True)
    assert dry.host
    assert list(berth.consumers(host=name)) == []
    (placed,) = berth.place(on(name, SMALL), [job], lease_seconds=60)
    assert placed.lease_until == berth.consumer(f"{name}/job").lease_until is not None
    assert placed.mappings == {"": [placed.host]}
    other_job = replace(job, name=None, uuid=str(uuid4()))
    both = berth.place(on(other, SMALL), [replace(job, name="x"), other_job], order="pack")
    assert [berth.consumer(each.uuid).name for each in both] == ["x", None]
    assert both[1].uuid == other_job.uuid
    found = berth.placement(f"{name}/job")
    assert found == berth.placement(placed.uuid)
    assert (found.uuid, found.host, found.basis) == (placed.uuid, placed.host, "placed")
    moving = replace(job, uuid=placed.uuid, generation=berth.consumer(placed.uuid).generation)
    (moved,) = berth.place(on(other, SMALL), [moving], replace=True)
    assert (moved.uuid, moved.host != placed.host) == (placed.uuid, True)
    assert berth.consumer(placed.uuid).allocations == moved.allocations
    with pytest.raises(Conflict) as refused:
        berth.place(on(name, SMALL), [moving], replace=True)
    assert refused.value.code == "placement.concurrent_update"


def test_capacity_counts_what_fits(berth: Client) -> None:
    """By the names of the requests, and with assumptions."""
    name = host(berth)
    asked = {"small": on(name, SMALL), "large": on(name, LARGE)}
    counted = berth.capacity(asked)
    assert {name: each.count for name, each in counted.items()} == {"small": 4, "large": 0}
    small = counted["small"]
    assert (small.at_most, small.hosts) == (4, 1)
    assert small.answer["classes"]["VCPU"]["free"] == 8
    without = berth.capacity({"small": on(name, SMALL)}, what_if={"without_hosts": [name]})
    assert without["small"].count == 0
    assert berth.capacity(flavors=[]) == berth.capacity({}, flavors=[]) == {}
    counted = berth.capacity({"small": on(name, SMALL)}, flavors=[], by=["host", "zonee"])
    assert counted.complete and counted.uncounted == {}
    assert [each["code"] for each in counted.warnings] == ["unknown_label"]


def test_a_dry_run_assumes_another_fleet(berth: Client) -> None:
    """Warnings and refusals have what a program needs to say why."""
    name = host(berth)
    jobs = [NewConsumer(project_id=name, user_id="alice", name="job")]
    placed = berth.place(
        on(name, LARGE),
        jobs,
        within="racks",
        tries=1,
        dry_run=True,
        what_if={"allocation_ratio": [{"resource_class": "VCPU", "ratio": 16}]},
    )
    assert ([each.allocations for each in placed], placed.repeated) == (
        [{placed[0].host: {"VCPU": 99}}],
        False,
    )
    assert [each["reference"] for each in placed.warnings] == ["racks"]
    with pytest.raises(Conflict, match="No host fits") as explained:
        berth.place(on("cn-nowhere", SMALL), jobs)
    assert explained.value.explanation is not None
    with pytest.raises(Conflict) as refused:
        berth.place(on("cn-nowhere", SMALL), jobs, explain=False)
    assert refused.value.explanation is None
    assert [each["reference"] for each in refused.value.warnings] == ["cn-nowhere"]


@pytest.mark.parametrize("mark", ["\u2028", "\x85"])
def test_a_text_with_another_end_of_line_is_one_text(berth: Client, mark: str) -> None:
    """JSON writes such characters as they are; lines end with a line feed alone."""
    name = host(berth)
    seen = berth.fleet().revision
    owners = {**OWNERS, "user_id": f"al{mark}ice"}
    (candidate,) = berth.candidates(on(name, SMALL)).candidates
    berth.claim(str(uuid4()), candidate, **owners)
    assert [each.user_id for each in berth.consumers(host=name)] == [owners["user_id"]]
    assert berth.changes(seen).events


def test_what_does_not_fit_is_explained(berth: Client) -> None:
    """With the candidates, if asked to, or by itself; for each alternative."""
    name = host(berth)
    answer = berth.candidates(on(name, LARGE), explain=True)
    (explanation,) = answer.explanations
    assert explanation.impossible == ("No provider can give 99 VCPU at once; the most is 8.",)
    assert answer.candidates == ()
    assert (explanation.verdict, explanation.hosts_that_fit) == ("never", 0)
    assert "With VCPU 8 instead of 99, 1 host fits." in explanation.summary
    assert explanation.answer["binding"] == ["/groups//resources/VCPU"]
    assert berth.candidates("resources=VCPU:2&limit=1").candidates
    both = {"alternatives": [on(name, LARGE), on(name, SMALL)]}
    assert [each.verdict for each in berth.explain(both)] == ["never", "fits"]


def test_a_refusal_has_its_code_and_pointer(berth: Client) -> None:
    """And the names that were meant."""
    with pytest.raises(Refused) as refused:
        berth.candidates({"groups": {"": {"resources": {"VCPUS": 1}}}})
    error = refused.value
    assert (error.status, error.code) == (400, "berth.name.unknown")
    assert (error.pointer, error.did_you_mean[0]) == ("/request/groups//resources/VCPUS", "VCPU")
    assert str(error).startswith("There is no resource class VCPUS. Did you mean VCPU")
    assert error.explanation is None


def test_leases(berth: Client) -> None:
    """A claim with a lease, its renewal as a heartbeat, and its end."""
    name, job = host(berth), str(uuid4())
    (candidate,) = berth.candidates(on(name, SMALL)).candidates
    berth.claim(job, candidate, **OWNERS, lease_seconds=60)
    before = berth.consumer(job).lease_until
    assert before is not None and abs(before - datetime.now(UTC)) < timedelta(minutes=2)
    lease = berth.lease(job, 600)
    assert (lease.consumer, lease.name, lease.project_id) == (job, None, "web")
    assert 500 < lease.seconds_left <= 601 and lease.expires_at > before
    (listed,) = [each for each in berth.leases() if each.consumer == job]
    assert listed.expires_at == lease.expires_at
    berth.end_lease(job)
    assert berth.consumer(job).lease_until is None
    with pytest.raises(NotThere, match="has no lease"):
        berth.end_lease(job)
    berth.release(job)
    with pytest.raises(NotThere, match="has no allocations"):
        berth.lease(job, 60)


def test_the_kinds_of_refusals(berth: Client) -> None:
    """What is not there, what conflicts, and what a service does not have."""
    name, job = host(berth), str(uuid4())
    with pytest.raises(NotThere) as gone:
        berth.release(job)
    assert gone.value.code == "berth.not_found" and not isinstance(gone.value, NoOwnApi)
    (candidate,) = berth.candidates(on(name, SMALL)).candidates
    berth.claim(job, candidate, **OWNERS)
    with pytest.raises(Conflict) as twice:
        berth.claim(job, candidate, **OWNERS)
    assert twice.value.code == "placement.concurrent_update"
    with pytest.raises(Conflict):
        berth.release(job, generation=7)
    with pytest.raises(NotThere):
        berth.read("/traits/CUSTOM_NOT_THERE")


def test_a_service_that_is_away(tmp_path: Path) -> None:
    """Is no refusal."""
    with pytest.raises(Unreachable):
        Client.at(f"http://127.0.0.1:{free_port()}", "admin").explain(SMALL)


class Canned:
    """A transport with one answer to everything."""

    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text
        self.headers: dict[str, str] = {}

    def request(self, url: str, method: str, **options: Any) -> Canned:
        """The answer."""
        return self

    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.text)


@pytest.mark.parametrize("text", ["", '{"uuid": "x"}\n', '{"uuid": "x"}\n{"uuid": "y"}'])
def test_a_list_that_breaks_off_is_not_taken_for_whole(text: str) -> None:
    """Without its last line."""
    with pytest.raises(Incomplete):
        Client.of_transport(Canned(200, text)).consumers()


def test_a_service_without_the_own_api() -> None:
    """OpenStack Placement has none of its routes; a proxy may answer in any form."""
    for text in ('{"errors": [{"detail": "nothing", "status": 404}]}', "<p>nothing</p>", "[]"):
        with pytest.raises(NoOwnApi, match="OpenStack Placement"):
            Client.of_transport(Canned(404, text)).candidates(SMALL)
