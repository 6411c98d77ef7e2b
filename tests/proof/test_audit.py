# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit: an undamaged database passes, and each kind of damage is found."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from berth.store.engine.database import Database
from tests.client import Client
from tests.proof import audit
from tests.proof.history import (
    Begin,
    ConsumerWrite,
    History,
    Operation,
    Outcome,
    consumer_uuid,
    provider_uuid,
)

HOST, HOLDER = provider_uuid(1), consumer_uuid(1)

#: What is done to the database behind berth's back, and a part of what the audit says.
DAMAGE = {
    "a sum that is wrong": (["UPDATE berth_usages SET used = used + 1"], "allocations"),
    "a claim that is lost": (
        ["DELETE FROM allocations", "UPDATE berth_usages SET used = 0"],
        "the database has None",
    ),
    "more than there ever was": (
        ["UPDATE allocations SET used = 9", "UPDATE berth_usages SET used = 9"],
        "there never was more than 8",
    ),
    "a claim that nobody made": (
        [
            "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used)"
            f" SELECT resource_provider_id, resource_class_id, '{consumer_uuid(2)}', 1"
            " FROM allocations",
            "UPDATE berth_usages SET used = 3",
        ],
        f"{consumer_uuid(2)}: the database has",
    ),
    "a generation that was never told": (
        ["UPDATE consumers SET generation = 7"],
        "the database has (7,",
    ),
    "an inventory that is gone": (
        ["DELETE FROM inventories", "DELETE FROM berth_usages"],
        "allocations but no inventory",
    ),
}


def test_a_sound_database_passes(client: Client, database: Database) -> None:
    """A claim as it was acknowledged is no fault."""
    assert faults_after([], client, database) == []


@pytest.mark.parametrize(("statements", "told"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(
    client: Client, database: Database, statements: list[str], told: str
) -> None:
    """The audit does not depend on berth's responses."""
    assert told in "\n".join(faults_after(statements, client, database))


def test_what_was_shrunk_may_be_used_beyond_what_is_left(
    client: Client, database: Database
) -> None:
    """The host once had 8; that it has less now is no fault."""
    assert faults_after(["UPDATE inventories SET total = 1"], client, database) == []


def faults_after(statements: list[str], client: Client, database: Database) -> list[str]:
    """The faults of one host with one claim of 2, after some damage."""
    client.post("/resource_providers", json={"uuid": HOST, "name": "host"})
    stock = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
    client.put(f"/resource_providers/{HOST}/inventories", json=stock)
    body = {
        "allocations": {HOST: {"resources": {"VCPU": 2}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert client.put(f"/allocations/{HOLDER}", json=body).status == 204
    write = ConsumerWrite(HOLDER, None, frozenset({(HOST, "VCPU", 2)}))
    claim = Operation("somebody", "PUT", 0, 1, Outcome.ACCEPTED, (write,))
    begin = {HOST: Begin(1, frozenset({("VCPU", 8)}))}
    history = History.ended(begin, [claim], audit.last_sight(client, [claim]))
    with database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    return audit.database_faults(str(database.engine.url), history)
