# SPDX-License-Identifier: Apache-2.0
"""What a caller may do that is bound to a host: everything to the tree of it, and nothing else.

Source: spec/beyond.md 1.7.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from berth.api.namespaces import NAMESPACES
from berth.api.operation import Operation
from berth.edge.auth.identity import Identity
from berth.edge.auth.tokens import issue, render_tokens
from tests.api import configured
from tests.api.worlds import done, new_uuid
from tests.client import LATEST, Client, Response
from tests.edge.auth.gate import basic, hashed
from tests.effort import SEED

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

pytestmark = pytest.mark.in_process

#: Each with its roles, and the host to which it is bound.
CALLERS: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "root": (("admin", "service"), None),
    "eve": (("auditor",), None),
    "gpu01": (("agent",), "gpu01"),
    "gpu02": (("agent",), "gpu02"),
    "gpu03": (("agent",), "gpu03"),
}
VERSION = {"OpenStack-API-Version": f"placement {LATEST}"}
ROLES = {"agent": "gpu01", "auditor": "eve", "admin and service": "root"}


def by_token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Client]:
    """A service with tokens; the user of a token is not named as its host."""
    secret: dict[str, str] = {}
    kept = []
    for name, (roles, host) in CALLERS.items():
        identity = Identity(f"token of {name}", "web", roles, host)
        secret[name], record = issue(identity, created=datetime.now(UTC), expires=None)
        kept.append(record)
    (folder / "tokens").write_text(render_tokens(kept))
    served = configured.serve(folder, strategy="token")
    return lambda name: served.acting_as({"X-Auth-Token": secret[name], **VERSION})


def by_password(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Client]:
    """A service with passwords."""
    lines = [
        f"{name}:{hashed('secret')}:web:{','.join(roles)}{f':{host}' if host else ''}\n"
        for name, (roles, host) in CALLERS.items()
    ]
    (folder / "htpasswd").write_text("".join(lines))
    served = configured.serve(folder, strategy="http_basic")
    return lambda name: served.acting_as({**basic(name, "secret"), **VERSION})


def by_keystone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Client]:
    """A service that gets users from Keystone's middleware; its own is in tests/e2e."""

    def open_middleware(inside: WSGIApplication, conf: object) -> tuple[WSGIApplication, Any]:
        def middleware(environ: WSGIEnvironment, start: StartResponse) -> Any:
            name = environ["HTTP_X_AUTH_TOKEN"]
            environ["HTTP_X_USER_ID"], environ["HTTP_X_USER_NAME"] = f"id of {name}", name
            environ["HTTP_X_PROJECT_ID"] = "web"
            environ["HTTP_X_ROLES"] = ",".join(CALLERS[name][0])
            return inside(environ, start)

        class Server:
            def accepts(self, token: str, *, allow_expired: bool) -> bool:
                return True

        return middleware, Server()

    monkeypatch.setattr("berth.edge.auth.keystone_server.open_middleware", open_middleware)
    served = configured.serve(folder, strategy="keystone")
    return lambda name: served.acting_as({"X-Auth-Token": name, **VERSION})


WAYS = {"token": by_token, "http_basic": by_password, "keystone": by_keystone}


@dataclass
class World:
    """Two hosts with a GPU each, a consumer on each, a pool of both, and the callers."""

    acting_as: Callable[[str], Client]
    #: By name.
    providers: dict[str, str]
    consumers: dict[str, str]

    @property
    def root(self) -> Client:
        return self.acting_as("root")

    def tree(self, host: str) -> list[dict[str, Any]]:
        """A tree as it is."""
        path = f"/berth/v1/trees/{host}?include=inventories,traits,aggregates,usages,drains"
        providers: list[dict[str, Any]] = done(self.root.get(path), 200).json["providers"]
        return providers


AGGREGATE = "5a1e0000-0000-4000-8000-00000000a66e"


def world_of(acting_as: Callable[[str], Client]) -> World:
    """The world, in a service that is empty."""
    root = acting_as("root")
    pool = [{"name": "pool", "inventories": {"DISK_GB": {"total": 100}},
             "traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": [AGGREGATE]}]  # fmt: skip
    trees = {"pool": pool, "gpu01": tree_of("gpu01"), "gpu02": tree_of("gpu02")}
    lines = [
        line
        for name, tree in trees.items()
        for line in done(root.put(f"/berth/v1/trees/{name}", json={"providers": tree}), 201).json[
            "providers"
        ]
    ]
    world = World(acting_as, {line["name"]: line["uuid"] for line in lines}, {})
    for host in ("gpu01", "gpu02"):
        world.consumers[host] = claim(root, world.providers[f"{host}_0"], PGPU=1)
        done(root.put(f"/berth/v1/drains/of-{host}", json={"providers": [host]}), 201)
    return world


def tree_of(host: str) -> list[dict[str, Any]]:
    """A host with processors, and a GPU."""
    return [
        {"name": host, "inventories": {"VCPU": {"total": 8}}, "aggregates": [AGGREGATE]},
        {"name": f"{host}_0", "parent": host, "inventories": {"PGPU": {"total": 2}}},
    ]


def claiming(allocations: Mapping[str, Mapping[str, int]], generation: int | None = None) -> Any:
    """The body of a claim."""
    return {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": generation,
        "consumer_type": "JOB",
    }


def claim(client: Client, provider: str, **amounts: int) -> str:
    """A new consumer that holds something of a provider."""
    consumer = new_uuid()
    done(client.put(f"/allocations/{consumer}", json=claiming({provider: amounts})), 204)
    return consumer


@pytest.fixture(scope="module", params=WAYS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One for each way to sign in."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("rights")
        yield world_of(WAYS[request.param](folder, monkeypatch))


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world of its own."""
    return world_of(by_token(tmp_path, monkeypatch))


# --- The matrix ----------------------------------------------------------------------------------

#: What an agent may send, by what the path names: of its own host never 403, of another's always.
OF_A_PROVIDER = """
    GET PUT DELETE /resource_providers/{uuid}
    GET POST PUT DELETE /resource_providers/{uuid}/inventories
    GET PUT DELETE /resource_providers/{uuid}/inventories/{resource_class}
    GET PUT /resource_providers/{uuid}/aggregates
    GET PUT DELETE /resource_providers/{uuid}/traits
    GET /resource_providers/{uuid}/usages
    GET /resource_providers/{uuid}/allocations
    GET PUT /berth/v1/trees/{reference}
    GET PUT DELETE /berth/v1/drains/{name}
    GET PUT DELETE /allocations/{consumer_uuid}
    GET DELETE /berth/v1/consumers/{uuid}
    GET /berth/v1/placements/{consumer}
    GET PUT DELETE /berth/v1/leases/{consumer}
"""
#: By what the query or the body names: tested one by one below.
OF_A_BODY = """
    GET POST /resource_providers
    POST /allocations
    POST /reshaper
    GET /berth/v1/consumers
    GET /berth/v1/drains
    GET PUT DELETE /berth/v1/consumers/{project_id}/{name}
    GET /berth/v1/placements/{project_id}/{name}
    POST /berth/v1/candidates
    POST /berth/v1/explain
    POST /berth/v1/capacity
    POST /berth/v1/place
"""
#: Of no host.
OF_NAMES = """
    GET /traits
    GET PUT /traits/{name}
    GET POST /resource_classes
    GET PUT /resource_classes/{name}
    GET /berth/v1/aggregates
    GET /berth/v1/aggregates/{uuid}
    GET /berth/v1/permissions
"""


def lines(text: str) -> set[tuple[str, str]]:
    """Methods and paths."""
    rows = (line.split() for line in text.split("\n") if line.strip())
    return {(method, path) for *methods, path in rows for method in methods}


OPERATIONS: Mapping[tuple[str, str], Operation] = {
    (operation.method, namespace.path_of(operation)): operation
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.rule is not None
}
FORBIDDEN = OPERATIONS.keys() - lines(OF_A_PROVIDER) - lines(OF_A_BODY) - lines(OF_NAMES)


def filled(world: World, path: str, host: str) -> str:
    """A path about a host."""
    values = {
        "reference": host,
        "resource_class": "VCPU",
        "consumer_uuid": world.consumers[host],
        "consumer": world.consumers[host],
        "uuid": world.consumers[host] if "consumers" in path else world.providers[host],
    }
    name = f"of-{host}" if "drains" in path else "CUSTOM_X"
    return path.format_map({**values, "name": name, "project_id": "web"})


def is_about(answer: Response, *said: str) -> bool:
    """Whether an answer is a 403 that says all of that."""
    return answer.status == 403 and all(each in answer.error["detail"] for each in said)


@pytest.mark.parametrize("caller", ROLES)
def test_who_may_send_what(world: World, caller: str) -> None:
    """Every route, for each role; with an empty body, so that whoever may gets at most 400."""
    client = world.acting_as(ROLES[caller])
    allowed = {
        "agent": lines(OF_A_PROVIDER) | lines(OF_A_BODY) | lines(OF_NAMES),
        "admin and service": OPERATIONS.keys(),
        "auditor": {
            (method, path)
            for method, path in OPERATIONS
            if path.startswith("/berth/v1") and OPERATIONS[method, path].is_read
            if "placements" not in path
        },
    }[caller]
    refused = {
        (method, path)
        for method, path in OPERATIONS
        if method != "DELETE" or (method, path) in FORBIDDEN
        if client.request(method, filled(world, path, "gpu01"), json={}).status == 403
    }
    may_be_refused = lines(OF_A_BODY) if caller == "agent" else set()
    assert refused - may_be_refused == {
        (method, path) for method, path in OPERATIONS.keys() - allowed - may_be_refused
        if method != "DELETE" or (method, path) in FORBIDDEN
    }  # fmt: skip


def request_of(world: World, method: str, path: str, host: str) -> Response:
    """What an agent of gpu01 gets for a request whose body or query is about some host."""
    gpu, place = world.providers[f"{host}_0"], {"in": [host]}
    wanted = {"groups": {"": {"resources": {"PGPU": 1}}}, "host": place}
    too_much = {"groups": {"": {"resources": {"PGPU": 9}}}, "host": place}
    consumer = {"uuid": new_uuid(), "project_id": "web", "user_id": "u", "consumer_type": "JOB"}
    root = {"parent_provider_uuid": world.providers[host], "name": f"{host}_{secrets.token_hex(4)}"}
    stale = {"resource_provider_generation": 999, "inventories": {"PGPU": {"total": 9}}}
    held = {"allocations": {f"{host}_0": {"resources": {"PGPU": 3}}}}
    bodies: dict[tuple[str, str], Any] = {
        ("POST", "/resource_providers"): root,
        ("POST", "/allocations"): {new_uuid(): claiming({gpu: {"PGPU": 3}})},
        ("POST", "/reshaper"): {"inventories": {gpu: stale}, "allocations": {}},
        ("PUT", "/berth/v1/consumers/{project_id}/{name}"): {
            "user_id": "alice",
            "consumer_type": "JOB",
            **held,
        },
        ("POST", "/berth/v1/candidates"): {"request": wanted},
        ("POST", "/berth/v1/explain"): {"request": wanted},
        ("POST", "/berth/v1/capacity"): {"requests": {"r": wanted}},
        ("POST", "/berth/v1/place"): {"request": too_much, "consumers": [consumer]},
    }
    queries = {
        "/resource_providers": f"?in_tree={world.providers[host]}",
        "/berth/v1/consumers": f"?host={host}",
        "/berth/v1/drains": f"?host={host}",
    }
    query = queries.get(path, "") if method == "GET" else ""
    options = {} if (method, path) not in bodies else {"json": bodies[method, path]}
    target = path.format(project_id="web", name=f"{host}-job")
    return world.acting_as("gpu01").request(method, target + query, **options)


@pytest.mark.parametrize("method, path", sorted(lines(OF_A_BODY)))
def test_the_body_or_the_query_names_another_host(world: World, method: str, path: str) -> None:
    """It is refused before anything else is said of that host, and not for the agent's own."""
    for host in ("gpu01", "gpu02"):
        job = f"/berth/v1/consumers/web/{host}-job"
        if world.root.get(job).status == 404:
            body = {"user_id": "a", "consumer_type": "JOB",
                    "allocations": {host: {"resources": {"VCPU": 1}}}}  # fmt: skip
            done(world.root.put(job, json=body), 200)
    answer = request_of(world, method, path, "gpu02")
    assert is_about(answer, "bound to the host gpu01", "gpu02"), answer.text
    assert request_of(world, method, path, "gpu01").status != 403


def test_other_hosts_and_other_routes_are_not_for_agents(world: World) -> None:
    """The refusal names the host of the caller, and the provider outside; or the route."""
    agent = world.acting_as("gpu01")
    for method, path in sorted(lines(OF_A_PROVIDER)):
        answer = agent.request(method, filled(world, path, "gpu02"), json={})
        assert is_about(answer, "bound to the host gpu01", "gpu02"), (method, path, answer.text)
    for method, path in sorted(FORBIDDEN):
        answer = agent.request(method, filled(world, path, "gpu01"), json={})
        rule, of_host = "you have the role agent", f"Agents may not send {method} {path}"
        assert is_about(answer, rule) or is_about(answer, of_host), answer.text


# --- What is confined in the transaction ---------------------------------------------------------


def test_the_conditions_of_a_placement_stay_on_the_host(quick: World) -> None:
    """Those beside the request, which may take the place of its own, and a request left out."""
    agent, uuid = quick.acting_as("gpu01"), quick.consumers["gpu01"]
    shown = quick.root.get(f"/berth/v1/consumers/{uuid}").json
    consumer = {key: shown[key] for key in ("uuid", "project_id", "user_id", "consumer_type")}
    own = {
        "consumers": [{**consumer, "consumer_generation": shown["generation"]}],
        "replace": True,
        "explain": False,
    }
    request = {"groups": {"": {"resources": {"PGPU": 1}}}, "host": {"in": ["gpu01"]}}
    for sent in (own, {**own, "request": request, "host": {"in": ["gpu02"]}}):
        assert agent.post("/berth/v1/place", json=sent).status == 403, sent
    assert agent.post("/berth/v1/place", json={**own, "host": {"in": ["gpu02"]}}).status == 403
    here = {"host": {"in": ["gpu01"]}, "tolerate": "*"}
    answered = agent.post("/berth/v1/place", json={**own, **here})
    assert answered.status == 200, answered.text


def test_a_tree_need_not_exist_yet(quick: World) -> None:
    """An agent creates its own, under its own name only, and may delete it."""
    agent = quick.acting_as("gpu03")
    for taken, said in (("gpu04", "gpu04"), ("gpu02", "gpu02")):
        answer = agent.post("/resource_providers", json={"name": taken})
        assert is_about(answer, "bound to the host gpu03", f"provider {said}")
    answer = agent.post(
        "/resource_providers", json={"name": "gpu03", "uuid": quick.providers["gpu02"]}
    )
    assert is_about(answer, "bound to the host gpu03", "provider gpu02")
    made = done(agent.post("/resource_providers", json={"name": "gpu03"}), 200).json
    answer = agent.put(f"/resource_providers/{made['uuid']}", json={"name": "gpu05"})
    assert is_about(answer, "bound to the host gpu03", "gpu05")
    done(agent.delete(f"/resource_providers/{made['uuid']}"), 204)


@pytest.mark.parametrize("member", ["name", "uuid"])
def test_nothing_of_another_tree_is_taken(quick: World, member: str) -> None:
    """Neither a name nor a UUID."""
    before = quick.tree("gpu02")
    taken = {"name": "gpu02_0", "uuid": quick.providers["gpu02_0"]}[member]
    body = {"providers": [{"name": "x", member: taken, "parent": "gpu01"}]}
    answer = quick.acting_as("gpu01").put("/berth/v1/trees/gpu01", json=body)
    assert is_about(answer, "bound to the host gpu01", "provider gpu02_0 is in the tree of gpu02")
    assert quick.tree("gpu02") == before


def test_a_host_below_another_root_has_no_tree(quick: World) -> None:
    """Otherwise its agent would rule the whole tree."""
    body = {"name": "gpu02", "parent_provider_uuid": quick.providers["gpu01"]}
    done(quick.root.put(f"/resource_providers/{quick.providers['gpu02']}", json=body), 200)
    answer = quick.acting_as("gpu02").get("/berth/v1/trees/gpu02")
    assert is_about(answer, "bound to the host gpu02", "gpu02 is in the tree of gpu01")


def test_a_consumer_that_holds_something_elsewhere_is_not_released(quick: World) -> None:
    """Nor changed; but a reshape may name it, if that part stays as it is."""
    agent, uuids, consumer = quick.acting_as("gpu01"), quick.providers, new_uuid()
    both = {uuids["gpu01_0"]: {"PGPU": 1}, uuids["pool"]: {"DISK_GB": 5}}
    done(quick.root.put(f"/allocations/{consumer}", json=claiming(both)), 204)
    assert is_about(agent.delete(f"/allocations/{consumer}"), "bound to the host gpu01", "pool")
    done(agent.get(f"/allocations/{consumer}"), 200)

    def reshaped(disk: int) -> Response:
        moved = {uuids["gpu01"]: {"PGPU": 1}, uuids["pool"]: {"DISK_GB": disk}}
        root = done(quick.root.get(f"/resource_providers/{uuids['gpu01']}"), 200).json
        inventories = {
            "resource_provider_generation": root["generation"],
            "inventories": {"VCPU": {"total": 8}, "PGPU": {"total": 2}},
        }
        allocations = {consumer: claiming(moved, generation=1)}
        body = {"inventories": {uuids["gpu01"]: inventories}, "allocations": allocations}
        return agent.post("/reshaper", json=body)

    for disk in (4, 6):
        assert is_about(reshaped(disk), "bound to the host gpu01", "pool")
    done(reshaped(5), 204)


def test_a_drain_of_several_hosts_is_not_an_agents(quick: World) -> None:
    """Neither to change, nor to end for its own host."""
    done(quick.root.put("/berth/v1/drains/rack", json={"providers": ["gpu01", "gpu02"]}), 201)
    agent = quick.acting_as("gpu01")
    for answer in (
        agent.put("/berth/v1/drains/rack", json={"reason": "mine"}),
        agent.put("/berth/v1/drains/rack", json={"providers": ["gpu01"]}),
        agent.delete("/berth/v1/drains/rack"),
        agent.get("/berth/v1/drains/rack"),
    ):
        assert is_about(answer, "bound to the host gpu01", "gpu02"), answer.text
    assert agent.get("/berth/v1/drains?host=gpu01").status == 200
    done(agent.put("/berth/v1/drains/mine", json={"providers": ["gpu01"]}), 201)
    done(agent.delete("/berth/v1/drains/mine"), 204)


def test_a_question_is_restricted_to_the_host(quick: World) -> None:
    """Otherwise it is refused with the member that is missing; other hosts are not explained, to
    whatever question."""
    agent = quick.acting_as("gpu01")
    request = {"groups": {"": {"resources": {"VCPU": 100}}}}
    answer = agent.post("/berth/v1/explain", json={"request": request})
    assert is_about(answer, "bound to the host gpu01", '"host": {"in": ["gpu01"]}')
    own = {**request, "host": {"in": ["gpu01"]}}
    consumer = {"uuid": new_uuid(), "project_id": "web", "user_id": "u", "consumer_type": "JOB"}
    for noun, members, status in (
        ("explain", {}, 200),
        ("explain", {"request": {"alternatives": [own, own]}}, 200),
        ("candidates", {"explain": True}, 200),
        ("place", {"consumers": [consumer]}, 409),
    ):
        shown = done(agent.post(f"/berth/v1/{noun}", json={"request": own, **members}), status)
        explanation = shown.json.get("explanation", shown.json)
        for each in explanation.get("alternatives", [explanation]):
            assert [near["host"]["name"] for near in each["nearest"]] == ["gpu01"], noun
        assert "gpu02" not in shown.text, noun


def test_the_consumers_of_a_provider_are_shown_to_its_host(quick: World) -> None:
    """The query may name any provider of the tree; and the pool of its tree may be read."""
    agent, path = quick.acting_as("gpu01"), "/berth/v1/consumers?provider="
    listed = done(agent.get(f"{path}gpu01_0"), 200)
    assert quick.consumers["gpu01"] in listed.text
    assert is_about(agent.get(f"{path}gpu02_0"), "bound to the host gpu01", "gpu02")
    pool = f"/resource_providers/{quick.providers['pool']}/inventories"
    done(agent.get(pool), 200)
    assert is_about(agent.delete(pool), "bound to the host gpu01", "pool")


@pytest.mark.parametrize(
    ("allowed", "status"), [("*", 200), (AGGREGATE, 200), ("rack=r1", 200), ("rack=r2", 403)]
)
def test_only_aggregates_that_the_operator_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, status: int
) -> None:
    """Of sharing providers; others may be joined always."""
    monkeypatch.setenv("OS_BERTH__AGENT_AGGREGATES", allowed)
    world = world_of(by_token(tmp_path, monkeypatch))
    done(world.root.put(f"/berth/v1/aggregates/{AGGREGATE}", json={"labels": {"rack": "r1"}}), 200)
    agent = world.acting_as("gpu03")
    done(agent.put("/berth/v1/trees/gpu03", json={"providers": [{"name": "gpu03"}]}), 201)
    for aggregate, expected in ((new_uuid(), 200), (AGGREGATE, status)):
        body = {"providers": [{"name": "gpu03", "aggregates": [aggregate]}]}
        answer = agent.put("/berth/v1/trees/gpu03", json=body)
        assert answer.status == expected, answer.text
    if status == 403:
        assert is_about(answer, "bound to the host gpu03", AGGREGATE, "provider pool")


# --- Histories -----------------------------------------------------------------------------------


class History:
    """Two agents that try everything on everything, and an administrator who moves GPUs."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self.rng = world, rng
        self.hosts = ("gpu01", "gpu02")
        #: How many writes were accepted, and how many refused.
        self.counts = {True: 0, False: 0}

    def step(self) -> None:
        """One request: the tree of the other host does not change."""
        if self.rng.random() < 0.2:
            self._move()
            return
        me, other = self.rng.sample(self.hosts, 2)
        before = self.world.tree(other)
        answer = self._attempt(self.world.acting_as(me))
        assert self.world.tree(other) == before, (me, answer.text)
        if answer.status == 403:
            assert f"bound to the host {me}" in answer.error["detail"]
        self.counts[answer.status < 300] += 1

    def _move(self) -> None:
        """A GPU moves to a host, with whoever holds it."""
        gpu, host = self.rng.choice(("gpu01_0", "gpu02_0")), self.rng.choice(self.hosts)
        uuids = self.world.providers
        body = {"name": gpu, "parent_provider_uuid": uuids[host]}
        done(self.world.root.put(f"/resource_providers/{uuids[gpu]}", json=body), 200)

    def _attempt(self, agent: Client) -> Response:
        rng, uuids, root = self.rng, self.world.providers, self.world.root
        name = rng.choice(("gpu01", "gpu01_0", "gpu02", "gpu02_0"))
        uuid, host = uuids[name], rng.choice(self.hosts)
        consumer = rng.choice(sorted(self.world.consumers.values()))
        path, drain = f"/resource_providers/{uuid}", f"/berth/v1/drains/{rng.choice('ab')}"
        seen = {"resource_provider_generation": done(root.get(path), 200).json["generation"]}
        written = root.get(f"/allocations/{consumer}").json.get("consumer_generation")
        inventories = {"VCPU": {"total": rng.randint(8, 99)}, "PGPU": {"total": rng.randint(2, 9)}}
        replaced = {**seen, "inventories": inventories}
        moved = claiming({uuid: {"PGPU": 1}}, written)
        tree = {"providers": [{"uuid": uuid, "traits": ["HW_CPU_X86_SVM"]}]}
        renamed = {"name": name, "parent_provider_uuid": uuids[host]}
        reshaped = {"inventories": {uuid: replaced}, "allocations": {consumer: moved}}
        method, target, body = rng.choice(
            [
                ("PUT", f"{path}/inventories", replaced),
                ("PUT", f"{path}/traits", {**seen, "traits": ["HW_CPU_X86_VMX"]}),
                ("PUT", f"{path}/aggregates", {**seen, "aggregates": [new_uuid()]}),
                ("PUT", path, renamed),
                ("PUT", f"/allocations/{consumer}", moved),
                ("DELETE", f"/allocations/{consumer}", None),
                ("PUT", f"/berth/v1/trees/{host}", tree),
                ("PUT", drain, {"providers": [name]}),
                ("DELETE", drain, None),
                ("POST", "/reshaper", reshaped),
            ]
        )
        return agent.request(method, target, **({} if body is None else {"json": body}))


def test_nobodys_tree_changes_by_anothers_token(quick: World) -> None:
    """Whatever two agents try, while an administrator moves GPUs between their hosts."""
    history = History(quick, Random(f"{SEED} agents"))
    for _ in range(150):
        history.step()
    assert history.counts[True] > 10 and history.counts[False] > 10
