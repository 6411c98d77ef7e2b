# SPDX-License-Identifier: Apache-2.0
"""Flavors in the database: how large they may be, and races for their names and their number."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from berth.model import bounds
from berth.model.named import Flavor, FlavorName
from berth.model.own_errors import TooMany
from berth.store import named
from berth.store.engine.database import Database
from berth.store.named import all_records, put_flavor
from berth.upkeep import schema
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

SMALL = Flavor('{"groups": {"": {"resources": {"VCPU": 1}}}}')


def test_the_largest_flavor_fits_and_names_are_exact(db: Database) -> None:
    """On every engine, counted in bytes; names differ by letter case."""
    length = (bounds.FLAVOR_BYTES_MAX - len('{"a":""}')) // 4
    largest = Flavor('{"a":"%s"}' % ("\U0001f600" * length), description="\U0001f600" * 255)
    stored = {FlavorName("x" * 255): largest, FlavorName("X" * 255): SMALL}
    for name, flavor in stored.items():
        assert put_flavor(db, name, flavor)
    with db.read() as tx:
        assert all_records(tx).flavors == stored
    assert schema.check(db) == []


def test_of_two_that_create_flavors_at_once_none_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys decide: of the same name one creates it, and together they do not pass the bound."""
    monkeypatch.setattr(named, "FLAVORS", replace(named.FLAVORS, at_most=7))
    created: list[FlavorName] = []

    def create(name: FlavorName) -> None:
        if put_flavor(db, name, SMALL):
            created.append(name)

    for number in range(5):
        assert race(*[partial(create, FlavorName(f"m{number}"))] * 2) == [None, None]
    outcomes = [
        race(*(partial(create, FlavorName(f"{own}{number}")) for own in "ab"))
        for number in range(3)
    ]
    refused = [error for outcome in outcomes for error in outcome if error is not None]
    assert refused == [TooMany] * 4
    with db.read() as tx:
        assert sorted(created) == sorted(all_records(tx).flavors) and len(created) == 7
