# SPDX-License-Identifier: Apache-2.0
"""Usages are recounted after another program has written allocations."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from berth.store import usage_counts
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import recount_usages
from berth.upkeep import schema
from tests.fresh import opened_at
from tests.servers.statements import run
from tests.sql_reads import provider_usages
from tests.store.damage import CASES, damage
from tests.store.fleet import claim, holding, provider

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def test_wrong_sums_are_counted_again(sound: Database, database_url: str) -> None:
    """A wrong, a missing and a surplus usage; if all are right, nothing is written."""
    damage(database_url, CASES["sums of usage"])
    assert recount_usages(sound) == 3
    assert schema.check(sound) == []
    assert provider_usages(sound, provider(12)).usages == {"VCPU": 2, "DISK_GB": 0}
    assert recount_usages(sound) == 0


def test_parts_together_are_everything(sound: Database, database_url: str) -> None:
    """However small the parts are, and wherever they cut the inventories of a provider."""
    run(database_url, "UPDATE berth_usages SET used = 7 WHERE resource_class_id = 0")
    heard: list[tuple[int, int]] = []
    with patch.object(usage_counts, "_LAST_OF_PART", usage_counts.last_of_part(3)):
        wrong = recount_usages(sound, lambda _what, done, total: heard.append((done, total)))
    assert wrong == 12
    assert schema.check(sound) == []
    assert heard[0] == (0, 24) and heard[-1] == (24, 24)


def test_a_claim_in_between_is_not_lost(sound: Database, database_url: str) -> None:
    """RACE: a claim commits after the allocations were counted and before the usage is written. The
    usage is left alone and counted again."""
    run(database_url, "UPDATE berth_usages SET used = 3 WHERE resource_provider_id = 12")
    other = opened_at(database_url)
    write = usage_counts._write
    claims = [holding(31, {12: {"VCPU": 1}})]

    def claim_then_write(tx: Tx, stale: list[usage_counts.Stale]) -> None:
        if claims:
            claim(other, claims.pop())
        write(tx, stale)

    if sound.dialect.is_embedded:  # a transaction locks out all other writers
        claim(other, claims.pop())
    with patch.object(usage_counts, "_write", claim_then_write):
        recount_usages(sound)
    assert provider_usages(sound, provider(12)).usages["VCPU"] == 3
    assert schema.check(sound) == []
    other.dispose()
