# SPDX-License-Identifier: Apache-2.0
"""`berth db copy`: its output and exit codes."""

from __future__ import annotations

import os
import pty
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from berth.cli.failure import ExitCode
from berth.store.engine.opening import open_database
from tests.cli.test_commands import assert_fails
from tests.copying.contents import contents, fill
from tests.e2e.serving import BERTH, environment, run_berth
from tests.servers.ports import free_port


@pytest.fixture
def source_url(tmp_path: Path) -> str:
    """A small database."""
    url = f"sqlite:///{tmp_path}/source.db"
    db = open_database(url)
    fill(db)
    db.dispose()
    return url


@pytest.fixture
def target_url(tmp_path: Path) -> str:
    """The URL of a database that does not exist yet."""
    return f"sqlite:///{tmp_path}/target.db"


def assert_same(source_url: str, target_url: str) -> int:
    """Check that both have the same rows, and return how many."""
    source, target = open_database(source_url), open_database(target_url)
    rows = contents(source)
    assert contents(target) == rows
    source.dispose()
    target.dispose()
    return sum(map(len, rows.values()))


def test_a_line_for_each_table_and_one_at_the_end(
    tmp_path: Path, source_url: str, target_url: str
) -> None:
    """Progress goes to stderr, the result to stdout."""
    done = run_berth(tmp_path, "db", "copy", "--from", source_url, "--to", target_url)
    assert done.returncode == ExitCode.OK, done.stderr
    lines = done.stderr.splitlines()
    assert "copying allocations: 15" in lines and "comparing consumers: 5" in lines
    count = assert_same(source_url, target_url)
    assert done.stdout == (
        f"{target_url} is a copy of {source_url}: {count} rows in 19 tables, all compared\n"
    )


def test_the_urls_may_stand_in_the_environment(
    tmp_path: Path, source_url: str, target_url: str
) -> None:
    """That keeps passwords out of the process list; `connection_parameters` there are those of the
    service's database, and of neither of the two."""
    variables = {
        "BERTH_COPY_FROM": source_url,
        "BERTH_COPY_TO": target_url,
        "OS_PLACEMENT_DATABASE__CONNECTION_PARAMETERS": "charset=utf8",
    }
    done = run_berth(tmp_path, "db", "copy", variables=variables)
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.startswith(f"{target_url} is a copy of {source_url}: ")
    assert_same(source_url, target_url)


def test_a_bar_on_a_terminal(tmp_path: Path, source_url: str, target_url: str) -> None:
    """Progress for people who wait."""
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        [*BERTH, "db", "copy", "--from", source_url, "--to", target_url],
        env=environment(tmp_path, TERM="xterm"),
        stderr=terminal,
        stdout=subprocess.DEVNULL,
    ) as process:
        os.close(terminal)
        shown = _read_all(screen).decode()
    os.close(screen)
    assert process.returncode == ExitCode.OK
    assert "copying allocations" in shown and "15/15" in shown


def _read_all(descriptor: int) -> bytes:
    parts = []
    with suppress(OSError):  # the end of a terminal
        while part := os.read(descriptor, 65536):
            parts.append(part)
    return b"".join(parts)


def test_a_full_target_is_refused(tmp_path: Path, source_url: str, target_url: str) -> None:
    """One line that says what to do."""
    for expected in (ExitCode.OK, ExitCode.DATABASE):
        done = run_berth(tmp_path, "db", "copy", "--from", source_url, "--to", target_url)
        assert done.returncode == expected
    assert_fails(done, ExitCode.DATABASE, "is not empty", "a database of its own")


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path, target_url: str) -> None:
    """A mistyped path is not an empty database."""
    nowhere = f"sqlite:///{tmp_path}/nowhere.db"
    done = run_berth(tmp_path, "db", "copy", "--from", nowhere, "--to", target_url)
    assert_fails(done, ExitCode.DATABASE, f"there is no database {nowhere}")
    assert list(tmp_path.glob("*.db")) == []


@pytest.mark.parametrize("scheme", ["postgresql", "mysql+pymysql"])
@pytest.mark.parametrize("side", ["--from", "--to"])
def test_a_server_that_cannot_be_reached_is_named_without_its_password(
    tmp_path: Path, source_url: str, scheme: str, side: str
) -> None:
    """The message names the database that cannot be reached."""
    away = f"{scheme}://berth:hunter2@127.0.0.1:{free_port()}/placement"
    urls = {"--from": source_url, "--to": source_url, side: away}
    done = run_berth(tmp_path, "db", "copy", *(part for pair in urls.items() for part in pair))
    assert_fails(done, ExitCode.DATABASE, f"{scheme}://berth:***@127.0.0.1")
    assert "hunter2" not in done.stderr


def test_faults_of_the_source_are_listed(tmp_path: Path, source_url: str, target_url: str) -> None:
    """The copy is complete anyway."""
    with closing(open_database(source_url).engine.connect()) as connection:
        connection.execute(text("DELETE FROM consumers WHERE id = 10"))
        connection.commit()
    done = run_berth(tmp_path, "db", "copy", "--from", source_url, "--to", target_url)
    assert done.returncode == ExitCode.INCONSISTENT
    assert "is a copy of" in done.stdout and "berth db check" in done.stderr
    assert_same(source_url, target_url)
