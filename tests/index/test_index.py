# SPDX-License-Identifier: Apache-2.0
"""The index and the database: a read sees every acknowledged write, and a refresh costs only what
has changed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from berth.index import Index, Snapshot
from berth.index.fleet import Fleet
from berth.index.index import loaded
from berth.model.consumer import ConsumerWrite
from berth.model.errors import DatabaseUnavailable, IndexUnavailable
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.shown import UNSET
from berth.store import index_feed
from berth.store.allocations import replace_allocations
from berth.store.engine.database import Database, utc_now
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.index_feed import FleetPart, FleetRows
from berth.store.inventories import replace_inventories
from berth.store.providers import get_provider, update_provider
from tests.e2e.serving import PATIENCE, wait_until
from tests.forking import in_child
from tests.index.checking import checked, tree_of
from tests.servers.statements import run
from tests.store.fleet import trim_journal
from tests.store.statements import counted_statements
from tests.world_in_store import build_in_store
from tests.worlds import consumer_uuid, provider_uuid, world

FLEET = """
    cn1       MEMORY_MB=1024  @A
      numa0   VCPU=4(used:3)
      numa1   VCPU=4
    cn2       VCPU=8
    pool      DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
"""


class CountingLock:
    """A lock that counts the threads that try to take it."""

    def __init__(self) -> None:
        self.came = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def other_worker(database: Database) -> Iterator[Database]:
    """The same database, opened by another process."""
    db = open_database(str(database.engine.url), options=DatabaseOptions(synchronous=False))
    yield db
    db.dispose()


def used_of(snapshot: Snapshot, name: str) -> dict[str, int]:
    """A provider's usage in a snapshot."""
    location = snapshot.locate_uuid(provider_uuid(name))
    assert location is not None
    record = tree_of(snapshot.block(location.block_id), location.row).nodes[location.node]
    return {snapshot.names.class_names[i.class_id]: i.used for i in record.inventories}


def claim(db: Database, name: str, amount: int, *, consumer: str = "vm") -> None:
    """Allocate this many VCPU of a provider."""
    uuid = ConsumerUUID(consumer_uuid(consumer))
    allocations = {ProviderUUID(provider_uuid(name)): {"VCPU": amount}}
    write = ConsumerWrite(uuid, allocations, "p", "u", generation=None, consumer_type="INSTANCE")
    replace_allocations(db, [write], attempts=1)


#: Seven hosts, the last three of which have a child; ids follow one another.
SEVEN = world(
    "\n".join(
        f"host{n}  VCPU=8  @A{n}" + (f"\n  numa{n}  MEMORY_MB=8" if n > 3 else "") for n in range(7)
    )
)


@pytest.mark.parametrize("rows_max", [1, 2, 3, 4])
@pytest.mark.parametrize("part_providers", [1, 2, 3, 4, 9, 10, 11])
def test_a_load_in_parts_has_every_tree(
    database: Database, part_providers: int, rows_max: int
) -> None:
    """Wherever a part ends: between trees, within one, or after the last; with any size of
    blocks."""
    build_in_store(SEVEN, database)
    index = Index(database, part_providers=part_providers, rows_max=rows_max)
    snapshot = index.snapshot()
    assert all(snapshot.locate_uuid(provider_uuid(provider.name)) for provider in SEVEN.providers)
    assert all(block.rows <= rows_max for _, block in snapshot.occupied())
    assert checked(index) == []


@pytest.mark.parametrize(
    ("change", "reads_rows"),
    [
        ("resource_providers SET name = 'a, b' WHERE id = 2", False),
        ("resource_providers SET name = 'two\nlines' WHERE id = 2", True),
        ("resource_providers SET name = NULL WHERE id = 2", True),
        ("resource_providers SET name = NULL, uuid = 'a\nb' WHERE id = 2", True),
        ("resource_providers SET uuid = 'short' WHERE id = 2", False),
        ("resource_providers SET created_at = NULL, updated_at = NULL", False),
        ("inventories SET allocation_ratio = 0.7", False),
        ("inventories SET allocation_ratio = 12345678", True),
        ("berth_usages SET used = 9007199254740991", False),
    ],
)
def test_what_a_text_cannot_hold_is_read_as_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch, change: str, reads_rows: bool
) -> None:
    """A load gives the same from texts of whole columns and from rows, which only these need."""
    build_in_store(world(FLEET), database)
    run(str(database.engine.url), f"UPDATE {change}")
    read: list[FleetRows] = []
    with database.read() as tx:
        _, part = index_feed.fleet_parts(tx)

        def rows() -> FleetRows:
            read.append(part.rows())
            return read[-1]

        def trees(texts: FleetRows | None) -> list[object]:
            parts = [FleetPart(texts, rows)]
            monkeypatch.setattr(index_feed, "fleet_parts", lambda *_, **__: parts)
            blocks = [block for _, block in loaded(tx).snapshot().occupied()]
            return [tree_of(block, row).nodes for block in blocks for row in range(block.rows)]

        from_texts, was_read = trees(part.texts), bool(read)
        assert from_texts == trees(None)
    assert was_read == reads_rows


def rename(db: Database, name: str) -> None:
    """Give a provider another name."""
    uuid = ProviderUUID(provider_uuid(name))
    update_provider(db, uuid, name="renamed", parent_uuid=UNSET, may_reparent=False)


@pytest.mark.parametrize(
    ("written", "trees", "usages"),
    [
        ([claim], 0, 1),
        ([claim] * 5, 0, 1),
        ([rename], 1, 0),
        # One note of any other kind decides for all about a provider.
        ([claim, rename, claim], 1, 0),
        ([rename, claim], 1, 0),
    ],
)
def test_a_refresh_costs_what_has_changed(
    database: Database,
    other_worker: Database,
    written: Sequence[Callable[..., None]],
    trees: int,
    usages: int,
) -> None:
    """Claims change nothing but usage, so the tree is not read; the rest of the fleet never is."""
    build_in_store(world(FLEET), database)
    index = Index(database)
    index.snapshot()
    for number, write in enumerate(written):
        if write is claim:
            claim(other_worker, "cn2", 1, consumer=f"vm{number}")
        else:
            rename(other_worker, "cn2")
    with counted_statements(database) as asked:
        index.snapshot()
    assert (index.counts.loads, index.counts.trees, index.counts.usages) == (1, trees, usages)
    assert usages == 0 or len([each for each in asked if each.startswith("SELECT")]) == 3
    assert checked(index) == []


@pytest.mark.parametrize("step", ["set_states", "snapshot"])
def test_half_a_change_is_never_the_index(
    database: Database, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whichever step fails, the next read starts again from the database."""
    build_in_store(world(FLEET), database)
    index = Index(database)
    index.snapshot()
    claim(database, "numa1", 1)

    def breaks(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Fleet, step, breaks)
        with pytest.raises(MemoryError):
            index.snapshot()
    assert used_of(index.snapshot(), "numa1") == {"VCPU": 1}
    assert checked(index) == []


def test_a_reader_beyond_the_journals_horizon_loads_everything(database: Database) -> None:
    """The journal no longer has the changes that the reader needs."""
    build_in_store(world(FLEET), database)
    index = Index(database)
    index.snapshot()
    claim(database, "cn2", 5)
    trim_journal(database, utc_now() + timedelta(seconds=1))
    assert used_of(index.snapshot(), "cn2") == {"VCPU": 5}
    assert index.counts.loads == 2


def copy_database(source: Path, target: Path) -> None:
    """Replace a database file by another, as an operator does who restores a backup."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


@pytest.mark.parametrize("by_another_worker", [False, True])
def test_a_restored_backup_is_loaded_again(
    database: Database, other_worker: Database, tmp_path: Path, by_another_worker: bool
) -> None:
    """Its clock is behind the index, or lacks a writer that the index knows."""
    build_in_store(world("cn1  VCPU=8"), database)
    claim(database, "cn1", 1)
    live, backup = Path(str(database.engine.url.database)), tmp_path / "backup.db"
    copy_database(live, backup)
    index = Index(database)
    claim(other_worker if by_another_worker else database, "cn1", 5, consumer="later")
    assert used_of(index.snapshot(), "cn1") == {"VCPU": 6}
    copy_database(backup, live)
    assert used_of(index.snapshot(), "cn1") == {"VCPU": 1}
    assert checked(index) == []


def test_an_index_that_cannot_ask_does_not_answer(database: Database) -> None:
    """It raises an error instead of returning a state that may be old."""
    index = Index(database)
    index.snapshot()
    database.dispose()
    path = database.engine.url.database
    assert path is not None
    with open(path, "wb") as file:
        file.write(b"this is not a database" * 100)
    with pytest.raises(IndexUnavailable):
        index.snapshot()


def test_those_who_wait_for_a_silent_database_share_what_comes_of_the_next_attempt(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each would wait for its own attempt, one after the other. A reader that comes later
    starts a new attempt."""
    index = Index(database)
    index.snapshot()
    lock = CountingLock()
    monkeypatch.setattr(index, "_lock", lock)
    gives_up = threading.Semaphore(0)
    asked: list[int] = []

    def silent() -> None:
        asked.append(1)
        assert gives_up.acquire(timeout=PATIENCE)
        raise DatabaseUnavailable("silent")

    monkeypatch.setattr(database, "commit_stamp", silent)
    with ThreadPoolExecutor(6) as threads:
        readers = [threads.submit(index.snapshot)]
        wait_until(lambda: len(asked) == 1, "the first to ask")
        readers += [threads.submit(index.snapshot) for _ in range(5)]
        wait_until(lambda: lock.came == 6, "the others to wait")
        gives_up.release(2)
        for reader in readers:
            with pytest.raises(IndexUnavailable):
                reader.result()
    assert len(asked) == 2
    monkeypatch.undo()
    index.snapshot()


def test_a_child_forked_in_the_middle_of_a_refresh_loads_for_itself(database: Database) -> None:
    """Otherwise it would wait for ever for a thread that exists only in the parent."""
    build_in_store(world(FLEET), database)
    index = Index(database)
    index.snapshot()
    with index._lock:
        assert in_child(lambda: used_of(index.snapshot(), "cn2") == {"VCPU": 0})


def test_a_refresh_takes_over_what_another_program_wrote(database: Database) -> None:
    """The foreign write is in no journal. A change of berth beside it makes the provider's usage be
    recounted, and the next read has it."""
    build_in_store(world(FLEET), database)
    index = Index(database)
    index.snapshot()
    numa1 = f"(SELECT id FROM resource_providers WHERE uuid = '{provider_uuid('numa1')}')"
    run(
        database.engine.url.render_as_string(hide_password=False),
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        f"VALUES ({numa1}, '{consumer_uuid('foreign')}', 0, 3)",
        f"UPDATE resource_providers SET generation = generation + 1 "
        f"WHERE uuid = '{provider_uuid('numa1')}'",
    )
    restock(database, provider_uuid("numa0"), VCPU=8)
    assert used_of(index.snapshot(), "numa1") == {"VCPU": 3}
    assert checked(index) == []


def restock(db: Database, uuid: str, **totals: int) -> None:
    """Give a provider other inventories."""
    provider = ProviderUUID(uuid)
    seen = get_provider(db, provider).generation
    wanted = {name: Inventory(total) for name, total in totals.items()}
    replace_inventories(db, provider, seen, wanted)
