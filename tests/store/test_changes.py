# SPDX-License-Identifier: Apache-2.0
"""What the journal says of deleted providers, whatever the clocks say, and when ids come again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

from berth.model.ids import ProviderUUID
from berth.store.changes import Noted, noted_between
from berth.store.engine.database import Database, utc_now
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.index_feed import writer_heads
from berth.store.lookups import providers_by_uuid
from berth.store.providers import create_provider, delete_provider
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

#: Only there does a new provider get the id of a deleted one.
where_ids_come_again = pytest.mark.engines("sqlite")

FIRST, OLD, NEW = (ProviderUUID(f"00000000-0000-0000-0000-{number:012}") for number in range(3))


def heads(db: Database) -> dict[int, int]:
    """How far each writer has come."""
    with db.read() as tx:
        return {writer: head.seq for writer, head in writer_heads(tx).items()}


def create(db: Database, uuid: ProviderUUID) -> None:
    """A root provider with its UUID as its name."""
    create_provider(db, uuid=uuid, name=uuid, parent_uuid=None)


def noted_since(db: Database, before: dict[int, int]) -> Noted:
    """All commits since."""
    with db.read() as tx:
        ids = {row.id for row in providers_by_uuid(tx, [FIRST, OLD, NEW]).values()}
    return noted_between(db, before, heads(db), exists=ids.__contains__)


@contextmanager
def opened_with_clock(url: str, *, ahead: timedelta) -> Iterator[Database]:
    """The database for a process whose clock goes wrong; its times are stored in whole seconds."""

    def clock() -> datetime:
        return (utc_now() + ahead).replace(microsecond=0)

    db = open_database(url, options=DatabaseOptions(synchronous=False), clock=clock)
    try:
        yield db
    finally:
        db.dispose()


@pytest.mark.parametrize("ahead", [timedelta(seconds=5), timedelta(0), timedelta(seconds=-5)])
def test_all_commits_on_a_deleted_provider_are_its_own(
    db: Database, fresh_url: str, ahead: timedelta
) -> None:
    """Also if those before its deletion seem later: the clocks of two nodes differ, and so do the
    counts of two writers in the same second."""
    create(db, FIRST)
    before = heads(db)
    with opened_with_clock(fresh_url, ahead=ahead) as creator:
        for _ in range(3):
            create(creator, OLD)
            delete_provider(creator, OLD)
        create(creator, OLD)
    with opened_with_clock(fresh_url, ahead=timedelta(0)) as deleter:
        delete_provider(deleter, OLD)
    noted = noted_since(db, before)
    assert (noted.gone, noted.providers) == ([(OLD, 8)], {})


@where_ids_come_again
def test_one_commit_deletes_a_provider_and_gives_its_id_to_another(db: Database) -> None:
    """Both are reported: the deleted one by its UUID, the new one as a provider to look up."""
    create(db, FIRST)
    create(db, OLD)
    before = heads(db)
    with together(db) as ask:
        deletion, creation = ask(delete_provider, db, OLD), ask(create, db, NEW)
    assert (deletion.exception(), creation.exception()) == (None, None)
    with db.read() as tx:
        number = providers_by_uuid(tx, [NEW])[NEW].id
    noted = noted_since(db, before)
    assert sum(heads(db).values()) == sum(before.values()) + 1
    assert noted.gone == [(OLD, 1)]
    assert (noted.providers, noted.usage_only) == ({number: 1}, set())


@where_ids_come_again
def test_commits_on_an_id_count_for_the_provider_that_had_it(db: Database) -> None:
    """Up to its deletion those of the old provider, then those of the new one."""
    create(db, FIRST)
    before = heads(db)
    create(db, OLD)
    delete_provider(db, OLD)
    create(db, NEW)
    noted = noted_since(db, before)
    assert noted.gone == [(OLD, 2)]
    assert list(noted.providers.values()) == [1]
