# SPDX-License-Identifier: Apache-2.0
"""`/metrics`: its content, and who may read it."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from berth import config, deploy
from berth.config import ConfigurationError
from berth.store.engine.database import Database
from berth.store.engine.tables import berth_drains
from tests.api import configured
from tests.api.worlds import put_inventories
from tests.client import Client, wsgi_environ
from tests.exposed import Exposed, scrape
from tests.world_in_store import build_in_store
from tests.worlds import provider_uuid, world

pytestmark = pytest.mark.in_process

NOBODY: dict[str, str] = {}


def claim(client: Client, provider: str, amount: int, consumer: str | None = None) -> int:
    """Claim VCPU; return the status."""
    body = {
        "allocations": {provider: {"resources": {"VCPU": amount}}} if amount else {},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return client.put(f"/allocations/{consumer or uuid.uuid4()}", json=body).status


def test_requests_are_counted_by_what_they_were(client: Client) -> None:
    """By method, route, status and microversion; a path counts as its template."""
    for name in ("one", "two"):
        client.get(f"/resource_providers/{name}", version="1.20")
    client.get("/traits", headers={"X-Auth-Token": None})
    client.get("/nowhere")
    client.request("BREW", "/traits")
    metrics = scrape(client)
    requests = "berth_requests_total"
    one_provider = {"method": "GET", "route": "/resource_providers/{uuid}"}
    assert metrics.value(requests, **one_provider, status="404", microversion="1.20") == 2
    assert metrics.value("berth_request_seconds_count", **one_provider) == 2
    refused = {"method": "GET", "route": "none", "status": "401", "microversion": "none"}
    assert metrics.value(requests, **refused) == 1
    assert metrics.value("berth_authentication_failures_total", strategy="noauth2") == 1
    assert metrics.value(requests, route="none", status="404", microversion="1.39") == 1
    assert metrics.value(requests, method="other", route="/traits", status="405") == 1


def test_what_a_caller_makes_up_gets_no_series_of_its_own(client: Client) -> None:
    """Otherwise any client could fill the memory of the metrics' users."""
    series = []
    for round_ in range(2):
        for number in range(20):
            made_up = f"{'AB'[round_]}{number}"
            client.get(f"/resource_providers/{made_up}")
            client.get(f"/{made_up}")
            client.request(made_up, "/")
            client.get("/", version=f"1.{40 + number}")
            client.get("/", version=made_up)
        told = scrape(client).series("berth_requests_total")
        series.append([labels for labels in told if labels["route"] != "/metrics"])
    assert series[0] == series[1]


def test_of_a_request_for_several_consumers_each_is_counted_once(
    client: Client, database: Database
) -> None:
    """A consumer that gets allocations is a claim; one that loses all is a release."""
    build_in_store(world("cn1  VCPU=4"), database)
    provider, old, new = provider_uuid("cn1"), str(uuid.uuid4()), str(uuid.uuid4())
    assert claim(client, provider, 3, old) == 204
    before = scrape(client)
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    allocations = {provider: {"resources": {"VCPU": 3}}}
    body = {
        old: {**owner, "allocations": {}, "consumer_generation": 1},
        new: {**owner, "allocations": allocations, "consumer_generation": None},
    }
    assert client.post("/allocations", json=body).status == 204
    after = scrape(client)
    for name in ("berth_claims_total", "berth_releases_total"):
        assert after.value(name) - before.value(name) == 1


def test_claims_conflicts_and_commits_are_counted(client: Client, database: Database) -> None:
    """A claim is a consumer that got allocations; a conflict has the error code."""
    build_in_store(world("cn1  VCPU=4"), database)
    provider, consumer = provider_uuid("cn1"), str(uuid.uuid4())
    # The commit that made the world is told of only now.
    scrape(client)
    before = scrape(client)
    assert claim(client, provider, 3, consumer) == 204
    assert claim(client, provider, 2) == 409
    assert client.delete(f"/allocations/{consumer}").status == 204
    after = scrape(client)

    def grown(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    assert grown("berth_claims_total") == 1
    assert grown("berth_releases_total") == 1
    assert grown("berth_conflicts_total", code="placement.undefined_code") == 1
    assert grown("berth_commit_writes_count") == 2
    assert grown("berth_commit_writes_sum") == 2


def test_searches_tell_how_far_they_went(client: Client, database: Database) -> None:
    """The trees examined, and the candidates returned."""
    build_in_store(world("cn1  VCPU=4\ncn2  VCPU=4\ncn3  VCPU=1"), database)
    assert client.get("/allocation_candidates?resources=VCPU:2").status == 200
    metrics = scrape(client)
    assert metrics.value("berth_candidates_trees_examined_total") == 3
    assert metrics.value("berth_candidates_returned_total") == 2


def test_the_fleet_is_told_as_it_is_now(client: Client, database: Database) -> None:
    """Capacity and usage of each class, as current as any read; each capacity is rounded down
    separately."""
    build_in_store(
        world("""
            cn1       MEMORY_MB=1024
              numa0   VCPU=3(ratio:1.5,used:1)
              numa1   VCPU=3(ratio:1.5)
            cn2       MEMORY_MB=512(reserved:12)
        """),
        database,
    )
    metrics = scrape(client)
    assert (metrics.value("berth_ready"), metrics.value("berth_writable")) == (1, 1)
    assert (metrics.value("berth_index_providers"), metrics.value("berth_index_trees")) == (4, 2)
    assert metrics.value("berth_index_shapes") == 2
    assert metrics.by("resource_class", "berth_fleet_capacity") == {"VCPU": 8, "MEMORY_MB": 1524}
    assert metrics.by("resource_class", "berth_fleet_used") == {"VCPU": 1, "MEMORY_MB": 0}
    assert metrics.by("resource_class", "berth_fleet_providers") == {"VCPU": 2, "MEMORY_MB": 2}
    assert claim(client, provider_uuid("numa1"), 2) == 204
    assert scrape(client).value("berth_fleet_used", resource_class="VCPU") == 3


def test_there_is_a_bound_to_the_classes(tmp_path: Path) -> None:
    """The oldest have series; the number of the others is a metric."""
    service = configured.serve(tmp_path, "[berth]\nmetrics_classes_max = 2\n")
    body = {"uuid": str(uuid.uuid4()), "name": "host"}
    assert service.post("/resource_providers", json=body).status == 200
    inventories = {name: {"total": 8} for name in ("VGPU", "DISK_GB", "VCPU", "MEMORY_MB")}
    put_inventories(service, body["uuid"], inventories)
    metrics = scrape(service)
    assert metrics.by("resource_class", "berth_fleet_capacity") == {"VCPU": 8, "MEMORY_MB": 8}
    assert metrics.value("berth_fleet_classes_left_out") == 2


def test_a_service_without_its_database_still_tells_of_itself(
    client: Client, database: Database, tmp_path: Path
) -> None:
    """It reports that it is not ready and which requests fail, but no stale values of the fleet."""
    assert client.get("/resource_providers").status == 200
    database.dispose()
    (tmp_path / "berth.db").write_bytes(b"This was a database. " * 500)
    assert client.get("/resource_providers").status == 503
    metrics = scrape(client)
    assert (metrics.value("berth_ready"), metrics.value("berth_writable")) == (0, 0)
    assert metrics.value("berth_database_failures_total") == 1
    assert not metrics.series("berth_fleet_capacity")


def test_connections_of_the_pool_are_told(client: Client) -> None:
    """The open ones, and the maximum."""
    client.get("/traits")
    metrics = scrape(client)
    assert metrics.value("berth_database_connections") >= 1
    assert metrics.value("berth_database_connections_in_use") == 0
    assert metrics.value("berth_database_connections_max") == 15


def test_processes_are_told(client: Client) -> None:
    """Memory and CPU time of each process; here there is one."""
    metrics = scrape(client)
    assert metrics.value("berth_workers") == 1
    assert metrics.value("berth_process_resident_memory_bytes") > 2**20
    assert metrics.value("berth_process_cpu_seconds_total") > 0
    assert metrics.value("berth_build_info") == 1
    assert metrics.value("berth_database_info") == 1


def test_openmetrics_is_told_to_those_who_ask_for_it(client: Client) -> None:
    """As Prometheus does, whose own parser reads the other form; HEAD gets the headers only."""
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    answer = client.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    head = client.request("HEAD", "/metrics")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"].startswith("text/plain")
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    assert families
    assert all(family.name.startswith("berth_") for family in families)
    assert all(family.documentation for family in families)


# --- Whom it tells -------------------------------------------------------------------------------


def ask_from(client: Client, address: str, headers: dict[str, str]) -> int:
    """Request the metrics from an address; return the status."""
    app = client.transport.app  # type: ignore[attr-defined]
    environ = wsgi_environ("GET", "/metrics", list(headers.items()), None, script_name="")
    statuses: list[str] = []
    b"".join(app(environ | {"REMOTE_ADDR": address}, lambda status, _: statuses.append(status)))
    return int(statuses[0][:3])


def test_a_rule_says_who_may_read_the_metrics(client: Client) -> None:
    """`berth:metrics`, for callers from anywhere."""
    allowed = {"admin": 200, "service": 200, "auditor": 200, "reader": 403, "member": 403}
    for roles, status in allowed.items():
        caller = {"X-Auth-Token": "somebody", "X-Roles": roles}
        assert ask_from(client, "192.0.2.7", caller) == status, roles


LOOPBACK = "[berth]\nmetrics_networks = 127.0.0.1/32, ::1/128\n"


@pytest.fixture
def local(tmp_path: Path) -> Client:
    """A service whose metrics this machine may read."""
    return configured.serve(tmp_path, LOOPBACK)


@pytest.mark.parametrize("settings", ["", "[berth]\nmetrics_networks =\n"])
def test_without_networks_everybody_needs_a_token(tmp_path: Path, settings: str) -> None:
    """Also on this machine: a proxy there may act for anyone."""
    service = configured.serve(tmp_path, settings)
    for address in ("127.0.0.1", "::1"):
        assert ask_from(service, address, NOBODY) == 401
        assert ask_from(service, address, {"X-Auth-Token": "admin"}) == 200


def test_where_nothing_is_configured_this_machine_may_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the same clients may do everything else too."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    service = Client.of(deploy.load_application(config.load(embedded=True)))
    assert ask_from(service, "127.0.0.1", NOBODY) == 200
    assert ask_from(service, "192.0.2.7", NOBODY) == 401


def test_a_caller_in_a_network_needs_no_token(local: Client) -> None:
    """Whatever its credentials; but behind a proxy it does, whatever the proxy says about it."""
    assert ask_from(local, "192.0.2.7", NOBODY) == 401
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert ask_from(local, address, NOBODY) == 200
        assert ask_from(local, address, {"X-Auth-Token": "somebody", "X-Roles": "member"}) == 200
    for no_address in ("", "unix:", "127.0.0.1, 127.0.0.1"):
        assert ask_from(local, no_address, NOBODY) == 401
    for name, value in (
        ("X-Forwarded-For", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("Via", "1.1 proxy"),
        # As a client has it that wants to hide what the proxy says, by a header with underscores.
        ("X-Forwarded-For", ""),
    ):
        assert ask_from(local, "127.0.0.1", {name: value}) == 401, (name, value)


def test_a_proxy_that_is_listened_to_says_whence_a_caller_comes(tmp_path: Path) -> None:
    """With `enable_proxy_headers_parsing` the proxy's headers decide, if there are any."""
    service = configured.serve(
        tmp_path,
        "[oslo_middleware]\nenable_proxy_headers_parsing = True\n"
        "[berth]\nmetrics_networks = 198.51.100.0/24\n",
    )
    cases: list[tuple[dict[str, str], int]] = [
        ({"X-Forwarded-For": "198.51.100.9"}, 200),
        ({"Forwarded": "for=198.51.100.9;proto=https"}, 200),
        ({"X-Forwarded-For": "192.0.2.7"}, 401),
        ({"Forwarded": "for=192.0.2.7"}, 401),
        # The client is not named: the address is the proxy's own.
        ({"Forwarded": "by=198.51.100.9"}, 401),
        ({"Forwarded": "by=198.51.100.9, for=198.51.100.9"}, 401),
        ({"X-Real-IP": "198.51.100.9"}, 401),
        ({"X-Forwarded-Proto": "https"}, 401),
        ({}, 200),
    ]
    for headers, status in cases:
        assert ask_from(service, "198.51.100.1", headers) == status, headers


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("metrics_networks = loopback", "write a network as 192\\.0\\.2\\.0/24$"),
        ("metrics_networks = 192.0.2.1/24", "write a network as 192\\.0\\.2\\.0/24$"),
        (
            "metrics_capacity_by = zone=z1",
            "zone=z1 cannot be the key of a label; write one such as",
        ),
        ("metrics_capacity_by = flavor", "flavor is a label of these metrics already; give the"),
    ],
)
def test_what_cannot_be_is_told_of_at_start(tmp_path: Path, option: str, message: str) -> None:
    """In one line that says what would be valid."""
    with pytest.raises(ConfigurationError, match=rf"^\[berth\]{option.split()[0]}: .*{message}"):
        configured.serve(tmp_path, f"[berth]\n{option}\n")


def test_drained_providers_are_counted(client: Client) -> None:
    """And since when; an announced drain does not count."""
    root, child = str(uuid.uuid4()), str(uuid.uuid4())
    host = {"uuid": root, "name": "host"}
    for body in (host, {"uuid": child, "name": "gpu", "parent_provider_uuid": root}):
        assert client.post("/resource_providers", json=body).status == 200
    drain = {"providers": ["host"], "effect": "none"}
    assert client.put("/berth/v1/drains/d", json=drain).status == 201
    metrics = scrape(client)
    assert metrics.value("berth_drained_providers") == 0
    assert metrics.series("berth_drains_oldest_timestamp_seconds") == []
    assert client.put("/berth/v1/drains/d", json={"effect": "exclude"}).status == 200
    metrics = scrape(client)
    assert metrics.value("berth_drained_providers") == 2
    since = metrics.value("berth_drains_oldest_timestamp_seconds")
    created = client.get("/berth/v1/drains/d").json["created_at"]
    assert f"{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}" == created


def test_the_oldest_drain_is_the_one_told_of(client: Client, database: Database) -> None:
    """Another one hides none that was forgotten."""
    host = {"uuid": str(uuid.uuid4()), "name": "host"}
    assert client.post("/resource_providers", json=host).status == 200
    drain = {"providers": ["host"]}
    assert client.put("/berth/v1/drains/old", json=drain).status == 201
    long_ago = update(berth_drains).values(created_at=datetime(2026, 1, 2))
    database.write_unnoted(lambda tx: tx.connection.execute(long_ago))
    assert client.put("/berth/v1/drains/new", json=drain).status == 201
    since = scrape(client).value("berth_drains_oldest_timestamp_seconds")
    assert datetime.fromtimestamp(since, UTC) == datetime(2026, 1, 2, tzinfo=UTC)


def test_the_options_of_capacities_are_read(tmp_path: Path) -> None:
    """How many flavors there are, and by which label."""
    service = configured.serve(
        tmp_path, "[berth]\nmetrics_flavors_max = 1\nmetrics_capacity_by = zone\n"
    )
    body = {"uuid": str(uuid.uuid4()), "name": "host"}
    assert service.post("/resource_providers", json=body).status == 200
    for name in ("small", "other"):
        request = {"groups": {"": {"resources": {"VCPU": 1}}}}
        assert service.put(f"/berth/v1/flavors/{name}", json={"request": request}).status == 201
    metrics = scrape(service)
    assert metrics.series("berth_capacity_count") == [{"flavor": "other", "zone": ""}]
    assert metrics.value("berth_capacity_left_out", reason="flavors_max") == 1


def test_a_service_that_is_full_still_tells(tmp_path: Path) -> None:
    """Neither metrics nor probes wait in a queue."""
    service = configured.serve(
        tmp_path, "[berth]\nreads_running_max = 1\nrequests_waiting_max = 0\n"
    )
    scrapes: list[Exposed] = []
    probed: list[int] = []

    def while_it_runs(*_: object) -> None:
        scrapes.append(scrape(service))
        probed.append(service.acting_as(NOBODY).get("/readyz").status)
        probed.append(service.get("/traits").status)

    app = service.transport.app  # type: ignore[attr-defined]
    headers = [("X-Auth-Token", "admin"), ("OpenStack-API-Version", "placement 1.39")]
    environ = wsgi_environ("GET", "/traits", headers, None, script_name="")
    app(environ, while_it_runs)
    assert probed == [200, 503]
    assert scrapes[0].value("berth_admission_running", line="reads") == 1
    assert scrape(service).value("berth_admission_refused_total", line="reads") == 1
    assert scrape(service).value("berth_admission_running", line="reads") == 0
