# SPDX-License-Identifier: Apache-2.0
"""A copy that is interrupted at any point."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count

import pytest
from sqlalchemy import event, text

from berth.model.errors import DatabaseUnavailable, SchemaError
from berth.store.engine.database import Database
from berth.store.versions import (
    BERTH_REVISIONS,
    UNFINISHED_COPY,
    is_current,
    versions_of,
    why_not_current,
)
from berth.upkeep import schema
from berth.upkeep.copying import CopyRefused, copy_database
from tests.copying.conftest import New
from tests.copying.contents import as_mysql_keeps, contents
from tests.fresh import opened_at
from tests.store.fleet import add_provider

#: Each run may write so much more than the one before.
STEP = 10

_READS = ("SELECT", "PRAGMA", "BEGIN", "START", "SET", "SHOW", "DESCRIBE")


def run_until_write(source: Database, target: Database, number: int) -> bool:
    """Run a copy in a child that kills itself with SIGKILL before its Nth write; return whether it
    finished first. The chunks are so small that each table takes several."""
    if child := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        return status == 0
    status = 1
    try:
        urls = (db.engine.url.render_as_string(hide_password=False) for db in (source, target))
        source, target = map(opened_at, urls)
        numbers = count(1)

        def listen(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
            if not text.lstrip().upper().startswith(_READS) and next(numbers) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(target.engine, "before_cursor_execute", listen)
        copy_database(source, target, report=lambda *_: None, chunk_rows=2)
        status = 0
    finally:
        os._exit(status)


@pytest.mark.thorough
@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_copy_that_is_killed_again_and_again_is_finished(
    engine: str, source: Database, new: New
) -> None:
    """Each run continues where the last one stopped; a target that can be served is empty or
    complete."""
    target = new(engine)
    expected = contents(source)
    if engine == "mariadb":
        expected = as_mysql_keeps(expected)
    kills = 0
    while not run_until_write(source, target, (kills + 1) * STEP):
        kills += 1
        if is_current(target):
            rows = contents(target)
            assert rows == expected or not any(rows.values())
    assert kills > 4
    assert contents(target) == expected
    assert is_current(target) and schema.check(target) == []


class Interrupted(Exception):
    """Interrupts a copy in a test."""


def interrupt_at(stage: str) -> Callable[[str, int, int], None]:
    """A listener that interrupts a copy within a stage."""

    def listen(what: str, done: int, _total: int) -> None:
        if what == stage and done:
            raise Interrupted

    return listen


def interrupted(source: Database, target: Database, stage: str) -> None:
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


def test_a_half_copy_can_only_be_finished(source: Database, target: Database, new: New) -> None:
    """It cannot be served, because no release knows its schema; it is no source, because the copy
    would be incomplete too; and the rows of two databases must not be mixed."""
    interrupted(source, target, "comparing allocations")
    versions = versions_of(target)
    assert versions.berth == UNFINISHED_COPY
    assert "run the same `berth db copy` again" in why_not_current(versions)
    with pytest.raises(SchemaError):
        schema.upgrade(target)
    other = new("sqlite")
    with pytest.raises(CopyRefused, match="unfinished copy"):
        copy_database(target, other, report=lambda *_: None)
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
