# SPDX-License-Identifier: Apache-2.0
"""What an engine says is not what it seems: each damage gets the true status, a sentence with cause
and cure, and a check that finds it before a client does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import pytest
from sqlalchemy import exc, text

from berth import config, deploy
from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.model.database_errors import WritesRefused
from berth.model.errors import DatabaseUnavailable, UnstorableValue
from berth.store.engine.database import Database
from berth.store.engine.dialect import FULL, Translated
from berth.upkeep import schema
from berth.upkeep.integrity import iter_faults, iter_repaired
from berth.upkeep.integrity.consumers import Owner
from berth.upkeep.integrity.storage import odd_texts, used_up
from tests.api.claims import claim_body
from tests.client import NOTHING, Client
from tests.engines import need
from tests.fresh import empty, opened_at, prepare
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import USER, Databases
from tests.servers.statements import run
from tests.store.fleet import consumer as consumer_uuid
from tests.store.fleet import provider as provider_uuid

CONF: Final = """
[api]
auth_strategy = noauth2
[berth]
lease_sweep_seconds = 0
[placement_database]
connection = {url}
sqlite_synchronous = False
"""

#: Outside of the first plane, of latin1, and of both.
EMOJI: Final = "\U0001f600"
POLISH: Final = "\u0142"

TABLES: Final = (
    *("allocations", "consumers", "consumer_types", "placement_aggregates", "projects"),
    *("resource_classes", "resource_providers", "traits", "users"),
)


def service(url: str, folder: Path) -> Client:
    """A service that starts on a database."""
    (folder / "placement.conf").write_text(CONF.format(url=url))
    return Client.of(deploy.load_application(config.load([str(folder / "placement.conf")])))


def convert(url: str, collation: str, *tables: str) -> None:
    """Store the texts of Placement's tables in another character set."""
    charset = collation.partition("_")[0]
    how = f"CONVERT TO CHARACTER SET {charset} COLLATE {collation}"
    run(url, "SET foreign_key_checks = 0", *(f"ALTER TABLE {each} {how}" for each in tables))


def requests_with(text: str) -> Iterator[tuple[str, str, Any]]:
    """Everything that may hold a text of a client."""
    quoted, host, holder = quote(text), provider_uuid(1), consumer_uuid(1)
    vcpu = {"groups": {"": {"resources": {"VCPU": 1}}}}
    for path in (
        *("/resource_providers?name=", "/allocations/", "/traits/", "/usages?project_id="),
        *("/usages?project_id=p&user_id=", "/traits?name=startswith:", "/traits?name=in:"),
        *("/resource_classes/", "/resource_providers?required=", "/resource_providers/"),
        "/allocation_candidates?resources=VCPU:1&required=",
        *(f"/berth/v1/consumers?{each}=" for each in ("name", "search", "project_id", "host")),
        *(f"/berth/v1/consumers?{each}=" for each in ("provider", "user_id", "consumer_type")),
        *("/berth/v1/consumers/p/", "/berth/v1/drains/", "/berth/v1/drains?host="),
        *("/berth/v1/flavors/", "/berth/v1/trees/", "/berth/v1/placements/p/", "/berth/v1/leases/"),
        *("/berth/v1/leases?project_id=", "/berth/v1/aggregates?label=name:"),
    ):
        yield "GET", f"{path}{quoted}", NOTHING
    for path in ("/allocations/", "/traits/", "/resource_classes/"):
        yield "DELETE", f"{path}{quoted}", NOTHING
    body = claim_body("1.39", {host: {"VCPU": 1}}, project=text)
    user = claim_body("1.39", {host: {"VCPU": 1}}, user=text)
    named = {"allocations": {host: {"resources": {"VCPU": 1}}}, "user_id": "u"}
    placed = {"project_id": text, "user_id": text, "consumer_type": "VM", "uuid": consumer_uuid(5)}
    yield "POST", "/resource_providers", {"name": f"x{text}"}
    yield "PUT", f"/resource_providers/{host}", {"name": f"y{text}"}
    yield "PUT", f"/allocations/{holder}", body
    yield "PUT", f"/allocations/{consumer_uuid(2)}", user
    yield "POST", "/allocations", {consumer_uuid(3): body}
    yield "POST", "/reshaper", {"inventories": {}, "allocations": {consumer_uuid(4): body}}
    yield "PUT", f"/berth/v1/flavors/{quoted}", {"request": vcpu}
    yield "PUT", f"/berth/v1/drains/{quoted}", {"providers": [host], "reason": text}
    yield "PUT", f"/berth/v1/aggregates/{provider_uuid(50)}", {"labels": {"name": text}}
    yield "PUT", f"/berth/v1/consumers/{quoted}/{quoted}", {**named, "consumer_type": "VM"}
    yield "POST", "/berth/v1/place", {"consumers": [placed], "request": vcpu}
    yield "POST", "/berth/v1/candidates", {"request": vcpu, "order": {"by": text}}
    yield "POST", "/berth/v1/explain", {"request": {"groups": {"": {"in_tree": text}}}}
    yield "POST", "/berth/v1/capacity", {"flavors": [text]}
    yield "PUT", f"/berth/v1/trees/{quoted}", {"providers": [{"name": text}]}


def stocked(url: str, folder: Path) -> Client:
    """A service with a host."""
    client = service(url, folder)
    host = {"name": "cn", "uuid": provider_uuid(1)}
    if client.post("/resource_providers", json=host).status == 200:
        stock = {"inventories": {"VCPU": {"total": 99}}, "resource_provider_generation": 0}
        path = f"/resource_providers/{provider_uuid(1)}/inventories"
        assert client.put(path, json=stock).status == 200
    return client


def failures(client: Client, text: str) -> list[str]:
    """What is answered otherwise than it should be, of the requests that hold a text."""
    wrong = []
    for method, path, body in requests_with(text):
        answered = client.request(method, path, json=body)
        if answered.status >= 500:
            wrong.append(f"{method} {path}: {answered.status} {answered.text}")
        elif "cannot store" in answered.text:
            assert answered.status == 400
            assert "a text has a character that its tables do not have" in answered.detail
            assert "`berth db check` says how" in answered.detail
            wrong.append(f"{method} {path}: refused")
    return wrong


@pytest.fixture(scope="module")
def adopted(databases: Databases) -> Iterator[str]:
    """A database with tables of OpenStack Placement and of berth."""
    url = databases.create_database()
    prepare(url)
    yield url
    databases.drop_database(url)


@pytest.fixture
def emptied(adopted: str) -> str:
    """The same, with nothing in it but the standard names."""
    empty(adopted)
    return adopted


@pytest.mark.engines("mariadb")
@pytest.mark.parametrize(
    ("collation", "text"),
    [
        ("utf8mb3_general_ci", EMOJI),
        pytest.param("utf8mb3_bin", EMOJI, marks=pytest.mark.thorough),
        pytest.param("latin1_swedish_ci", POLISH, marks=pytest.mark.thorough),
    ],
)
def test_a_character_set_that_is_too_small(
    emptied: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, collation: str, text: str
) -> None:
    """Other texts are stored. A request with one of the others is 400 and says why, and a repair
    makes it right, also for a service that runs."""
    convert(emptied, collation, *TABLES)
    db = opened_at(emptied)
    (fault,) = schema.check(db)
    assert fault.startswith("allocations, consumers, consumer_types, placement_aggregates")
    assert f"store text in {collation.partition('_')[0]}, which does not have every" in fault
    client = stocked(emptied, tmp_path)
    assert fault in caplog.text
    assert failures(client, "plain") == []
    refused = failures(client, text)
    assert len(refused) > 15
    assert all(each.endswith("refused") for each in refused)
    assert [each.sentence for each in iter_repaired(db, Owner())] == [fault]
    assert schema.check(db) == []
    assert failures(client, text) == []
    db.dispose()


@pytest.mark.engines("mariadb")
@pytest.mark.parametrize(
    ("collations", "faults"),
    [
        ({"utf8mb4_bin": TABLES}, 1),
        ({"utf8mb4_general_ci": TABLES, "utf8mb4_unicode_ci": ("allocations",)}, 2),
        ({"utf8mb4_general_ci": TABLES, "utf8mb4_unicode_ci": ("projects", "traits")}, 0),
        ({"utf8mb4_general_ci": TABLES, "utf8mb3_general_ci": ("allocations",)}, 0),
    ],
    ids=["utf8mb4_bin", "uuids of consumers", "names", "narrow and wide"],
)
def test_collations_that_cannot_be_compared(
    emptied: str, tmp_path: Path, collations: dict[str, tuple[str, ...]], faults: int
) -> None:
    """An upgrade converts the tables that berth could not serve from; and only those."""
    for collation, tables in collations.items():
        convert(emptied, collation, *tables)
    db = opened_at(emptied)
    odd = [each for each in odd_texts(db) if not each.key["are_comparable"]]
    assert len(odd) == faults
    assert all("cannot be compared with that of other tables" in each.sentence for each in odd)
    assert schema.upgrade(db) == [f"{each.sentence}: converted to utf8mb4" for each in odd]
    client = stocked(emptied, tmp_path)
    assert failures(client, "plain") == []
    assert schema.upgrade(db) == []
    db.dispose()


@pytest.mark.engines("postgresql")
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_in_another_encoding(
    postgresql: PostgreSQL, tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    """It is served, and what it cannot store is 400. Only a copy can change the encoding."""
    url = postgresql.create_database(encoding=encoding)
    prepare(url)
    db = opened_at(url)
    (fault,) = iter_faults(db)
    assert fault.sentence.startswith(f"the database has the encoding {encoding} instead of UTF8")
    assert "copy everything with `berth db copy`" in fault.advice
    client = stocked(url, tmp_path)
    assert f"{fault.sentence}; {fault.advice}" in caplog.text
    assert failures(client, "plain") == []
    refused = failures(client, EMOJI)
    assert all(each.endswith("refused") for each in refused)
    assert bool(refused) == (encoding == "LATIN1")
    db.dispose()
    postgresql.drop_database(url)


@pytest.mark.engines("postgresql", "mariadb")
@pytest.mark.parametrize("column", ["resource_providers.generation", "consumers.id"])
def test_a_counter_that_is_used_up(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, column: str
) -> None:
    """No value of the request is to blame, so the write is 503; the check names the column."""
    table, name = column.split(".")
    prepare(database_url)
    client = stocked(database_url, tmp_path)
    first = claim_body("1.39", {provider_uuid(1): {"VCPU": 1}})
    assert client.put(f"/allocations/{consumer_uuid(1)}", json=first).status == 204
    run(database_url, f"UPDATE {table} SET {name} = {2**31 - 1}")
    if database_url.startswith("postgresql"):
        run(database_url, "SELECT setval('consumers_id_seq', (SELECT max(id) FROM consumers))")
    db = opened_at(database_url)
    found = [fault for fault in iter_faults(db) if "has counted to" in fault.sentence]
    assert [fault.sentence.partition(" has")[0] for fault in found] == [f"column {name} of {table}"]
    if name == "id":
        assert used_up(db) == [f"{found[0].sentence}; {found[0].advice}"]
    answered = service(database_url, tmp_path).put(f"/allocations/{consumer_uuid(2)}", json=first)
    # MariaDB gives the last number again, and so the new row is taken for one of a faster request.
    assert answered.status == (409 if (table, db.engine_name) == ("consumers", "mariadb") else 503)
    if answered.status == 503:
        assert "because a counter of the database is used up" in answered.detail
    db.dispose()


class SqliteSays(Exception):
    """An error of SQLite's."""

    def __init__(self, name: str) -> None:
        super().__init__("x")
        self.sqlite_errorname = name


class PostgresSays(Exception):
    """An error of PostgreSQL's."""

    def __init__(self, code: str, said: str = "x") -> None:
        super().__init__(said)
        self.sqlstate = code


#: A statement, and its parameters.
SENT: Final[tuple[str, None]] = ("UPDATE x", None)


class Refusal(NamedTuple):
    """A database that refuses writes.

    Attributes:
        engine: whose.
        before: the statement that makes it refuse; {name} is the database, {user} berth's user.
        after: the statement that ends it.
        fault: what is said.
    """

    engine: str
    before: str
    after: str
    fault: str


READ_ONLY: Final = "the database is read-only"
FILES: Final = "the files of the database cannot be written"
COUNTER: Final = "a counter of the database is used up"
PRIVILEGES: Final = "the user of the database lacks privileges"

REFUSALS: Final = (
    Refusal("sqlite", "PRAGMA query_only = 1", "PRAGMA query_only = 0", READ_ONLY),
    Refusal("sqlite", "PRAGMA max_page_count = 1", "PRAGMA max_page_count = 99999", FULL),
    Refusal(
        "postgresql",
        "ALTER DATABASE {name} SET default_transaction_read_only = on",
        "ALTER DATABASE {name} RESET default_transaction_read_only",
        READ_ONLY,
    ),
    Refusal(
        "postgresql",
        "REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA public FROM {user}",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO {user}",
        PRIVILEGES,
    ),
    Refusal("mariadb", "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", READ_ONLY),
    Refusal("mariadb", "SET GLOBAL tx_read_only = 1", "SET GLOBAL tx_read_only = 0", READ_ONLY),
    Refusal(
        "mariadb",
        "REVOKE INSERT, UPDATE ON `{name}`.* FROM {user}@'%'",
        "GRANT ALL ON `{name}`.* TO {user}@'%'",
        PRIVILEGES,
    ),
)


@pytest.mark.parametrize(
    "refusal", [pytest.param(each, id=f"{each.engine}: {each.before}") for each in REFUSALS]
)
def test_a_database_that_refuses_writes(
    refusal: Refusal, request: pytest.FixtureRequest, tmp_path: Path, settings: Settings
) -> None:
    """Writes are 503 with cause and cure, reads go on, probes say why, and a start does too; all of
    it ends with the cause."""
    need(refusal.engine)
    databases: Databases = request.getfixturevalue(refusal.engine)
    url = databases.create_database()
    prepare(url)
    db = opened_at(url)
    client = Client.of(create_app(settings, db, Index(db)))
    assert written(client) == (200, "")
    administer(databases, db, refusal.before)
    try:
        status, detail = written(client)
        assert (status, client.get("/resource_providers").status) == (503, 200)
        assert f"Nothing can be written because {refusal.fault}. An operator has to act" in detail
        assert client.get("/readyz").json["reason"] == refusal.fault
        if refusal.engine != "sqlite":
            with pytest.raises(DatabaseUnavailable, match=f"{refusal.fault} .*: \\w+"):
                service(url, tmp_path)
    finally:
        administer(databases, db, refusal.after)
    assert written(client) == (200, "")
    db.dispose()
    databases.drop_database(url)


def written(client: Client) -> tuple[int, str]:
    """The first refusal of many writes; or 200."""
    for _ in range(100):
        answered = client.post("/resource_providers", json={"name": f"{uuid4()}{'x' * 150}"})
        if answered.status != 200:
            return answered.status, answered.detail
    return 200, ""


def administer(databases: Databases, db: Database, statement: str) -> None:
    """Run a statement as the administrator of a database, and let berth connect again."""
    statement = statement.format(name=db.engine.url.database, user=USER)
    if isinstance(databases, MariaDB):
        databases.administer(statement)
    elif db.dialect.is_embedded:
        db.write_unnoted(lambda tx: tx.connection.execute(text(statement)))
        return
    else:
        url = db.engine.url.render_as_string(hide_password=False)
        run(url, "SET TRANSACTION READ WRITE", statement)
    db.dispose()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (exc.OperationalError(*SENT, SqliteSays("SQLITE_FULL")), FULL),
        (exc.OperationalError(*SENT, SqliteSays("SQLITE_READONLY_DBMOVED")), READ_ONLY),
        (exc.OperationalError(*SENT, SqliteSays("SQLITE_IOERR_WRITE")), FILES),
        (exc.DatabaseError(*SENT, SqliteSays("SQLITE_CORRUPT_VTAB")), FILES),
        (exc.OperationalError(*SENT, PostgresSays("53100")), FULL),
        (exc.InternalError(*SENT, PostgresSays("25006")), READ_ONLY),
        (exc.ProgrammingError(*SENT, PostgresSays("42501")), PRIVILEGES),
        (exc.InternalError(*SENT, PostgresSays("XX001")), FILES),
        (exc.DataError(*SENT, PostgresSays("22003")), COUNTER),
        (exc.OperationalError(*SENT, Exception(1021, "Platte voll")), FULL),
        (exc.OperationalError(*SENT, Exception(1114, "Tabelle voll")), FULL),
        (exc.InternalError(*SENT, Exception(1030, 'Got error 28 "x" from InnoDB')), FULL),
        (exc.OperationalError(*SENT, Exception(1026, "x (Errcode: 28)")), FULL),
        (exc.OperationalError(*SENT, Exception(1030, "Got error 168 from InnoDB")), FILES),
        (exc.OperationalError(*SENT, Exception(1036, "x")), READ_ONLY),
        (exc.OperationalError(*SENT, Exception(1290, "x")), READ_ONLY),
        (exc.OperationalError(*SENT, Exception(1836, "x")), READ_ONLY),
        (exc.OperationalError(*SENT, Exception(1142, "x")), PRIVILEGES),
        (exc.DataError(*SENT, Exception(1264, "x")), COUNTER),
        (exc.OperationalError(*SENT, Exception(1467, "x")), COUNTER),
    ],
    ids=lambda each: str(getattr(each, "orig", "")),
)
def test_the_code_of_an_engine_decides(error: exc.DBAPIError, expected: str) -> None:
    """Servers translate their messages."""
    with pytest.raises(WritesRefused) as refused, Translated():
        raise error
    assert refused.value.fault == expected


@pytest.mark.parametrize(
    "error",
    [
        exc.DataError(*SENT, Exception(1366, "Incorrect string value: '\\xF0 no space left'")),
        exc.OperationalError(*SENT, Exception(1267, "(a,IMPLICIT) and (b,COERCIBLE) for '='")),
        exc.OperationalError(*SENT, Exception(1270, "(a,IMPLICIT), (b,COERCIBLE) for 'in'")),
        exc.DataError(*SENT, PostgresSays("22P05", "read-only")),
        exc.DataError(*SENT, PostgresSays("22P02", "invalid input: no space left")),
        exc.DataError(*SENT, Exception(1406, "x")),
    ],
    ids=lambda each: str(each.orig),
)
def test_a_value_is_not_taken_for_a_fault_of_the_database(error: exc.DBAPIError) -> None:
    """Even if the engine quotes it, and it speaks of a full disk."""
    with pytest.raises(UnstorableValue), Translated():
        raise error


def test_a_message_that_quotes_a_name_is_no_fault_of_the_database() -> None:
    """A host may be called so."""
    taken = exc.IntegrityError(*SENT, Exception(1062, "Duplicate entry 'read-only' for key"))
    with pytest.raises(exc.IntegrityError), Translated():
        raise taken
