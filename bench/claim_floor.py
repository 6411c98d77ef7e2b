# SPDX-License-Identifier: Apache-2.0
"""The floor of a claim on an engine: the least that any service has to write for it.

The floor is a transaction written by hand, sent through the bare driver, which knows every id
before it begins. It has the guards of a claim (capacity and max_unit in the UPDATE of the usages, a
new consumer by its unique uuid) and writes what a claim of berth writes: the provider's generation,
three usages, the consumer, three allocations, the counters of its project, the clock and the
journal. psycopg sends it in one pipeline; SQLite and PyMySQL take one statement at a time.
"""

from __future__ import annotations

import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import psycopg
import pymysql
from sqlalchemy.engine import URL, make_url

from bench.sample import Sample, Samples, clock
from berth.model.consumer import ConsumerWrite
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.store.allocations import replace_allocations
from berth.store.engine.database import Database, utc_now
from berth.store.engine.opening import open_database

#: What is measured.
BY_STORE: Final = "a claim by berth's store"
BY_HAND: Final = "the same by hand"

_AMOUNTS: Final[Mapping[str, int]] = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}
_OWNER: Final = "claim-floor"
_WARM_UP_COUNT: Final = 20
_ATTEMPTS: Final = 10

_BUMP: Final = "UPDATE resource_providers SET generation = generation + 1 WHERE id = %s"
_TAKE: Final = """
UPDATE berth_usages SET used = used + {taken}, generation = generation + 1
WHERE resource_provider_id = %s AND resource_class_id IN ({classes}) AND EXISTS (
  SELECT 1 FROM inventories
  WHERE inventories.resource_provider_id = berth_usages.resource_provider_id
  AND inventories.resource_class_id = berth_usages.resource_class_id
  AND (inventories.total - inventories.reserved) * inventories.allocation_ratio
      >= berth_usages.used + {taken}
  AND inventories.max_unit >= {taken})"""
_CONSUMER: Final = (
    "INSERT INTO consumers (created_at, uuid, project_id, user_id, generation)"
    " VALUES (%s, %s, %s, %s, 1)"
)
_ALLOCATIONS: Final = (
    "INSERT INTO allocations"
    " (created_at, consumer_id, resource_provider_id, resource_class_id, used) VALUES "
)
_COUNT: Final = (
    "UPDATE berth_project_usages SET used_0 = used_0 + 1, used_1 = used_1 + 1,"
    " used_2 = used_2 + 64, used_3 = used_3 + 1 WHERE project_id = %s AND writer_id = %s"
)
_MOVE: Final = "UPDATE berth_writer SET seq = seq + 1, updated_at = %s WHERE id = %s"
_NOTE: Final = (
    "INSERT INTO berth_journal (writer_id, seq, provider_id, usage_only, created_at)"
    " SELECT id, seq, %s, TRUE, %s FROM berth_writer WHERE id = %s"
)

_REGISTER: Final = "INSERT INTO berth_writer (seq, trimmed_seq, updated_at) VALUES (0, 0, %s)"
_BEGIN_COUNTS: Final = (
    "INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class,"
    " writer_id, used_0, used_1, used_2, used_3) VALUES (%s, %s, 0, -1, %s, 0, 0, 0, 0)"
)

Statement = tuple[str, Sequence[Any]]
#: Sends one transaction and commits it; the number of rows that each statement changed.
Send = Callable[[Sequence[Statement]], Sequence[int]]
#: Reads all rows of a query.
Ask = Callable[[str], Sequence[Sequence[Any]]]


class _Host(NamedTuple):
    id: int
    uuid: str


def claim_floor(url: str, seconds: float) -> Samples:
    """Claims of new consumers by berth's store, in this process, and by hand, in turns."""
    db = open_database(url)
    samples = {BY_STORE: Sample(), BY_HAND: Sample()}
    with _connected(make_url(url)) as (send, ask):
        by_hand = _ByHand(send, ask)
        ways: Sequence[Callable[[_Host], None]] = (partial(_claim, db), by_hand.make)
        rng = random.Random(0)
        for _ in range(_WARM_UP_COUNT):
            for claim in ways:
                claim(rng.choice(by_hand.hosts))
        end = clock() + seconds
        while clock() < end:
            host = rng.choice(by_hand.hosts)
            for sample, claim in zip(samples.values(), ways, strict=True):
                start = clock()
                claim(host)
                sample.values.append(clock() - start)
    db.dispose()
    return samples


def _claim(db: Database, host: _Host) -> None:
    owner = ConsumerWrite(
        uuid=ConsumerUUID(str(uuid.uuid4())),
        allocations={ProviderUUID(host.uuid): _AMOUNTS},
        project_id=_OWNER,
        user_id=_OWNER,
        generation=None,
    )
    replace_allocations(db, [owner], attempts=_ATTEMPTS)


class _ByHand:
    """Claims without berth; they appear in its tables as the commits of a writer of their own."""

    def __init__(self, send: Send, ask: Ask) -> None:
        self._send = send
        self.hosts = [_Host(*row) for row in ask("SELECT id, uuid FROM resource_providers")]
        classes = {row[0]: row[1] for row in ask("SELECT name, id FROM resource_classes")}
        self._amounts = {classes[name]: amount for name, amount in _AMOUNTS.items()}
        # berth takes over the rows of writers that have been idle for an hour.
        self._now = utc_now().strftime("%Y-%m-%d %H:%M:%S")
        # Each round is a writer, and an owner, of its own.
        self._project, self._user = (self._made(ask, table) for table in ("projects", "users"))
        self._writer = self._new_writer(ask)
        send([(_BEGIN_COUNTS, (self._project, self._user, self._writer))])
        cases = " ".join(f"WHEN {each} THEN {amount}" for each, amount in self._amounts.items())
        self._take = _TAKE.format(
            classes=", ".join(map(str, self._amounts)),
            taken=f"CASE berth_usages.resource_class_id {cases} END",
        )

    def make(self, host: _Host) -> None:
        """One claim of a new consumer."""
        consumer = str(uuid.uuid4())
        rows = [(self._now, consumer, host.id, *taken) for taken in self._amounts.items()]
        counts = self._send(
            [
                (_BUMP, (host.id,)),
                (self._take, (host.id,)),
                (_CONSUMER, (self._now, consumer, self._project, self._user)),
                (
                    _ALLOCATIONS + ", ".join(["(%s, %s, %s, %s, %s)"] * len(rows)),
                    [value for row in rows for value in row],
                ),
                (_COUNT, (self._project, self._writer)),
                (_MOVE, (self._now, self._writer)),
                (_NOTE, (host.id, self._now, self._writer)),
            ]
        )
        assert list(counts) == [1, 3, 1, 3, 1, 1, 1], counts

    def _made(self, ask: Ask, table: str) -> int:
        name = str(uuid.uuid4())
        inserting = f"INSERT INTO {table} (created_at, external_id) VALUES (%s, %s)"
        self._send([(inserting, (self._now, name))])
        ((number,),) = ask(f"SELECT id FROM {table} WHERE external_id = '{name}'")
        return int(number)

    def _new_writer(self, ask: Ask) -> int:
        self._send([(_REGISTER, (self._now,))])
        ((number,),) = ask("SELECT max(id) FROM berth_writer")
        return int(number)


@contextmanager
def _connected(url: URL) -> Iterator[tuple[Send, Ask]]:
    """The bare driver of an engine."""
    server: dict[str, Any] = {"host": url.host, "port": url.port, "user": url.username}
    if url.password is not None:
        server["password"] = url.password
    backend = url.get_backend_name()
    if backend == "postgresql":
        with psycopg.connect(dbname=url.database, **server) as connection:
            yield partial(_in_a_pipeline, connection), partial(_rows_of, connection.cursor())
    elif backend == "mysql":
        with pymysql.connect(database=url.database, **server) as connection:
            cursor = connection.cursor()
            yield partial(_one_by_one, connection, cursor), partial(_rows_of, cursor)
    else:
        lite = sqlite3.connect(url.database or "")
        try:
            lite.execute("PRAGMA synchronous = FULL")
            cursor = lite.cursor()
            yield partial(_one_by_one, lite, _Lite(cursor)), partial(_rows_of, cursor)
        finally:
            lite.close()


def _in_a_pipeline(
    connection: psycopg.Connection[Any], statements: Sequence[Statement]
) -> Sequence[int]:
    with connection.pipeline():
        cursors = [connection.execute(sql, values) for sql, values in statements]
        connection.commit()
    return [cursor.rowcount for cursor in cursors]


def _one_by_one(connection: Any, cursor: Any, statements: Sequence[Statement]) -> Sequence[int]:
    counts = []
    for sql, values in statements:
        cursor.execute(sql, values)
        counts.append(cursor.rowcount)
    connection.commit()
    return counts


class _Lite:
    """A cursor of SQLite that understands %s."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def execute(self, sql: str, values: Sequence[Any]) -> None:
        """Execute one statement."""
        self._cursor.execute(sql.replace("%s", "?"), values)

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed."""
        return self._cursor.rowcount


def _rows_of(cursor: Any, sql: str) -> Sequence[Sequence[Any]]:
    cursor.execute(sql)
    rows = list(cursor.fetchall())
    cursor.connection.commit()
    return rows
