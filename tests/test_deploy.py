# SPDX-License-Identifier: Apache-2.0
"""What happens between reading the configuration and the first request."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from sqlalchemy import text

from berth.config import Settings
from berth.deploy import leave_database, open_prepared
from berth.index import Index
from berth.model.errors import DatabaseUnavailable, RevisionForeign
from berth.store.engine.database import Database
from berth.upkeep import schema
from tests.world_in_store import build_in_store
from tests.worlds import world


def test_what_the_original_claimed_is_counted_before_anything_is_served(
    settings: Settings, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise berth would give out claimed resources; it logs a warning."""
    build_in_store(world("host  VCPU=8(used:3)"), database)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE allocations SET used = 4"))
    with caplog.at_level(logging.WARNING):
        open_prepared(settings).dispose()
    assert schema.check(database) == []
    assert "Recounted 1 wrong sums of usage" in caplog.text
    caplog.clear()
    open_prepared(settings).dispose()
    assert not caplog.text


@pytest.mark.parametrize("max_retries", [0, 2])
def test_a_database_is_tried_once_and_then_as_often_as_configured(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, max_retries: int
) -> None:
    """`max_retries` counts the attempts after the first."""
    attempts = []
    monkeypatch.setattr(Database, "reach", lambda db: attempts.append(db))
    database = replace(settings.database, max_retries=max_retries, retry_interval=0)
    with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
        open_prepared(replace(settings, database=database))
    assert len(attempts) == 1 + max_retries


@pytest.mark.parametrize("sync_on_startup", [False, True])
def test_what_another_program_writes_while_berth_is_stopped_ends_its_revisions(
    settings: Settings,
    database: Database,
    caplog: pytest.LogCaptureFixture,
    sync_on_startup: bool,
) -> None:
    """Otherwise one revision would stand for two states, and nobody would read the fleet again; a
    plain restart keeps it."""
    settings = replace(
        settings, database=replace(settings.database, sync_on_startup=sync_on_startup)
    )
    build_in_store(world("host  VCPU=8"), database)
    before = Index(database).snapshot().revision
    leave_database(settings)
    open_prepared(settings).dispose()
    assert Index(database).snapshot().revision == before
    leave_database(settings)
    renamed = "UPDATE resource_providers SET name = 'renamed', updated_at = '2026-01-01 00:00:00'"
    with database.engine.begin() as connection:
        connection.execute(text(renamed))
    open_prepared(settings).dispose()
    after = Index(database).snapshot()
    with pytest.raises(RevisionForeign):
        after.clock.since(before)
    assert ("Another program wrote" in caplog.text) is not sync_on_startup
    leave_database(settings)
    open_prepared(settings).dispose()
    assert Index(database).snapshot().revision == after.revision
