# SPDX-License-Identifier: Apache-2.0
"""The audit log: one line for every request that writes, with who, what, before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.api.contract import DRY_RUN
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace, Operation
from berth.edge.audit_line import LINE_BYTES_MAX, _bounded
from berth.index import Index
from berth.model.errors import OutcomeUnknown
from berth.store.engine.database import Database
from tests.api import configured
from tests.api.worlds import new_uuid
from tests.client import ADMIN, Client, Response
from tests.world_over_http import built_over_http
from tests.worlds import consumer_uuid, provider_uuid, world

pytestmark = pytest.mark.in_process

FLEET = world("""
    cn1      VCPU=8  MEMORY_MB=1024
      gpu1   VGPU=4
    cn2      VCPU=8  MEMORY_MB=1024
""")
WIDE = provider_uuid("wide")
NOBODY = consumer_uuid("nobody")
CN1, GPU1, CN2 = map(provider_uuid, ("cn1", "gpu1", "cn2"))
WRITES = [
    pytest.param(namespace, operation, id=f"{operation.name}-1.{operation.until}")
    for namespace in NAMESPACES
    for operation in namespace.operations
    if not operation.is_read
]


class Service:
    """A service with an audit log."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.client = client
        self.file = folder / "audit.jsonl"
        self._read = 0

    def lines(self) -> list[dict[str, Any]]:
        """The lines since the last call."""
        every = self.file.read_bytes().splitlines() if self.file.exists() else []
        new, self._read = every[self._read :], len(every)
        return [json.loads(line) for line in new]

    def line(self) -> dict[str, Any]:
        """The only line since the last call."""
        (line,) = self.lines()
        return line


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with this fleet."""
    folder = tmp_path_factory.mktemp("audited")
    client = configured.serve(folder, "[berth]\naudit_log = audit.jsonl\n")
    with built_over_http(FLEET, client):
        yield Service(folder, client)


@pytest.fixture
def service(whole: Service) -> Service:
    """The same; what other tests did is read."""
    whole.lines()
    return whole


def claim(
    client: Client,
    consumer: str,
    allocations: dict[str, dict[str, int]],
    *,
    generation: int | None = None,
    project: str = "web",
    **members: Any,
) -> Response:
    """Write a consumer's allocations."""
    body = {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": project,
        "user_id": "alice",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return client.put(f"/allocations/{consumer}", json=body | members)


def path_of(namespace: Namespace, operation: Operation) -> str:
    """A path of an operation, with its examples."""
    path = namespace.path_of(operation)
    for name, segment in operation.segments.items():
        path = path.replace(f"{{{name}}}", segment.example)
    return path


def send(client: Client, namespace: Namespace, operation: Operation, **options: Any) -> Response:
    """Send an operation's example."""
    path = path_of(namespace, operation)
    if operation.contract.body is not None:
        options.setdefault("json", operation.contract.body.example.at(operation.until))
    version = f"1.{operation.until}"
    return client.request(operation.method, path, version=version, **options)


# --- Every operation -----------------------------------------------------------------------------


@pytest.mark.parametrize(("namespace", "operation"), WRITES)
def test_every_write_leaves_one_line(
    service: Service, namespace: Namespace, operation: Operation
) -> None:
    """Who tried is as interesting as who succeeded; the outcome is that of its example in the
    documentation."""
    other = service.client.acting_as({"X-Auth-Token": "mallory:attic", "X-Roles": "member"})
    assert send(other, namespace, operation).status == 403
    line = service.line()
    assert (line["outcome"], line["status"], line["operation"]) == ("refused", 403, operation.name)
    assert (line["user_id"], line["project_id"]) == ("mallory", "attic")
    assert "allocations" not in line
    response = send(service.client, namespace, operation)
    line = service.line()
    assert line["operation"] == operation.name
    assert (line["method"], line["route"]) == (operation.method, namespace.path_of(operation))
    assert line["path"] == path_of(namespace, operation)
    assert line["status"] == response.status
    assert line["outcome"] == ("done" if response.status < 300 else "refused")
    assert line["request_id"] == response.headers["x-openstack-request-id"]
    assert (line["user_id"], line["roles"]) == ("admin", ["admin", "service"])
    if operation.segments:
        assert line["parameters"] == {
            name: segment.example for name, segment in operation.segments.items()
        }


def test_reads_leave_no_line(service: Service, tmp_path: Path) -> None:
    """Nor do searches that are POST requests, and dry runs; without the option nothing does."""
    for namespace in NAMESPACES:
        for operation in namespace.operations:
            if operation.is_read:
                send(service.client, namespace, operation)
            elif operation.may_be_dry:
                assert operation.contract.body is not None
                body = operation.contract.body.example.at(operation.until)
                for query in (f"{DRY_RUN}=true", "dry%5Frun=%74rue"):
                    service.client.post(f"{namespace.path_of(operation)}?{query}", json=body)
    assert service.lines() == []
    assert configured.serve(tmp_path).put("/traits/CUSTOM_QUIET").status == 201
    assert not list(tmp_path.glob("audit*"))


@pytest.mark.parametrize(
    ("method", "path", "body", "shown"),
    [
        # So that they can be searched for.
        ("PUT", "/berth/v1/flavors/Z%C3%BCrich", {}, {"path": "/berth/v1/flavors/Zürich"}),
        ("PUT", "/traits/%FF", {}, {"path": "/traits/\N{REPLACEMENT CHARACTER}"}),
        ("PUT", f"/allocations/{NOBODY}", {"nonsense": True}, {"status": 400}),
        ("PUT", f"/allocations/{NOBODY}", b"{}", {"status": 415}),
        ("PUT", "/berth/v1/trees/new", {"providers": []}, {"providers": [{"name": "new"}]}),
        # UTF-8 has no form of half a surrogate pair, and JSON does; a line break ends no line.
        ("PUT", "/traits/CUSTOM_A", {}, {"user_id": "admin", "status": 201}),
        ("POST", "/resource_providers", {"name": "a\n\ud800b"}, {"operation": "create_provider"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("service_user", [None, "nova"])
def test_a_line_shows_what_its_client_means(
    service: Service, method: str, path: str, body: Any, shown: Any, service_user: str | None
) -> None:
    """And the service that acts for a user, if there is one: the user of a token of its own."""
    headers = {} if service_user is None else {"X-Service-User-Id": service_user}
    if isinstance(body, bytes):
        headers["Content-Type"] = "text/plain"
        service.client.request(method, path, body=body, headers=headers)
    else:
        service.client.request(method, path, json=body, headers=headers)
    line = service.line()
    assert {name: line[name] for name in shown} == shown
    assert line.get("service_user_id") == service_user
    service.client.delete("/traits/CUSTOM_A")


# --- Allocations ---------------------------------------------------------------------------------


def amounts(line: dict[str, Any]) -> set[tuple[str, str, int | None, int | None]]:
    """The allocations of a line of one consumer: provider, class, before, after."""
    return {
        (each["provider"], each["resource_class"], each.get("before"), each.get("after"))
        for each in line["allocations"]
    }


def test_a_move_shows_what_was_given_back(service: Service) -> None:
    """To another host, another amount, and another project."""
    consumer = new_uuid()
    claim(service.client, consumer, {CN1: {"VCPU": 2, "MEMORY_MB": 64}})
    claim(service.client, consumer, {CN2: {"VCPU": 2}, CN1: {"VCPU": 1}}, generation=1)
    claim(service.client, consumer, {CN2: {"VCPU": 2}}, generation=2, project="attic")
    _, moved, given = service.lines()
    assert amounts(moved) == {
        (CN1, "VCPU", 2, 1),
        (CN1, "MEMORY_MB", 64, 0),
        (CN2, "VCPU", 0, 2),
    }
    assert moved["consumers"] == [{"uuid": consumer, "project_id": "web", "user_id": "alice"}]
    assert given["consumers"] == [
        {
            "uuid": consumer,
            "project_id": "attic",
            "user_id": "alice",
            "project_id_before": "web",
            "user_id_before": "alice",
        }
    ]
    service.client.delete(f"/allocations/{consumer}")


def test_a_refused_claim_shows_what_was_asked(service: Service) -> None:
    """A refusal has its code and reason; nothing was replaced, so there is no `before`."""
    consumer = new_uuid()
    assert claim(service.client, consumer, {GPU1: {"VGPU": 9}}).status == 409
    line = service.line()
    assert (line["outcome"], line["code"]) == ("refused", "placement.undefined_code")
    assert GPU1 in line["detail"]
    assert line["allocations"] == [
        {"consumer": consumer, "provider": GPU1, "resource_class": "VGPU", "asked": 9}
    ]


def test_a_repeated_placement_has_written_nothing(service: Service) -> None:
    """Sent again, `place` answers as before, and its line says so."""
    consumer = new_uuid()
    owner = {"project_id": "web", "user_id": "alice", "consumer_type": "JOB"}
    body = {
        "request": {"groups": {"": {"resources": {"VGPU": 1}}}},
        "consumers": [{"uuid": consumer, **owner}],
    }
    for _ in range(2):
        assert service.client.post("/berth/v1/place", json=body).status == 200
    placed, repeated = service.lines()
    assert placed["outcome"] == "done"
    assert amounts(placed) == {(GPU1, "VGPU", 0, 1)}
    assert repeated["outcome"] == "repeated"
    assert repeated["consumers"] == placed["consumers"]
    assert "allocations" not in repeated
    service.client.delete(f"/allocations/{consumer}")


def test_a_child_has_its_host_from_the_beginning(tmp_path: Path) -> None:
    """Also if another worker has just created the host, so that this one has not seen it; and it
    has its name when it is deleted, even if this worker never saw it."""
    config = "[berth]\naudit_log = audit.jsonl\n"
    one, other = (Service(tmp_path, configured.serve(tmp_path, config)) for _ in range(2))
    host, child = new_uuid(), new_uuid()
    body = {"uuid": child, "name": "gpu", "parent_provider_uuid": host}
    refused = body | {"uuid": new_uuid(), "parent_provider_uuid": new_uuid()}
    one.client.post("/resource_providers", json={"uuid": host, "name": "host"})
    assert other.client.post("/resource_providers", json=body).status == 200
    assert one.client.post("/resource_providers", json=refused).status == 400
    assert one.client.delete(f"/resource_providers/{child}").status == 204
    _, created, failed, deleted = one.lines()
    assert created["providers"] == [{"uuid": child, "name": "gpu", "host": "host"}]
    assert deleted["providers"] == created["providers"]
    assert failed["providers"] == [{"uuid": refused["uuid"], "name": "gpu"}]


def test_who_may_not_delete_a_provider_does_not_have_it_looked_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the policy's answer, nothing reads the database for the log."""
    monkeypatch.setattr(Index, "snapshot", lambda index: pytest.fail("looked up"))
    other = service.client.acting_as({"X-Auth-Token": "mallory:attic", "X-Roles": "member"})
    uuid = new_uuid()
    assert other.delete(f"/resource_providers/{uuid}").status == 403
    assert service.line()["providers"] == [{"uuid": uuid}]


@pytest.mark.parametrize(("error", "status"), [(OutcomeUnknown(), 503), (RuntimeError(), 500)])
def test_an_unknown_outcome_says_so(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """A COMMIT without an answer is neither done nor refused; a crash may come before or after
    it."""

    def lose(*_args: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr(Database, "write", lose)
    assert claim(service.client, new_uuid(), {CN1: {"VCPU": 1}}).status == status
    line = service.line()
    assert (line["outcome"], line["status"]) == ("unknown", status)
    assert line["allocations"][0]["asked"] == 1


def test_a_bug_in_the_line_does_not_fail_the_request(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The write is committed: its answer must say so."""
    monkeypatch.setattr("berth.edge.audit_log.line_of", lambda *_: 1 / 0)
    assert service.client.put("/traits/CUSTOM_UNSEEN").status == 201
    assert service.lines() == []
    assert "Cannot make a line of the audit log" in caplog.text


# --- Bounds and secrets --------------------------------------------------------------------------


def test_a_provider_with_many_long_classes_leaves_its_line(service: Service) -> None:
    """Members of an object are cut as the entries of a list are, and counted."""
    names = [f"CUSTOM_{'X' * 230}_{number}" for number in range(300)]
    tree: dict[str, Any] = {"uuid": WIDE, "name": "x", "traits": names}
    for status, total in ((201, 1), (200, 2)):
        tree["inventories"] = {name: {"total": total} for name in names}
        body = {"providers": [tree], "create_names": True}
        assert service.client.put("/berth/v1/trees/x", json=body).status == status
    created, changed = service.lines()
    (change,) = created["after"]["changes"]
    for name in ("inventories", "traits"):
        assert 0 < len(change["after"][name]) == 300 - created["omitted"][name]
    (change,) = changed["after"]["changes"]
    shown = len(change["before"]["inventories"]) + len(change["after"]["inventories"])
    assert 0 < shown == 600 - changed["omitted"]["inventories"]
    service.client.delete(f"/resource_providers/{WIDE}")


def test_a_line_is_short_enough_whatever_is_in_it() -> None:
    """The last step leaves the call, and counts of the rest: then it is a line all the same."""
    longest = "\ud800" + "\U0001f600" * 500  # as JSON 12 bytes for each
    texts = ("detail", "request_id", "user_id", "user_name", "project_id")
    record: dict[str, Any] = dict.fromkeys(texts, longest)
    mapping = {f"CUSTOM_{number:0240}": longest for number in range(300)}
    side = {"name": longest, "traits": [longest] * 300, "inventories": mapping}
    record |= {
        "roles": [longest] * 50,
        "consumers": [{"name": longest, "project_id": longest, "user_id": longest * 9}] * 256,
        "after": {"changes": [{"uuid": longest, "before": side, "after": side}] * 9},
    }
    text = _bounded(record)
    assert len(text) < LINE_BYTES_MAX
    line = json.loads(text)
    assert line["omitted"] == {"roles": 50, "consumers": 256, "changes": 9}
    assert line["user_id"].startswith("\ud800\U0001f600")


def test_the_longest_texts_leave_a_line(service: Service) -> None:
    """256 consumers with names of characters of four bytes; a flavor; a path."""
    client, text = service.client, "\U0001f600" * 255
    consumers = [
        {"name": f"{number:03}{text[3:]}", "project_id": "w" * 255, "user_id": "u" * 255}
        | {"consumer_type": "JOB"}
        for number in range(256)
    ]
    groups = {"": {"resources": {"VCPU": 1}}}
    place = {"request": {"groups": groups}, "consumers": consumers}
    assert client.post("/berth/v1/place", json=place).status == 409
    line = service.line()
    assert len(line["consumers"]) + line["omitted"]["consumers"] == 256
    assert line["consumers"][0]["name"] == consumers[0]["name"]
    groups = {f"_{number:060}": {"resources": {"VCPU": 1}} for number in range(64)}
    flavor = f"/berth/v1/flavors/{'f' * 255}"
    assert client.put(flavor, json={"request": {"groups": groups}}).status == 201
    assert client.delete(flavor).status == 204
    client.put(f"/traits/{'X' * 20_000}")
    *lines, long = service.lines()
    assert [line["status"] for line in lines] == [201, 204]
    assert len(long["path"]) < 600


def test_credentials_are_never_in_it(service: Service) -> None:
    """Not in headers of its own, and not where a client has put them by mistake."""
    token = "gAAAAABo-secret_" + "x" * 40
    client = service.client.acting_as({**ADMIN, "X-Auth-Token": f"admin:{token}"})
    # noauth2 takes the token's second part for the project, so both are looked for.
    whole_token = f"admin:{token}"
    client.put(f"/traits/{whole_token}", headers={"Authorization": f"Bearer {token}"})
    client.put(f"/allocations/{token}", json={}, headers={"X-Service-Token": token})
    text = service.file.read_text()
    assert [line["status"] for line in service.lines()] == [400, 400]
    assert "***" in text
    assert token not in text
