# SPDX-License-Identifier: Apache-2.0
"""People of a project: what the members' policy file admits, and nothing else.

Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from berth.cli.policy import members_file
from tests.api import configured
from tests.api.claims import consumer, held
from tests.api.worlds import done, new_uuid, provider
from tests.client import Client
from tests.routes import BERTH_ROUTES, PUBLIC, ROUTES

pytestmark = pytest.mark.in_process

V1 = "/berth/v1"
REQUEST = {"groups": {"": {"resources": {"VCPU": 1}}}}


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the members' file in policy.d."""
    folder: Path = tmp_path_factory.mktemp("members")
    (folder / "policy.d").mkdir()
    (folder / "policy.d" / "members.yaml").write_text(members_file())
    policies = f"[oslo_policy]\npolicy_dirs = {folder / 'policy.d'}\n"
    return configured.serve(folder, policies)


@pytest.fixture
def member(admin: Client) -> Client:
    """Alice of the project web."""
    return admin.acting_as({"X-Auth-Token": "alice:web", "X-Roles": "member"})


@pytest.fixture
def host(admin: Client) -> str:
    """A host of its own for each test."""
    return provider(admin, {"VCPU": 8})


def wanted(project: str, uuid: str | None = None, **consumer_members: Any) -> dict[str, Any]:
    """A consumer of a call of `place`."""
    owner = {"project_id": project, "user_id": "alice", "consumer_type": "JOB"}
    return {"uuid": uuid or new_uuid(), **owner, **consumer_members}


def body(host: str, *consumers: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The body of a call of `place` for one host."""
    request = {**REQUEST, "host": {"in": [host]}}
    return {"request": request, "consumers": list(consumers), **members}


def test_members_ask_every_question(member: Client, host: str) -> None:
    """About the whole fleet."""
    for question in ("candidates", "explain"):
        done(member.post(f"{V1}/{question}", json={"request": REQUEST}), 200)
    asked = member.post(f"{V1}/capacity", json={"requests": {"one": REQUEST}})
    done(asked, 200)


def test_members_do_not_see_who_else_holds_a_host(member: Client, admin: Client, host: str) -> None:
    """Nor in an explanation, which tells an administrator who holds the host that it names."""
    theirs = consumer(admin, {host: {"VCPU": 8}}, project="attic", user="mallory")
    asked = {"request": {**REQUEST, "host": {"in": [host]}}}
    assert theirs in done(admin.post(f"{V1}/explain", json=asked), 200).text
    explained = done(member.post(f"{V1}/explain", json=asked), 200).text
    assert host in explained
    assert not {theirs, "attic", "mallory"} & {*re.findall(r"[\w-]+", explained)}


def test_members_place_for_their_own_project(member: Client, admin: Client, host: str) -> None:
    """And see where, list it, and give it back."""
    job = wanted("web")
    done(member.post(f"{V1}/place", json=body(host, job)), 200)
    assert held(admin, job["uuid"]) == {host: {"VCPU": 1}}
    shown = done(member.get(f"{V1}/placements/{job['uuid']}"), 200).json
    assert shown["host"] == host
    for path in (f"?project_id=web&host={host}", f"/{job['uuid']}"):
        assert job["uuid"] in done(member.get(f"{V1}/consumers{path}"), 200).text
    moved = {**job, "consumer_generation": 1}
    done(member.post(f"{V1}/place", json=body(host, moved, replace=True)), 200)
    done(member.delete(f"{V1}/consumers/{job['uuid']}"), 204)
    assert held(admin, job["uuid"]) == {}


def test_members_see_names_of_their_own_project(member: Client, admin: Client, host: str) -> None:
    """And release by name, but do not claim a provider that they choose."""
    claim = {
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "user_id": "alice",
        "consumer_type": "JOB",
    }
    path = f"{V1}/consumers/web/job-17"
    assert member.put(path, json=claim).status == 403
    uuid = done(admin.put(path, json=claim), 200).json["uuid"]
    assert done(member.get(path), 200).json["uuid"] == uuid
    done(member.delete(path), 204)


def test_members_see_leases_of_their_own_project(member: Client, admin: Client, host: str) -> None:
    """If they name it."""
    own, foreign = (consumer(admin, {host: {"VCPU": 1}}, project=each) for each in ("web", "db"))
    for uuid in (own, foreign):
        done(admin.put(f"{V1}/leases/{uuid}", json={"seconds": 600}), 200)
    lines = done(member.get(f"{V1}/leases?project_id=web"), 200).text
    assert own in lines and foreign not in lines
    for query in ("", "?project_id=db"):
        assert member.get(f"{V1}/leases{query}").status == 403


def test_members_place_for_no_one_else(member: Client, admin: Client, host: str) -> None:
    """Neither a new consumer of another project, nor one that they would take over."""
    foreign = consumer(admin, {host: {"VCPU": 2}}, project="db")
    taken = wanted("web", foreign, consumer_generation=1)
    refused: tuple[Any, ...] = (
        body(host, wanted("db")),
        body(host, wanted("web"), wanted("db")),
        body(host, taken, replace=True),
        body(host, wanted("web", consumer_generation=1), taken, replace=True),
        {"consumers": []},
        {"consumers": "all"},
        [],
    )
    for each in refused:
        assert member.post(f"{V1}/place", json=each).status == 403, each
        assert member.post(f"{V1}/place?dry_run=true", json=each).status == 403, each
    assert held(admin, foreign) == {host: {"VCPU": 2}}
    for path in (
        f"placements/{foreign}",
        f"consumers/{foreign}",
        "consumers/db/job",
        "placements/db/job",
    ):
        assert member.get(f"{V1}/{path}").status == 403
    for path in (f"consumers/{foreign}", "consumers/db/job"):
        assert member.delete(f"{V1}/{path}").status == 403
    for query in ("", "?project_id=db", f"?host={host}"):
        assert member.get(f"{V1}/consumers{query}").status == 403
    assert held(admin, foreign) == {host: {"VCPU": 2}}


#: All that a member of a project may send, about the project.
MAY = {
    f"POST {V1}/candidates",
    f"POST {V1}/explain",
    f"POST {V1}/capacity",
    f"POST {V1}/place",
    f"GET {V1}/placements/{{consumer}}",
    f"GET {V1}/placements/{{project_id}}/{{name}}",
    f"GET {V1}/consumers",
    f"GET {V1}/consumers/{{uuid}}",
    f"DELETE {V1}/consumers/{{uuid}}",
    f"GET {V1}/consumers/{{project_id}}/{{name}}",
    f"DELETE {V1}/consumers/{{project_id}}/{{name}}",
    f"GET {V1}/permissions",
    f"GET {V1}/leases",
    f"GET {V1}/leases/{{consumer}}",
    f"PUT {V1}/leases/{{consumer}}",
    f"DELETE {V1}/leases/{{consumer}}",
}


def test_members_may_do_nothing_else(member: Client, admin: Client, host: str) -> None:
    """Every operation of either API, with the parameters of their own project."""
    own = consumer(admin, {host: {"VCPU": 1}}, project="web")
    own_call = {f"POST {V1}/place": body(host, wanted("web")) | {"limit": 0}}
    may = set()
    public = {V1, f"{V1}/openapi.json", *PUBLIC}
    for route in (*ROUTES, *BERTH_ROUTES):
        for method in route.methods:
            name = f"{method} {route.template}"
            path = route.path(uuid=own, consumer=own, consumer_uuid=own, project_id="web")
            query = "?project_id=web" if method == "GET" else ""
            sent = own_call.get(name, {})
            options: dict[str, Any] = {"json": sent} if method in ("PUT", "POST") else {}
            if method == "DELETE" and name in MAY:
                query = "?generation=99"
            status = member.request(method, f"{path}{query}", **options).status
            if status != 403 and route.template not in public:
                may.add(name)
    assert may == MAY
