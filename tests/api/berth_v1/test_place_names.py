# SPDX-License-Identifier: Apache-2.0
"""Names in `POST /berth/v1/place`: a consumer with a name needs no uuid (spec/beyond.md 6.4)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.api import configured
from tests.api.claims import held
from tests.api.worlds import done, new_name, new_uuid, provider
from tests.client import Client, Response

V1 = "/berth/v1"
CONSUMERS = f"{V1}/consumers"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module."""
    return configured.serve(tmp_path_factory.mktemp("place"))


@pytest.fixture
def host(api: Client) -> str:
    """A host of its own for each test."""
    return provider(api, {"VCPU": 8})


def job(project: str, name: str | None, **members: Any) -> dict[str, Any]:
    """A consumer of a body."""
    owner = {"project_id": project, "user_id": "alice", "consumer_type": "JOB"}
    return {**owner, **({} if name is None else {"name": name}), **members}


def body(host: str, *consumers: dict[str, Any], vcpu: int = 1, **members: Any) -> dict[str, Any]:
    """A body for one host."""
    groups = {"": {"resources": {"VCPU": vcpu}}}
    return {
        "request": {"groups": groups, "host": {"in": [host]}},
        "consumers": [*consumers],
        **members,
    }


def place(api: Client, sent: dict[str, Any]) -> Response:
    """The answer to a call."""
    return api.post(f"{V1}/place", json=sent)


def refusal(answer: Response, status: int) -> dict[str, Any]:
    """The error of a refused call."""
    done(answer, status)
    return answer.error


def test_berth_makes_the_uuid_of_a_named_consumer(api: Client, host: str) -> None:
    """The answer has both; one uuid may be the client's."""
    project, uuid = new_name("web"), new_uuid()
    sent = body(host, job(project, "job-17"), job(project, "job-18", uuid=uuid))
    placements = done(place(api, sent), 200).json["placements"]
    made, chosen = placements
    assert chosen == uuid
    assert [each["name"] for each in placements.values()] == ["job-17", "job-18"]
    shown = done(api.get(f"{CONSUMERS}/{project}/job-17"), 200).json
    assert (shown["uuid"], shown["consumer_type"]) == (made, "JOB")
    assert held(api, made) == held(api, uuid) == {host: {"VCPU": 1}}
    by_name = done(api.get(f"{V1}/placements/{project}/job-17"), 200).json
    assert by_name == done(api.get(f"{V1}/placements/{made}"), 200).json
    done(api.get(f"{V1}/placements/{project}/job-19"), 404)
    assert by_name["host"] == host


def test_a_repeated_call_is_known_by_its_names(api: Client, host: str) -> None:
    """For as long as the consumer has what it got; another call is refused."""
    project = new_name("web")
    sent = body(host, job(project, "job"))
    first = done(place(api, sent), 200).json
    again = done(place(api, sent), 200).json
    assert (first["repeated"], again["repeated"]) == (False, True)
    (uuid,) = first["placements"]
    first["placements"][uuid].pop("score")
    assert again["placements"] == first["placements"]
    other = refusal(place(api, body(host, job(project, "job"), vcpu=2)), 409)
    assert (other["code"], other["consumers"]) == ("berth.consumer.holds", [uuid])
    with_uuid = refusal(place(api, body(host, job(project, "job", uuid=new_uuid()))), 409)
    assert with_uuid["code"] == "berth.consumer.name_taken" and uuid in with_uuid["detail"]
    done(api.delete(f"{CONSUMERS}/{project}/job"), 204)
    (new,) = done(place(api, sent), 200).json["placements"]
    assert new != uuid and held(api, new) == {host: {"VCPU": 1}}


def test_a_dry_run_refuses_a_name_as_the_call_would(api: Client, host: str) -> None:
    """A name that another consumer keeps is taken; one that it gives up in the same call is not."""
    project = new_name("web")
    (uuid,) = done(place(api, body(host, job(project, "a"))), 200).json["placements"]
    taken = body(host, job(project, "a", uuid=new_uuid()))
    for query in ("?dry_run=true", ""):
        refused = refusal(api.post(f"{V1}/place{query}", json=taken), 409)
        assert refused["code"] == "berth.consumer.name_taken"
    other = new_uuid()
    done(place(api, body(host, job(project, "b", uuid=other))), 200)
    swapped = body(
        host,
        job(project, "a", uuid=other, consumer_generation=1),
        job(project, "b", uuid=uuid, consumer_generation=1),
        replace=True,
    )
    dry = done(api.post(f"{V1}/place?dry_run=true", json=swapped), 200).json["placements"]
    assert [*done(place(api, swapped), 200).json["placements"]] == [*dry] == [other, uuid]


def test_a_named_consumer_is_moved(api: Client, host: str) -> None:
    """By its name alone, at its generation. Refusals say what the body calls the consumers, not the
    uuids that berth gave them, or has just made up."""
    project = new_name("web")
    (uuid,) = done(place(api, body(host, job(project, "job"))), 200).json["placements"]
    other = provider(api, {"VCPU": 8})
    moved = body(other, job(project, "job", consumer_generation=1), vcpu=3, replace=True)
    assert list(done(place(api, moved), 200).json["placements"]) == [uuid]
    assert held(api, uuid) == {other: {"VCPU": 3}}
    for name, seen, replace, code, said in (
        ("job", None, False, "berth.consumer.holds", "{0}/job holds something already."),
        ("job", 1, True, "placement.concurrent_update", "{0}/job is at generation 2, not 1."),
        ("none", 1, True, "placement.concurrent_update", "{0} has no consumer named none."),
    ):
        members = {} if seen is None else {"consumer_generation": seen}
        refused = refusal(
            place(api, body(host, job(project, name, **members), replace=replace)), 409
        )
        assert refused["code"] == code
        assert said.format(project) in refused["detail"]
    assert held(api, uuid) == {other: {"VCPU": 3}}


def test_a_name_stands_for_one_consumer(api: Client, host: str) -> None:
    """In a call, whether it is named or not; of each project. Nothing is written."""
    project = new_name("web")
    (uuid,) = done(place(api, body(host, job(project, "there"))), 200).json["placements"]
    twice = [job(project, "there"), job(project, None, uuid=uuid)]
    refused = refusal(place(api, body(host, *twice)), 400)
    assert (refused["code"], refused["pointer"]) == ("berth.request.invalid", "/consumers")
    assert len(done(api.get(f"{CONSUMERS}?project_id={project}"), 200).text.splitlines()) == 2
    done(place(api, body(host, job(project, "a"), job(new_name("db"), "a"))), 200)


def test_one_call_sent_twice_at_once_places_once(api: Client, host: str) -> None:
    """The one that comes second gets the answer of the first."""
    for turn in range(5):
        sent = body(host, job(new_name("web"), f"job-{turn}"))
        answers: list[Response] = []
        start = threading.Barrier(3)

        def send(sent: dict[str, Any], answers: list[Response], start: threading.Barrier) -> None:
            start.wait(30)
            answers.append(place(api, sent))

        threads = [threading.Thread(target=send, args=(sent, answers, start)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [each.status for each in answers] == [200] * 3, [each.text for each in answers]
        (uuid,) = {uuid for each in answers for uuid in each.json["placements"]}
        assert sorted(each.json["repeated"] for each in answers) == [False, True, True]
        assert held(api, uuid) == {host: {"VCPU": 1}}
