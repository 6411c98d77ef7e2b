# SPDX-License-Identifier: Apache-2.0
"""One damaged row hurts only itself.

Each value of each column that the tables can hold is written over one row, by another program. Then
a service starts: every question about the fleet is answered, and so are those about the other
hosts, in the same words as before; one about the damaged row never fails with 500.
"""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

import pytest

from berth import config, deploy
from berth.store.engine.tables import metadata
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.api.claims import claim_body
from tests.client import NOTHING, Client
from tests.effort import SEED, is_full, scaled
from tests.fresh import opened_at, prepare
from tests.rows.damaged_rows import DamagedRow, every_damage

CONF: Final = """
[api]
auth_strategy = noauth2
[berth]
lease_sweep_seconds = 0
[placement_database]
connection = sqlite:///{folder}/berth.db
sqlite_synchronous = False
"""

#: A tree each, from this number on. Rows of the first and the last one are damaged.
FIRST, SOUND, LAST = 100, 200, 300
NAMES: Final = {FIRST: "first", SOUND: "sound", LAST: "last"}
#: From the number of a tree.
CHILD, GRANDCHILD, POOL, HOLDER, PLACED, NEW, AGGREGATE = 1, 2, 3, 10, 11, 20, 50

#: What all hosts share: what they are damaged in is not the fault of one of them.
SHARED: Final = ("resource_classes", "traits", "consumer_types", "berth_meta", "berth_writer")

VCPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}


#: A drain lists every provider that a row gives it, whosever the row was.
TAKES_OVER: Final = ("berth_drained", f"/berth/v1/drains/{NAMES[SOUND]}")

#: A service may count again when it starts, which is a commit.
TIMED: Final = re.compile(r'"(revision|seconds_left)":[^,}]*')


def uuid_of(number: int) -> str:
    """An identity with letters, which have a case."""
    return str(UUID(int=0xABCDEF << 104 | number))


class Question(NamedTuple):
    """A request, and its body."""

    method: str
    path: str
    body: Any = NOTHING


def service(folder: Path) -> Client:
    """A service that starts on the database of a folder."""
    (folder / "placement.conf").write_text(CONF.format(folder=folder))
    return Client.of(deploy.load_application(config.load([str(folder / "placement.conf")])))


def ask(client: Client, question: Question) -> tuple[int, str]:
    """The status and the text of an answer, without what changes from one moment to the next."""
    answered = client.request(question.method, question.path, json=question.body)
    return answered.status, TIMED.sub("", answered.text)


def do(client: Client, method: str, path: str, body: Any = NOTHING) -> Any:
    """What a request answers, which succeeds."""
    status, text = ask(client, Question(method, path, body))
    assert status < 300, text
    return text


def stock(client: Client, number: int, **totals: int) -> None:
    """Give a new provider inventories."""
    inventories = {name: {"total": total} for name, total in totals.items()}
    body = {"inventories": inventories, "resource_provider_generation": 0}
    do(client, "PUT", f"/resource_providers/{uuid_of(number)}/inventories", body)


def plant(client: Client, base: int) -> None:
    """A tree with a pool, and everything that can be said of it."""
    name = NAMES[base]
    own = f"CUSTOM_{name.upper()}"
    do(client, "PUT", f"/resource_classes/{own}")
    do(client, "PUT", f"/traits/{own}")
    for number, parent in ((0, None), (CHILD, 0), (GRANDCHILD, CHILD), (POOL, None)):
        body: dict[str, Any] = {"name": f"{name}-{number}", "uuid": uuid_of(base + number)}
        if parent is not None:
            body["parent_provider_uuid"] = uuid_of(base + parent)
        do(client, "POST", "/resource_providers", body)
    stock(client, base, **{"VCPU": 8, own: 4})
    stock(client, base + CHILD, MEMORY_MB=1024)
    stock(client, base + GRANDCHILD, VGPU=4)
    stock(client, base + POOL, DISK_GB=1000)
    for number, trait in ((0, own), (POOL, "MISC_SHARES_VIA_AGGREGATE")):
        path = f"/resource_providers/{uuid_of(base + number)}"
        body = {"traits": [trait], "resource_provider_generation": 1}
        do(client, "PUT", f"{path}/traits", body)
        body = {"aggregates": [uuid_of(base + AGGREGATE)], "resource_provider_generation": 2}
        do(client, "PUT", f"{path}/aggregates", body)
    aggregate = f"/berth/v1/aggregates/{uuid_of(base + AGGREGATE)}"
    do(client, "PUT", aggregate, {"labels": {"name": name, "zone": "z"}})
    do(client, "PUT", f"/berth/v1/flavors/{name}", {"request": VCPU})
    drained = {"effect": "none", "reason": "", "providers": [uuid_of(base + GRANDCHILD)]}
    do(client, "PUT", f"/berth/v1/drains/{name}", drained)
    hold(client, base)


def owner(base: int) -> dict[str, str]:
    """Whose consumers those of a tree are."""
    name = NAMES[base]
    return {"project_id": f"p-{name}", "user_id": f"u-{name}", "consumer_type": name.upper()}


def hold(client: Client, base: int) -> None:
    """Consumers of a tree: one with a lease, one with a name, and one that was placed."""
    own = f"CUSTOM_{NAMES[base].upper()}"
    amounts = {base: {"VCPU": 1, own: 1}, base + CHILD: {"MEMORY_MB": 64}}
    do(client, "PUT", f"/allocations/{uuid_of(base + HOLDER)}", claim_of(base, amounts))
    do(client, "PUT", f"/berth/v1/leases/{uuid_of(base + HOLDER)}", {"seconds": 86400})
    of_name = owner(base)
    project = of_name.pop("project_id")
    body = {"allocations": {uuid_of(base): {"resources": {"VCPU": 1}}}, **of_name}
    do(client, "PUT", f"/berth/v1/consumers/{project}/vm", body)
    consumers = [{"uuid": uuid_of(base + PLACED), **owner(base)}]
    request = {"groups": {"": {"resources": {"VCPU": 1, own: 1}}}}
    do(client, "POST", "/berth/v1/place", {"consumers": consumers, "request": request})


def claim_of(base: int, amounts: dict[int, dict[str, int]], seen: int | None = None) -> Any:
    """The body of a claim."""
    whose = owner(base)
    return claim_body(
        "1.39",
        {uuid_of(number): each for number, each in amounts.items()},
        project=whose["project_id"],
        user=whose["user_id"],
        consumer_type=whose["consumer_type"],
        consumer_generation=seen,
    )


def about_the_fleet() -> Iterator[Question]:
    """They always have an answer."""
    for path in (
        "/resource_providers",
        "/resource_providers?resources=VCPU:1",
        "/resource_classes",
        "/traits?associated=true",
        "/allocation_candidates?resources=VCPU:1",
        "/allocation_candidates?resources=VCPU:1,MEMORY_MB:64,DISK_GB:1",
        "/allocation_candidates?resources=VCPU:1&resources1=VGPU:1&group_policy=none",
        *(f"/berth/v1/{what}" for what in ("aggregates", "consumers", "leases", "flavors")),
        "/berth/v1/drains",
        "/berth/v1/fleet?include=inventories",
        "/metrics",
        "/readyz",
    ):
        yield Question("GET", path)
    yield Question("POST", "/berth/v1/candidates", {"request": VCPU, "order": {"by": "spread"}})
    many = {"groups": {"": {"resources": {"VCPU": 1000}}}}
    yield Question("POST", "/berth/v1/explain", {"request": many})
    yield Question("POST", "/berth/v1/capacity", {"requests": {"a": VCPU}})


def about_a_tree(base: int) -> Iterator[Question]:
    """Everything that can be read of a tree and of its consumers."""
    name, holder = NAMES[base], uuid_of(base + HOLDER)
    for number in (0, CHILD, GRANDCHILD, POOL):
        path = f"/resource_providers/{uuid_of(base + number)}"
        yield Question("GET", path)
        for part in ("inventories", "aggregates", "traits", "usages", "allocations"):
            yield Question("GET", f"{path}/{part}")
    for path in (
        f"/resource_providers/{uuid_of(base)}/inventories/VCPU",
        f"/resource_providers?in_tree={uuid_of(base + GRANDCHILD)}",
        f"/resource_providers?required=CUSTOM_{name.upper()}",
        f"/resource_providers?member_of={uuid_of(base + AGGREGATE)}",
        f"/allocation_candidates?resources=CUSTOM_{name.upper()}:1",
        f"/allocations/{holder}",
        f"/usages?project_id=p-{name}&consumer_type=all",
        f"/berth/v1/consumers/{holder}",
        f"/berth/v1/consumers/p-{name}/vm",
        f"/berth/v1/leases/{holder}",
        f"/berth/v1/flavors/{name}",
        f"/berth/v1/drains/{name}",
        f"/berth/v1/trees/{uuid_of(base)}",
        f"/berth/v1/placements/{uuid_of(base + PLACED)}",
    ):
        yield Question("GET", path)
    yield Question("POST", "/berth/v1/capacity", {"flavors": [name]})


def writes_to(base: int) -> Iterator[Question]:
    """Claims and releases on a tree."""
    for number, amounts in enumerate(
        (
            {base: {"VCPU": 1}},
            {base + CHILD: {"MEMORY_MB": 1}, base + GRANDCHILD: {"VGPU": 1}},
            {base: {f"CUSTOM_{NAMES[base].upper()}": 1}},
        )
    ):
        consumer = uuid_of(base + NEW + number)
        yield Question("PUT", f"/allocations/{consumer}", claim_of(base, amounts))
    again = claim_of(base, {base: {"VCPU": 2}}, seen=1)
    yield Question("PUT", f"/allocations/{uuid_of(base + HOLDER)}", again)
    for number in (NEW, HOLDER, PLACED):
        yield Question("DELETE", f"/allocations/{uuid_of(base + number)}")


class Planted(NamedTuple):
    """A database before any damage, and what a service answered about the sound tree."""

    path: Path
    answers: dict[str, tuple[int, str]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Three trees."""
    folder = tmp_path_factory.mktemp("planted")
    prepare(f"sqlite:///{folder}/berth.db")
    client = service(folder)
    for base in NAMES:
        plant(client, base)
    with sqlite3.connect(folder / "berth.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    answers = {each.path: ask(client, each) for each in about_a_tree(SOUND)}
    assert {status for status, _ in answers.values()} == {200}
    return Planted(folder / "berth.db", answers)


def is_written(path: Path, damage: DamagedRow) -> bool:
    """Whether the database lets another program write a damage."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        connection.execute(*damage.statement())
    except sqlite3.IntegrityError:
        return False
    else:
        connection.commit()
        return True
    finally:
        connection.close()


def harm_of(planted: Planted, folder: Path, damage: DamagedRow) -> Iterator[str]:
    """What goes wrong beyond the damaged row."""
    client = service(folder)
    fleet, own = list(about_the_fleet()), [*about_a_tree(FIRST), *about_a_tree(LAST)]
    yield from _failed(client, fleet, allowed=range(300))
    if damage.table not in SHARED:
        for question in about_a_tree(SOUND):
            is_given = (damage.table, question.path) == TAKES_OVER
            if question.method == "GET" and "?" not in question.path and not is_given:
                answered = ask(client, question)
                if answered != planted.answers[question.path]:
                    yield f"{question.path}: {answered}"
    yield from _failed(client, own, allowed=range(500))
    yield from _failed(client, list(writes_to(SOUND)), allowed=range(300))
    yield from _failed(client, [*writes_to(FIRST), *writes_to(LAST)], allowed=range(500))
    yield from _failed(client, fleet, allowed=range(300))


def _failed(client: Client, questions: Sequence[Question], *, allowed: range) -> Iterator[str]:
    for question in questions:
        status, text = ask(client, question)
        if status not in allowed and "placement.overloaded" not in text:
            yield f"{question.method} {question.path}: {status} {text}"


@pytest.mark.parametrize("table", metadata.tables)
def test_a_damaged_row_hurts_only_itself(planted: Planted, tmp_path: Path, table: str) -> None:
    """Whatever the damage, the fleet is served without the row; the check survives it too."""
    damages = [each for each in every_damage() if each.table == table]
    if not is_full():
        damages = Random(f"{SEED} {table}").sample(damages, min(2 + scaled(6), len(damages)))
    for number, damage in enumerate(damages):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(planted.path, folder)
        if is_written(folder / "berth.db", damage):
            harm = list(harm_of(planted, folder, damage))
            assert not harm, f"{damage}: {harm}"
            database = opened_at(f"sqlite:///{folder}/berth.db")
            list(iter_repaired(database, Owner()))
            database.dispose()
        shutil.rmtree(folder)


def test_the_log_and_a_metric_tell_of_it(
    planted: Planted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once; and a request about it says why it is not found."""
    shutil.copy(planted.path, tmp_path)
    lost = DamagedRow("resource_providers", "second", "parent_provider_id", 9999)
    assert is_written(tmp_path / "berth.db", lost)
    with caplog.at_level(logging.WARNING):
        client = service(tmp_path)
        child = f"/resource_providers/{uuid_of(FIRST + CHILD)}"
        for _ in range(2):
            assert "parent_provider_id 9999" in client.get(child).detail
    faulty = [each for each in caplog.messages if each.startswith("Faulty row")]
    assert [each.partition(" (")[0] for each in faulty] == [
        "Faulty row: provider first-1",
        "Faulty row: provider first-2",
    ]
    assert "berth_index_faulty_rows 2.0" in client.get("/metrics").text
    database = opened_at(f"sqlite:///{tmp_path}/berth.db")
    assert any("9999" in sentence for sentence in schema.check(database))
    database.dispose()


def test_an_inventory_with_a_step_of_zero_is_left_out(planted: Planted, tmp_path: Path) -> None:
    """From the start on: no claim on it could succeed."""
    shutil.copy(planted.path, tmp_path)
    useless = DamagedRow("inventories", "first", "step_size", 0)
    assert is_written(tmp_path / "berth.db", useless)
    client = service(tmp_path)
    assert "berth_index_faulty_rows 1.0" in client.get("/metrics").text
    offered = client.get("/allocation_candidates?resources=VCPU:1").json["provider_summaries"]
    assert uuid_of(SOUND) in offered
    assert uuid_of(FIRST) not in offered


def test_a_row_that_is_repaired_is_no_longer_faulty(planted: Planted, tmp_path: Path) -> None:
    """A running service sees that too."""
    shutil.copy(planted.path, tmp_path)
    strayed = DamagedRow("resource_providers", "second", "root_provider_id", 9999)
    assert is_written(tmp_path / "berth.db", strayed)
    client = service(tmp_path)
    child = f"/resource_providers/{uuid_of(FIRST + CHILD)}"
    assert client.get(child).status == 404
    database = opened_at(f"sqlite:///{tmp_path}/berth.db")
    list(iter_repaired(database, Owner()))
    database.dispose()
    assert client.get(child).status == 200
    assert "berth_index_faulty_rows 0.0" in client.get("/metrics").text
