# SPDX-License-Identifier: Apache-2.0
"""The audit log says what berth takes back when a lease expires, by itself and when it is asked."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.edge.audit_log import AuditLog
from berth.edge.lease_sweeps import LeaseSweeper
from berth.index import Index
from berth.model.errors import DatabaseUnavailable, OutcomeUnknown
from berth.store import lease_sweep
from berth.store.engine.opening import open_database
from tests.api import configured
from tests.api.berth_v1.test_leases import NOON, PATH, Clock, clock
from tests.api.test_audit_log import Service
from tests.api.worlds import new_uuid, provider
from tests.e2e.serving import wait_until

__all__ = ["clock"]

pytestmark = pytest.mark.in_process

AUDITED = "[berth]\naudit_log = audit.jsonl\n"


class Leased(Service):
    """A service with the host cn1, whose lines about that are read."""

    def __init__(self, folder: Path, settings: str = AUDITED) -> None:
        super().__init__(folder, configured.serve(folder, settings))
        self.host = provider(self.client, {"VCPU": 16}, name="cn1")
        self.lines()

    def job(self, name: str, seconds: int = 60) -> str:
        """A consumer of two VCPU of project web with a lease, and with a name."""
        body = {
            "uuid": new_uuid(),
            "allocations": {"cn1": {"resources": {"VCPU": 2}}},
            "user_id": "alice",
            "consumer_type": "JOB",
            "lease_seconds": seconds,
        }
        answer = self.client.put(f"/berth/v1/consumers/web/{name}", json=body)
        assert answer.status == 200, answer.text
        self.lines()
        return str(answer.json["uuid"])

    def members(self, *jobs: tuple[str, str]) -> dict[str, Any]:
        """What a line says of jobs, by uuid and name, which lose what they have."""
        return {
            "consumers": [
                {"uuid": uuid, "name": name, "project_id": "web", "user_id": "alice"}
                for uuid, name in jobs
            ],
            "allocations": [
                {"consumer": uuid, "provider": self.host, "resource_class": "VCPU"}
                | {"before": 2, "after": 0}
                for uuid, _ in jobs
            ],
            "providers": [{"uuid": self.host, "name": "cn1", "host": "cn1"}],
        }


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Leased:
    """A service that does not sweep by itself."""
    return Leased(tmp_path_factory.mktemp("leased"))


@pytest.fixture
def service(shared: Leased, clock: Clock) -> Leased:
    """The same, without leases of other tests, at noon."""
    clock.now = NOON + timedelta(days=365)
    shared.client.post(PATH)
    clock.now = NOON
    shared.lines()
    return shared


def sweep(service: Leased) -> None:
    """What a worker does every few seconds; here it is another one, on the same database."""
    db = open_database(f"sqlite:///{service.file.parent / 'placement.db'}")
    index = Index(db)
    index.snapshot()
    LeaseSweeper().sweep(db, AuditLog(service.file, index))
    db.dispose()


def test_a_worker_writes_what_it_releases(tmp_path: Path) -> None:
    """Otherwise the log would say that the consumer still has it."""
    service = Leased(tmp_path, f"{AUDITED}lease_sweep_seconds = 0.1\n")
    job = service.job("job-7", seconds=1)
    wait_until(lambda: service.file.read_text().count("lease_expired") == 1, "the line")
    line = service.line()
    assert line.pop("time") <= time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
    # There was no request, so it has no caller and no status.
    assert line == {
        "outcome": "done",
        "operation": "lease_expired",
        **service.members((job, "job-7")),
    }


def test_each_consumer_has_a_line(service: Leased, clock: Clock) -> None:
    """However many are released in one commit; a sweep by request has one line, of who asked for
    it, with everything that it has released."""
    jobs = {service.job(name) for name in ("job-1", "job-2")}
    clock.now = clock.now.replace(hour=13)
    sweep(service)
    assert {line["consumers"][0]["uuid"] for line in service.lines()} == jobs
    asked = sorted((service.job(name), name) for name in ("job-1", "job-2"))
    clock.now = clock.now.replace(hour=14)
    assert service.client.post(PATH).status == 200
    line = service.line()
    caller = line["user_id"], line["operation"], line["outcome"]
    assert caller == ("admin", "sweep_leases", "done")
    expected = service.members(*asked)
    for name in ("providers", "consumers", "allocations"):
        assert sorted(line[name], key=str) == sorted(expected[name], key=str)


@pytest.mark.parametrize(
    ("error", "after", "outcome", "named"),
    [
        # The first of two commits is there, and the second is perhaps.
        (DatabaseUnavailable("away"), 1, "unknown", 1),
        (OutcomeUnknown(), 1, "unknown", 2),
        (DatabaseUnavailable("away"), 0, "failed", 0),
    ],
)
def test_a_sweep_that_fails_names_what_it_has_released(
    service: Leased,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    after: int,
    outcome: str,
    named: int,
) -> None:
    """Half-way, or at once."""
    jobs = [service.job(name, seconds) for name, seconds in (("job-1", 60), ("job-2", 120))]
    clock.now = clock.now.replace(hour=13)
    expire, commits = lease_sweep._expire, list[int]()

    def failing(*arguments: Any) -> list[lease_sweep.Expired]:
        commits.append(1)
        if len(commits) <= after:
            return expire(*arguments)
        if isinstance(error, OutcomeUnknown):
            expire(*arguments)
        raise error

    monkeypatch.setattr(lease_sweep, "_RELEASED_MAX", 1)
    monkeypatch.setattr(lease_sweep, "_expire", failing)
    assert service.client.post(PATH).status == 503
    line = service.line()
    assert line["outcome"] == outcome
    assert [each["uuid"] for each in line.get("consumers", ())] == jobs[:named]
