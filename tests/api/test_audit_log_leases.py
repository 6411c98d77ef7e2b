# SPDX-License-Identifier: Apache-2.0
"""The audit log says what berth takes back when a lease expires, by itself and when it is asked."""

from __future__ import annotations

import sqlite3
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy.exc import OperationalError

from berth.edge.audit_log import AuditLog
from berth.edge.lease_sweeps import LeaseSweeper
from berth.index import Index
from berth.store import lease_sweep
from berth.store.engine.database import Database
from berth.store.engine.opening import open_database
from berth.store.engine.prepared import Runner
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


def lose_commits(monkeypatch: pytest.MonkeyPatch, after: int, *, is_known: bool) -> None:
    """Let each commit fail after some.

    Args:
        is_known: whether the database still answers, and so says that none took place; otherwise
            they did, and nobody learns of it.
    """
    commit, commits = Runner.commit, list[Runner]()

    def fails(*_: object) -> NoReturn:
        raise OperationalError("COMMIT", {}, sqlite3.OperationalError("disk I/O error"))

    def lost(run: Runner) -> None:
        commits.append(run)
        if len(commits) <= after or not is_known:
            commit(run)
        if len(commits) > after:
            fails()

    monkeypatch.setattr(Runner, "commit", lost)
    if not is_known:
        monkeypatch.setattr(Database, "_outcome_of", fails)


@pytest.fixture
def jobs(service: Leased, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two consumers whose leases have expired, and which are released in a commit each."""
    jobs = [service.job(name, seconds) for name, seconds in (("job-1", 60), ("job-2", 120))]
    clock.now = clock.now.replace(hour=13)
    monkeypatch.setattr(lease_sweep, "_RELEASED_MAX", 1)
    return jobs


@pytest.mark.parametrize(
    ("after", "is_known", "outcome", "named"),
    [
        # The first of two commits is there, and the second is perhaps.
        (1, True, "unknown", 1),
        (1, False, "unknown", 2),
        (0, True, "failed", 0),
    ],
)
def test_a_sweep_that_fails_names_what_it_has_released(
    service: Leased,
    jobs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    is_known: bool,
    outcome: str,
    named: int,
) -> None:
    """Half-way, or at once."""
    lose_commits(monkeypatch, after, is_known=is_known)
    assert service.client.post(PATH).status == 503
    line = service.line()
    assert line["outcome"] == outcome
    assert [each["uuid"] for each in line.get("consumers", ())] == jobs[:named]


@pytest.mark.parametrize(("is_known", "outcomes"), [(True, ["done"]), (False, ["done", "unknown"])])
def test_a_worker_whose_commit_is_lost_writes_what_it_has_perhaps_released(
    service: Leased,
    jobs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    is_known: bool,
    outcomes: list[str],
) -> None:
    """What is certainly still there has no line."""
    # The first commit is that of a row that each worker has.
    lose_commits(monkeypatch, 2, is_known=is_known)
    sweep(service)
    lines = service.lines()
    assert [line["outcome"] for line in lines] == outcomes
    assert [[each["uuid"] for each in line["consumers"]] for line in lines] == [
        [job] for job in jobs[: len(outcomes)]
    ]
