# SPDX-License-Identifier: Apache-2.0
"""What a follower is told over HTTP of its revision, and of whole trees.

Source: spec/beyond.md 1.6, 6.2 and 6.3.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.identity import renew_identity
from tests.api.berth_v1.test_changes import ask, events_of, revision
from tests.api.worlds import provider
from tests.client import Client
from tests.fresh import opened_at


def test_a_revision_of_the_time_after_a_restored_backup(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    """It is ahead of the clock, so the fleet must be read again; once the operator has given the
    database a new identity, even one of before is of another database."""
    provider(client, {"VCPU": 8})
    before = revision(client)
    with closing(sqlite3.connect(tmp_path / "berth.db")) as connection:
        connection.execute(f"VACUUM INTO '{tmp_path}/backup.db'")
    provider(client, {"VCPU": 8})
    later = revision(client)
    backup = opened_at(f"sqlite:///{tmp_path}/backup.db")
    try:
        restored = Client.of(create_app(settings, backup, Index(backup)))
        assert events_of(ask(restored, before)) == ([], before)
        ahead = ask(restored, later)
        assert (ahead.status, ahead.code) == (410, "berth.revision.gone")
        renew_identity(backup)
        for known in (before, later):
            foreign = ask(restored, known)
            assert (foreign.status, foreign.code) == (400, "berth.revision.foreign")
        assert revision(restored) != before
    finally:
        backup.dispose()


def test_a_tree_is_one_commit_of_each_provider_that_it_changes(client: Client) -> None:
    """Those that it leaves as they are, are not told; those that it removes are gone."""

    def put(*names: str, total: int) -> list[dict[str, Any]]:
        inventories = {"VCPU": {"total": total}}
        body = {
            "providers": [
                {"name": "cn1"},
                *({"name": name, "parent": "cn1", "inventories": inventories} for name in names),
            ],
            "remove_missing": True,
        }
        seen = revision(client)
        assert client.put("/berth/v1/trees/cn1", json=body).status in (200, 201)
        return events_of(ask(client, seen))[0]

    told = put("numa0", "numa1", total=4)
    uuids = {event["name"]: event["uuid"] for event in told}
    assert uuids.keys() == {"cn1", "numa0", "numa1"}
    assert {event["commits"] for event in told} == {1}
    assert put("numa0", "numa1", total=4) == []
    changed = put("numa0", "numa1", total=8)
    assert {event["name"] for event in changed} >= {"numa0", "numa1"}
    assert {event["commits"] for event in changed} == {1}
    gone = [event for event in put("numa0", total=8) if event["change"] == "gone"]
    assert gone == [{"change": "gone", "uuid": uuids["numa1"], "commits": 1}]
