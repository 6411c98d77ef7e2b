# SPDX-License-Identifier: Apache-2.0
"""Health checks for load balancers and orchestrators: `/healthcheck`, `/livez` and `/readyz`."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from berth.config import ConfigurationError
from berth.edge import readiness
from berth.edge.probes import PROBES
from berth.edge.readiness import NotReady, Readiness, Writability
from berth.index import Index
from berth.index.snapshot import Snapshot
from berth.store.engine.database import Database
from berth.upkeep import schema
from tests.api import configured
from tests.client import Client
from tests.e2e.serving import wait_until

pytestmark = pytest.mark.in_process

OPEN_PROBES = [path for path, rule in PROBES.items() if rule is None]

#: Somebody without a token.
NOBODY: dict[str, str] = {}


@pytest.fixture
def nobody(client: Client) -> Client:
    """A caller without a token, of a service with a working database."""
    return client.acting_as(NOBODY)


@pytest.mark.parametrize("path", OPEN_PROBES)
def test_a_probe_needs_no_token(nobody: Client, path: str) -> None:
    """By GET, or by HEAD for the status only."""
    assert nobody.get(path, version=None).status == 200
    head = nobody.request("HEAD", path, version=None)
    assert head.status in (200, 204)
    assert head.body == b""


@pytest.mark.parametrize("path", PROBES)
def test_a_probe_is_only_ever_asked(nobody: Client, path: str) -> None:
    """Any other method is 405 with the allowed ones."""
    refused = nobody.post(path, json={})
    assert refused.status == 405
    assert refused.headers["allow"] == "GET, HEAD"
    assert "POST" in refused.detail


def test_the_health_check_speaks_as_oslo_middleware_does(nobody: Client) -> None:
    """Plain text, unless `Accept` asks for JSON."""
    for headers in ({}, {"Accept": "*/*"}):
        plain = nobody.get("/healthcheck", headers=headers)
        assert plain.headers["content-type"] == "text/plain; charset=UTF-8"
    as_json = nobody.get("/healthcheck", headers={"Accept": "application/json"})
    assert as_json.json == {"detailed": False, "reasons": []}


def test_liveness_and_readiness_say_that_all_is_well(nobody: Client) -> None:
    """In one word, which caches must not store."""
    for path in ("/livez", "/readyz"):
        answer = nobody.get(path)
        assert answer.json == {"status": "ok"}
        assert answer.headers["cache-control"] == "no-store"


def test_a_file_takes_a_service_out_of_the_balance(tmp_path: Path) -> None:
    """With `disable_by_file`, as in any OpenStack service."""
    marker = tmp_path / "maintenance"
    service = configured.serve(
        tmp_path, f"[healthcheck]\nbackends = disable_by_file\ndisable_by_file_path = {marker}\n"
    ).acting_as(NOBODY)
    response = service.get("/healthcheck")
    assert (response.status, response.text) == (200, "OK")
    marker.touch()
    refused = service.get("/healthcheck")
    assert (refused.status, refused.text) == (503, "DISABLED BY FILE")
    assert service.request("HEAD", "/healthcheck").status == 503
    assert service.get("/livez").status == 200


def test_the_health_check_can_be_kept_from_others(tmp_path: Path) -> None:
    """Clients outside `allowed_source_ranges` need a token, as on any path."""
    settings = "[healthcheck]\nallowed_source_ranges = 192.0.2.0/24\n"
    service = configured.serve(tmp_path, settings).acting_as(NOBODY)
    assert service.get("/healthcheck").status == 401


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "backends = disable_by_fil",
            "[healthcheck]backends: there is no disable_by_fil; ",
        ),
        ("backends = disable_by_file,enable_by_files", "[healthcheck]backends: "),
        ("allowed_source_ranges = 192.0.2.0/99", "[healthcheck]allowed_source_ranges: '192.0.2.0"),
    ],
)
def test_a_health_check_that_cannot_be_is_told_of_at_start(
    tmp_path: Path, settings: str, said: str
) -> None:
    """In one line, before anything is served."""
    with pytest.raises(ConfigurationError) as raised:
        configured.serve(tmp_path, f"[healthcheck]\n{settings}\n")
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


def test_a_service_without_its_schema_is_alive_and_not_ready(
    nobody: Client, database: Database
) -> None:
    """As after `berth db release`: only the tables of OpenStack Placement exist."""
    schema.release(database, force=True)
    assert nobody.get("/livez").status == 200
    unready = nobody.get("/readyz")
    assert unready.status == 503
    assert unready.json == {
        "status": "unavailable",
        "reason": "the schema of the database is not that of this release",
    }


def test_a_service_without_its_database_is_alive_and_not_ready(
    nobody: Client, database: Database, tmp_path: Path
) -> None:
    """The response has neither the database's name nor its address."""
    database.dispose()
    (tmp_path / "berth.db").write_bytes(b"This was a database. " * 500)
    assert nobody.get("/livez").status == 200
    unready = nobody.get("/readyz")
    assert (unready.status, unready.json["reason"]) == (503, "the database cannot be read")
    head = nobody.request("HEAD", "/readyz")
    assert (head.status, head.body) == (503, b"")


def test_a_service_is_ready_again_as_soon_as_its_database_is(
    nobody: Client, database: Database, tmp_path: Path
) -> None:
    """The file is checked once a second."""
    assert nobody.get("/readyz").status == 200
    elsewhere = (tmp_path / "berth.db").rename(tmp_path / "away.db")
    database.dispose()
    assert nobody.get("/readyz").status == 503
    elsewhere.replace(tmp_path / "berth.db")
    database.dispose()
    wait_until(lambda: nobody.get("/readyz").status == 200, "the service to be ready")


class SilentIndex(Index):
    """An index whose database does not answer until the test lets it."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.asked = 0
        self.may_answer = threading.Event()

    def snapshot(self) -> Snapshot:
        """Wait, then return the snapshot."""
        self.asked += 1
        assert self.may_answer.wait(60)
        return super().snapshot()


def test_a_silent_database_is_asked_once_and_not_waited_for(database: Database) -> None:
    """For any number of probes, which all get its result when it answers."""
    index = SilentIndex(database)
    readiness = Readiness(database, index, Writability(), answer_s_max=0.01)
    for _ in range(3):
        with pytest.raises(NotReady, match="does not answer in time"):
            readiness.state()
        wait_until(lambda: index.asked > 0, "the index to be asked")
    assert index.asked == 1
    index.may_answer.set()
    patient = Readiness(database, index, Writability())
    assert patient.state().fleet is index.snapshot()


def test_a_probe_for_which_there_is_no_thread_holds_up_no_other(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they would wait for a check that was never started."""
    readiness = Readiness(database, Index(database), Writability())

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full, pytest.raises(RuntimeError):
        full.setattr(threading.Thread, "start", refuse)
        readiness.state()
    readiness.ensure_ready()


def test_an_unexpected_fault_is_logged_and_told_as_one(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A probe always gets a response."""

    def fail(db: Database) -> bool:
        raise RuntimeError("that was not expected")

    monkeypatch.setattr(readiness, "is_current", fail)
    with pytest.raises(NotReady, match="see the log"):
        Readiness(database, Index(database), Writability()).ensure_ready()
    assert "that was not expected" in caplog.text


def test_probes_do_not_fill_the_log(nobody: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Successful ones are logged at DEBUG; others at INFO, like any request."""
    caplog.set_level(logging.DEBUG, "placement.requestlog")
    for path in OPEN_PROBES:
        nobody.get(path)
        nobody.post(path)
    ends = [
        (record.levelname, record.args[2])
        for record in caplog.records
        if record.message.endswith("microversion: -") and isinstance(record.args, tuple)
    ]
    assert ends == [("DEBUG", "200"), ("INFO", "405")] * len(OPEN_PROBES)
