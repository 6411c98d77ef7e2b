# SPDX-License-Identifier: Apache-2.0
"""A copy that is interrupted at any point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from berth.model.errors import DatabaseUnavailable, SchemaError
from berth.store.engine.database import Database
from berth.store.versions import BERTH_REVISIONS, UNFINISHED_COPY
from berth.upkeep import schema
from berth.upkeep.copying import CopyRefused, copy_database
from tests.copying.conftest import Opener
from tests.copying.contents import contents, single_precision, whole_seconds
from tests.effort import LEFT_OUT, is_left_out
from tests.store.fleet import add_provider

ROOT = Path(__file__).parent.parent.parent

#: Each run may write so much more than the one before.
STEP = 10


def run_until_write(source_url: str, target_url: str, number: int) -> bool:
    """Run a copy in a process that is killed before its Nth write; return whether it finished
    first."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.copying.killed", source_url, target_url, str(number)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return False
    assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
    return True


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_copy_that_is_killed_again_and_again_is_finished(
    engine: str, source_url: str, database_url: str, opened: Opener
) -> None:
    """Each run continues where the last one stopped; a target that can be served is empty or
    complete."""
    if is_left_out(["sqlite", "postgresql", "mariadb"], engine, "copies that are killed"):
        pytest.skip(LEFT_OUT)
    target = opened(database_url)
    expected = contents(opened(source_url))
    if target.engine.dialect.name == "mysql":
        expected = single_precision(whole_seconds(expected))
    kills = 0
    while not run_until_write(source_url, database_url, (kills + 1) * STEP):
        kills += 1
        if schema.is_current(target):
            rows = contents(target)
            assert rows == expected or not any(rows.values())
    print(f"{kills} kills")
    assert kills > 4
    assert contents(target) == expected
    assert schema.is_current(target) and schema.check(target) == []


class Interrupted(Exception):
    """Interrupts a copy in a test."""


def interrupt_at(stage: str) -> Callable[[str, int, int], None]:
    """A listener that interrupts a copy within a stage."""

    def listen(what: str, done: int, _total: int) -> None:
        if what == stage and done:
            raise Interrupted

    return listen


def interrupted(source: Database, target: Database, stage: str) -> None:
    """Copy until a stage."""
    with pytest.raises(Interrupted):
        copy_database(source, target, report=interrupt_at(stage), chunk_rows=5)


def test_what_is_copied_is_not_copied_again(source: Database, target: Database) -> None:
    """The second run begins with the row after the last."""
    interrupted(source, target, "copying resource_providers")
    begun_with: dict[str, int] = {}

    def listen(what: str, done: int, _total: int) -> None:
        begun_with.setdefault(what, done)

    copy_database(source, target, report=listen)
    assert begun_with["copying allocations"] == 15
    assert begun_with["copying resource_providers"] == 5
    assert begun_with["copying resource_provider_traits"] == 0
    assert contents(target) == contents(source)


def test_a_half_copy_cannot_be_served(source: Database, target: Database) -> None:
    """No release knows its schema."""
    interrupted(source, target, "comparing allocations")
    versions = schema.versions_of(target)
    assert versions.berth == UNFINISHED_COPY
    assert "run the same `berth db copy` again" in schema.why_not_current(versions)
    with pytest.raises(SchemaError):
        schema.upgrade(target)


def test_a_half_copy_is_no_source(
    source: Database, target: Database, new_url: Callable[[str], str], opened: Opener
) -> None:
    """The copy would be incomplete too."""
    interrupted(source, target, "copying traits")
    with pytest.raises(CopyRefused, match="unfinished copy"):
        copy_database(target, opened(new_url("sqlite")), report=lambda *_: None)


def test_a_half_copy_of_another_source_is_left_alone(
    source: Database, target: Database, new_url: Callable[[str], str], opened: Opener
) -> None:
    """The rows of two databases must not be mixed."""
    interrupted(source, target, "copying traits")
    other = opened(new_url("sqlite"))
    schema.upgrade(other)
    with pytest.raises(CopyRefused, match=f"a copy of sqlite:///{source.engine.url.database}, not"):
        copy_database(other, target, report=lambda *_: None)


@pytest.mark.parametrize("release", [BERTH_REVISIONS[0], "9999"])
def test_a_half_copy_of_another_release_is_left_alone(
    source: Database, target: Database, release: str
) -> None:
    """Its tables are others."""
    interrupted(source, target, "copying traits")
    words = f"UPDATE berth_copy SET value = '{release}' WHERE step = 'release'"
    target.write_unnoted(lambda tx: tx.connection.execute(text(words)))
    with pytest.raises(CopyRefused, match="finish it with that release, or empty"):
        copy_database(source, target, report=lambda *_: None)


def test_a_source_that_has_changed_meanwhile_is_copied_anew(
    source: Database, target: Database
) -> None:
    """The rows that were copied before may be outdated."""
    interrupted(source, target, "copying traits")
    add_provider(source, 200)
    with pytest.raises(
        CopyRefused, match=r"changed since the copy began: stop .* empty the target"
    ):
        copy_database(source, target, report=lambda *_: None, force=True)


def test_two_copies_into_one_target(source: Database, target: Database) -> None:
    """One of them gives up, and no row is copied twice."""

    def overtake(what: str, done: int, _total: int) -> None:
        if what == "copying consumers" and done:
            copy_database(source, target, report=lambda *_: None)

    with pytest.raises((CopyRefused, DatabaseUnavailable)):
        copy_database(source, target, report=overtake, chunk_rows=2)
    assert contents(target) == contents(source)
