# SPDX-License-Identifier: Apache-2.0
"""Identities as OpenStack Placement stored them, and as clients write them: with and without
dashes, in any letter case, in every column that holds one and on every route.

A tree whose rows are in another spelling answers, after an upgrade, every question as before; and a
question that spells an identity otherwise has the same answer, or says what is wrong with it.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired, spellings
from berth.upkeep.integrity.consumers import Owner
from berth.upkeep.left_state import leave
from tests.client import NOTHING, Client
from tests.fresh import opened_at, prepare
from tests.rows.test_damaged_rows import (
    AGGREGATE,
    FIRST,
    HOLDER,
    NAMES,
    NEW,
    POOL,
    Question,
    about_a_tree,
    about_the_fleet,
    ask,
    claim_of,
    plant,
    service,
    uuid_of,
    writes_to,
)

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

#: In any spelling.
_OURS: Final = re.compile(r"(?:urn:uuid:|\{)?abcdef00(?:-?0{4}){3}-?[0-9a-f]{12}\}?", re.IGNORECASE)

SPELLINGS: Final[dict[str, Callable[[str], str]]] = {
    "upper case": str.upper,
    "no dashes": lambda uuid: uuid.replace("-", ""),
    "upper case without dashes": lambda uuid: uuid.replace("-", "").upper(),
    "braces": lambda uuid: "{" + uuid.replace("-", "") + "}",
    "urn": lambda uuid: f"urn:uuid:{uuid}",
}

#: Columns of OpenStack Placement's tables with identities.
COLUMNS: Final = (
    ("resource_providers", "uuid"),
    ("consumers", "uuid"),
    ("allocations", "consumer_id"),
    ("placement_aggregates", "uuid"),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two trees, whose UUIDs have letters, so that their case matters."""
    folder = tmp_path_factory.mktemp("spelled")
    prepare(f"sqlite:///{folder}/berth.db")
    client = service(folder)
    for base in (FIRST, 200):
        plant(client, base)
    with sqlite3.connect(folder / "berth.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / "berth.db"


def respell(path: Path, spelling: str) -> None:
    """Store every identity in another spelling, as another program would."""
    with sqlite3.connect(path) as connection:
        connection.create_function("spelled", 1, SPELLINGS[spelling])
        for table, column in COLUMNS:
            connection.execute(f"UPDATE {table} SET {column} = spelled({column})")


def canonical(text: str) -> str:
    """A text of a response with all its identities in one spelling: aggregates keep theirs."""
    return _OURS.sub(lambda match: str(UUID(match[0])), text)


def answers(client: Client) -> dict[str, tuple[int, str]]:
    """What is answered about the trees and the fleet."""
    questions = [*about_a_tree(FIRST), *about_a_tree(200), *about_the_fleet()]
    asked = {f"{each.method} {each.path}": ask(client, each) for each in questions}
    return {
        name: (status, canonical(text))
        for name, (status, text) in asked.items()
        if "/metrics" not in name
    }


@pytest.mark.parametrize(
    ("spelling", "part"), [("upper case", 2), ("no dashes", 500), ("upper case without dashes", 3)]
)
def test_rows_in_another_spelling(
    sound: Path, tmp_path: Path, spelling: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade every route finds them, and they can be written. They are rewritten in
    parts, and no row is left out between two of them."""
    monkeypatch.setattr(spellings, "_PART", part)
    shutil.copy(sound, tmp_path)
    before = answers(service(tmp_path))
    respell(tmp_path / "berth.db", spelling)
    db = opened_at(f"sqlite:///{tmp_path}/berth.db")
    assert all(int(done.rpartition(": ")[2]) > 2 for done in schema.upgrade(db) if ": " in done)
    assert schema.check(db) == []
    client = service(tmp_path)
    after = answers(client)
    assert {name: each for name, each in after.items() if each != before[name]} == {}
    for question in writes_to(FIRST):
        assert ask(client, question)[0] in (200, 204), question
    assert schema.check(db) == []
    db.dispose()


def spelled(question: Question, way: str) -> Question:
    """A question with every identity of its path and its body in another spelling."""

    def change(text: str) -> str:
        return _UUID.sub(lambda found: SPELLINGS[way](found[0]), text)

    path = change(question.path).replace("{", "%7B").replace("}", "%7D")
    body = question.body
    return question._replace(
        path=path, body=body if body is NOTHING else json.loads(change(json.dumps(body)))
    )


def questions_with_identities(base: int) -> Iterator[Question]:
    """Everything in whose path or body an identity stands, and that may be asked several times."""
    host, holder, aggregate = uuid_of(base), uuid_of(base + HOLDER), uuid_of(base + AGGREGATE)
    yield from (each for each in about_a_tree(base) if "in_tree=" not in each.path)
    for path in (
        f"/allocation_candidates?resources=VCPU:1&in_tree={uuid_of(base + POOL)}",
        f"/allocation_candidates?resources=VCPU:1&member_of={aggregate}",
        *(f"/berth/v1/consumers?provider={host}", f"/berth/v1/consumers?host={host}"),
        *(f"/berth/v1/drains?host={host}", f"/berth/v1/aggregates/{aggregate}"),
    ):
        yield Question("GET", path)
    group = {"resources": {"VCPU": 1}, "in_tree": [host], "member_of": [[aggregate]]}
    request = {"groups": {"": group}}
    for noun in ("candidates", "explain"):
        yield Question("POST", f"/berth/v1/{noun}", {"request": request})
    placed = {"uuid": uuid_of(base + NEW), "project_id": "p", "user_id": "u", "consumer_type": "X"}
    body = {"consumers": [placed], "request": request}
    yield Question("POST", "/berth/v1/place?dry_run=true", body)
    labels = {"labels": {"name": NAMES[base], "zone": "z"}}
    yield Question("PUT", f"/berth/v1/aggregates/{aggregate}", labels)
    drained = {"effect": "none", "reason": "", "providers": [uuid_of(base + 2)]}
    yield Question("PUT", f"/berth/v1/drains/{NAMES[base]}", drained)
    yield Question("PUT", f"/berth/v1/leases/{holder}", {"seconds": 86400})
    tree = {"providers": [{"name": f"{NAMES[base]}-0", "uuid": host}]}
    yield Question("PUT", f"/berth/v1/trees/{host}?dry_run=true", tree)
    for path in (f"/resource_providers/{host}", f"/resource_providers/{host}/inventories/VCPU"):
        yield Question("DELETE", path)
    for noun in ("consumers", "leases"):
        yield Question("DELETE", f"/berth/v1/{noun}/{uuid_of(base + NEW)}")
    yield Question("DELETE", f"/allocations/{uuid_of(base + NEW)}")
    renamed = {"name": f"{NAMES[base]}-1", "parent_provider_uuid": host}
    yield Question("PUT", f"/resource_providers/{uuid_of(base + 1)}", renamed)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_client_may_spell_identities_freely(sound: Path, tmp_path: Path, spelling: str) -> None:
    """Every route answers what it answers to the usual spelling."""
    shutil.copy(sound, tmp_path)
    client = service(tmp_path)
    for question in questions_with_identities(FIRST):
        usual, other = ask(client, question), ask(client, spelled(question, spelling))
        assert (other[0], told(other[1])) == (usual[0], told(usual[1])), question
        assert other[0] < 500


def told(text: str) -> str:
    """An answer with its identities in one spelling, without the request's and the time."""
    return re.sub(r'"(request_id|expires_at)":"[^"]*"', "", canonical(text))


def test_some_places_want_dashes(sound: Path, tmp_path: Path) -> None:
    """As in OpenStack Placement: of queries, whose answer names the parameter and the value, and of
    keys of bodies any case with dashes is taken, and the rest is 400."""
    shutil.copy(sound, tmp_path)
    client = service(tmp_path)
    claim = Question("PUT", f"/allocations/{uuid_of(NEW)}", claim_of(FIRST, {FIRST: {"VCPU": 1}}))
    queries = [
        Question("GET", f"/resource_providers?{name}={uuid_of(FIRST)}")
        for name in ("uuid", "in_tree")
    ]
    for spelling in ("no dashes", "upper case without dashes", "braces", "urn"):
        for question in queries:
            status, text = ask(client, spelled(question, spelling))
            assert status == 400 and "is not a 'uuid'" in text
        status, text = ask(client, spelled(claim, spelling))
        assert status == 400 and "does not match any of the regexes" in text
    assert ask(client, spelled(claim, "upper case"))[0] == 204
    assert uuid_of(FIRST) in ask(client, Question("GET", claim.path))[1]


@pytest.mark.parametrize("spelling", ["upper case", "no dashes"])
def test_rows_that_another_program_writes_beside_a_service(
    sound: Path, tmp_path: Path, spelling: str
) -> None:
    """The service goes on with the others; the check names the rows, a repair makes them right, and
    the service finds them then."""
    shutil.copy(sound, tmp_path)
    client = service(tmp_path)
    before = answers(client)
    respell(tmp_path / "berth.db", spelling)
    for question in about_the_fleet():
        assert ask(client, question)[0] == 200, question
    db = opened_at(f"sqlite:///{tmp_path}/berth.db")
    assert any("which no lookup finds" in sentence for sentence in schema.check(db))
    list(iter_repaired(db, Owner()))
    assert schema.check(db) == []
    after = answers(client)
    assert {name: each for name, each in after.items() if each != before[name]} == {}
    db.dispose()


def test_a_start_rewrites_what_another_program_has_left(sound: Path, tmp_path: Path) -> None:
    """OpenStack Placement served the database between two starts."""
    shutil.copy(sound, tmp_path)
    db = opened_at(f"sqlite:///{tmp_path}/berth.db")
    leave(db)
    new = uuid_of(FIRST + NEW)
    with sqlite3.connect(tmp_path / "berth.db") as connection:
        connection.execute(
            "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) "
            "VALUES (900, ?, 'left', 0, 900)",
            (new.replace("-", ""),),
        )
    client = service(tmp_path)
    assert client.get(f"/resource_providers/{new}").json["uuid"] == new
    db.dispose()
