# SPDX-License-Identifier: Apache-2.0
"""`berth.direct`: the API without a socket (spec/operations.md, section 6)."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from pathlib import Path

import keystoneauth1.adapter
import keystoneauth1.session
import pytest
import requests
from keystoneauth1 import exceptions
from oslo_config import cfg

from berth import deploy
from berth.config import ConfigurationError, options
from berth.direct import PlacementDirect
from tests.routes import SEARCHES

MakeConf = Callable[[str], cfg.ConfigOpts]


@pytest.fixture
def make_conf(tmp_path: Path) -> MakeConf:
    """Configurations as a caller makes them, each for a database file of its own."""

    def make(name: str) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        options.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override("connection", f"sqlite:///{tmp_path}/{name}.db", "placement_database")
        return conf

    return make


def create_provider(client: keystoneauth1.adapter.Adapter, name: str) -> str:
    """Create a provider; its uuid."""
    provider = str(uuid.uuid4())
    answer = client.post("/resource_providers", json={"uuid": provider, "name": name})
    assert answer.status_code in (200, 201), answer.text
    return provider


def names(client: keystoneauth1.adapter.Adapter) -> set[str]:
    """The names of all providers."""
    listed = client.get("/resource_providers").json()["resource_providers"]
    return {row["name"] for row in listed}


def test_it_gives_an_adapter_of_keystoneauth(make_conf: MakeConf) -> None:
    """The client is what callers of the original have, for the same service type."""
    with PlacementDirect(make_conf("a")) as client:
        assert isinstance(client, keystoneauth1.adapter.Adapter)
        assert client.service_type == "placement"
        answer = client.get("/")
        assert isinstance(answer, requests.Response)
        assert answer.json()["versions"][0]["max_version"] == "1.39"


def test_an_empty_database_is_prepared_and_kept(make_conf: MakeConf) -> None:
    """What one context wrote, the next one finds."""
    conf = make_conf("a")
    with PlacementDirect(conf) as client:
        create_provider(client, "cn1")
    with PlacementDirect(conf) as client:
        assert names(client) == {"cn1"}


def test_it_can_be_opened_read_only(make_conf: MakeConf) -> None:
    """Nothing is prepared and nothing is sent that could write."""
    conf = make_conf("a")
    with PlacementDirect(conf) as client:
        create_provider(client, "cn1")
    with PlacementDirect(conf, read_only=True) as client:
        assert names(client) == {"cn1"}
        with pytest.raises(RuntimeError, match="read-only"):
            client.post("/resource_providers", json={"name": "cn2"})
        with pytest.raises(RuntimeError, match="read-only"):
            client.put(f"/berth/v1/aggregates/{uuid.uuid4()}", json={"labels": {}})
        for method, path in SEARCHES:
            assert client.request(path, method, json={}).status_code < 500
        with pytest.raises(RuntimeError, match="read-only"):
            client.post("/berth/v1/place", json={})
        assert client.post("/berth/v1/place?dry_run=true", json={}).status_code == 400
        for path in ("trees/cn1", "drains/cn1"):
            with pytest.raises(RuntimeError, match="read-only"):
                client.put(f"/berth/v1/{path}", json={})
            assert client.put(f"/berth/v1/{path}?dry_run=true", json={}).status_code == 400
        assert names(client) == {"cn1"}


def test_an_empty_database_is_not_prepared_to_look(make_conf: MakeConf, tmp_path: Path) -> None:
    """It stays as empty as it is."""
    (tmp_path / "a.db").touch()
    with (
        pytest.raises(deploy.SchemaNotReady),
        PlacementDirect(make_conf("a"), read_only=True),
    ):
        pass
    assert (tmp_path / "a.db").stat().st_size == 0


def test_a_database_that_is_removed_meanwhile_takes_no_more_writes(
    make_conf: MakeConf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script is told too, rather than write into a file that nobody will find again."""
    monkeypatch.setattr("berth.store.engine.sqlite_file.LOOK_EACH_S", 0.0)
    with PlacementDirect(make_conf("a")) as client:
        create_provider(client, "before")
        (tmp_path / "a.db").unlink()
        answer = client.post("/resource_providers", json={"name": "after"}, raise_exc=False)
        assert answer.status_code == 503
        assert "removed or replaced" in answer.text
        assert not (tmp_path / "a.db").exists()


def test_the_default_microversion_is_the_oldest(make_conf: MakeConf) -> None:
    """1.0 unless asked otherwise, for the whole client or for one call."""
    conf = make_conf("a")
    with PlacementDirect(conf) as client:
        assert client.get("/resource_providers").headers["OpenStack-API-Version"] == "placement 1.0"
        asked = client.get("/resource_providers", microversion="1.14")
        assert asked.headers["openstack-api-version"] == "placement 1.14"
    with PlacementDirect(conf, latest_microversion=True) as client:
        newest = client.get("/resource_providers").headers["OpenStack-API-Version"]
        assert newest == "placement 1.39"


def test_failures_are_returned_unless_asked_for(make_conf: MakeConf) -> None:
    """`raise_exc` is off, and can be set per call."""
    with PlacementDirect(make_conf("a")) as client:
        missing = f"/resource_providers/{uuid.uuid4()}"
        answer = client.get(missing)
        assert (answer.status_code, answer.reason) == (404, "Not Found")
        assert answer.json()["errors"][0]["title"] == "Not Found"
        with pytest.raises(exceptions.NotFound):
            client.get(missing, raise_exc=True)


def test_a_path_that_is_not_ascii_is_that_of_the_service(make_conf: MakeConf) -> None:
    """Bytes as PEP 3333 has them, which the application reads as UTF-8, or says that they are not.

    Links and messages show it as it was asked for.
    """
    with PlacementDirect(make_conf("a"), latest_microversion=True) as client:
        refused = client.put("/traits/CUSTOM_Z\u00dcRICH")
        assert refused.status_code == 400
        assert "CUSTOM_Z\u00dcRICH" in refused.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "cn-\u00fc"}',
        '{"name": "cn-\u00fc"}'.encode(),
        io.BytesIO('{"name": "cn-\u00fc"}'.encode()),
        iter(['{"name": ', '"cn-\u00fc"}'.encode()]),
    ],
    ids=["text", "bytes", "file", "pieces"],
)
def test_a_body_may_come_in_any_form_that_requests_takes(make_conf: MakeConf, body: object) -> None:
    """Text, bytes, an open file or pieces: the service gets the same bytes."""
    json_type = {"Content-Type": "application/json"}
    with PlacementDirect(make_conf("a")) as client:
        created = client.post("/resource_providers", data=body, headers=json_type)
        assert created.status_code == 201, created.text
        assert names(client) == {"cn-\u00fc"}


def test_links_stay_inside(make_conf: MakeConf) -> None:
    """Location names the address that the adapter itself understands."""
    with PlacementDirect(make_conf("a")) as client:
        created = client.post("/resource_providers", json={"name": "cn1"})
        location = created.headers["Location"]
        assert location.startswith(f"{client.get_endpoint()}/resource_providers/")
        assert client.get(location).json()["name"] == "cn1"


def test_the_caller_may_reshape(make_conf: MakeConf) -> None:
    """An offline upgrade moves inventory and allocations at once, whatever the policy defaults."""
    with PlacementDirect(make_conf("a"), latest_microversion=True) as client:
        of_root = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 8}}}
        reshaped = {"inventories": {create_provider(client, "cn1"): of_root}, "allocations": {}}
        answer = client.post("/reshaper", json=reshaped)
        assert answer.status_code == 204, answer.text


def test_two_databases_of_one_process_share_no_names(make_conf: MakeConf) -> None:
    """The same ids have different names in them, and each answer has its own."""
    first = PlacementDirect(make_conf("a"), latest_microversion=True)
    second = PlacementDirect(make_conf("b"), latest_microversion=True)
    with first as one, second as two:
        hosts = {}
        for client, trait in ((one, "CUSTOM_ONE"), (two, "CUSTOM_TWO")):
            hosts[trait] = create_provider(client, "host")
            client.put(f"/traits/{trait}")
            path = f"/resource_providers/{hosts[trait]}"
            stock = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
            client.put(f"{path}/inventories", json=stock)
            client.put(
                f"{path}/traits", json={"traits": [trait], "resource_provider_generation": 1}
            )
        for client, trait in ((one, "CUSTOM_ONE"), (two, "CUSTOM_TWO"), (one, "CUSTOM_ONE")):
            shown = client.get("/allocation_candidates?resources=VCPU:1").json()
            assert shown["provider_summaries"][hosts[trait]]["traits"] == [trait]


def test_nothing_outside_is_changed(make_conf: MakeConf) -> None:
    """The configuration keeps its values, and keystoneauth its functions."""
    conf = make_conf("a")
    before = {
        "strategy": conf.api.auth_strategy,
        "endpoint": keystoneauth1.session.Session.get_endpoint,
        "data": keystoneauth1.session.Session.get_endpoint_data,
        "send": requests.Session.send,
    }
    with PlacementDirect(conf) as client:
        client.get("/resource_providers")
        assert before == {
            "strategy": conf.api.auth_strategy,
            "endpoint": keystoneauth1.session.Session.get_endpoint,
            "data": keystoneauth1.session.Session.get_endpoint_data,
            "send": requests.Session.send,
        }
    assert before["strategy"] == "keystone"


def test_options_are_registered_where_they_are_missing(tmp_path: Path) -> None:
    """A plain ConfigOpts that has read a file will do."""
    path = tmp_path / "placement.conf"
    path.write_text(f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    with PlacementDirect(conf) as client:
        assert names(client) == set()


def test_a_closed_context_has_no_way_out(make_conf: MakeConf) -> None:
    """The session of the client can reach nothing but the application."""
    with PlacementDirect(make_conf("a")) as client, pytest.raises(exceptions.ClientException):
        client.get("http://127.0.0.1:9/elsewhere")


def test_a_client_kept_beyond_its_context_is_told_so(make_conf: MakeConf) -> None:
    """It would open the database anew, and nobody would close it."""
    with PlacementDirect(make_conf("a")) as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.get("/resource_providers")


def test_a_configuration_without_a_database_is_refused_on_entry() -> None:
    """An exception in words, not an engine error at the first request."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    with pytest.raises(ConfigurationError, match="no database"), PlacementDirect(conf):
        pass
