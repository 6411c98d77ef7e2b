# SPDX-License-Identifier: Apache-2.0
"""Messages about unusable databases: one line, the next step, and no password."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

from berth.cli.failure import ExitCode
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails, configuration
from tests.e2e.serving import BERTH, PATIENCE, environment, run_anew, run_berth
from tests.servers.statements import run

SERVERS = pytest.mark.engines("postgresql", "mariadb")
ALL = pytest.mark.engines("sqlite", "postgresql", "mariadb")
COMMANDS = (("db", "version"), ("db", "upgrade"), ("serve",))


def source_for(folder: Path, url: str) -> str:
    """A configuration file without retries."""
    return configuration(
        folder,
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n"
        f"max_retries = 0\n",
    )


def upgraded(folder: Path, url: str) -> str:
    """The configuration of a prepared database."""
    source = source_for(folder, url)
    done = run_berth(folder, "db", "upgrade", "--config-file", source)
    assert done.returncode == ExitCode.OK, done.stderr
    return source


@SERVERS
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda url: url.set(password="wrong"), "correct the user and the password"),
        (lambda url: url.set(database="nowhere"), "[placement_database]connection"),
        (lambda url: url.set(port=1), "check that the server runs"),
        (lambda url: url.set(host="nowhere.invalid"), "check that the server runs"),
    ],
    ids=["password", "database", "port", "host"],
)
def test_a_server_that_does_not_let_us_in(
    database_url: str, tmp_path: Path, change: Callable[[URL], URL], words: str
) -> None:
    """A wrong password, name, port or host."""
    wrong = change(make_url(database_url))
    source = source_for(tmp_path, wrong.render_as_string(hide_password=False))
    for command in COMMANDS:
        done = run_berth(tmp_path, *command, "--config-file", source)
        assert_fails(done, ExitCode.DATABASE, words, wrong.render_as_string())
        assert "secret" not in done.stderr


@SERVERS
def test_a_url_that_the_driver_does_not_understand(database_url: str, tmp_path: Path) -> None:
    """An unknown parameter, a port that is not a number, an unknown engine."""
    for url in (
        f"{database_url}?frobnicate=1",
        database_url.replace(f":{make_url(database_url).port}", ":port"),
        database_url.replace("://", "x://"),
    ):
        done = run_berth(tmp_path, "db", "version", "--config-file", source_for(tmp_path, url))
        assert_fails(done, ExitCode.UNSUPPORTED, "database URL")
        assert "secret" not in done.stderr


@SERVERS
def test_a_driver_that_is_not_installed(database_url: str, tmp_path: Path) -> None:
    """The message says what to install."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "drivers = ('psycopg', 'pymysql', 'MySQLdb')\n"
        "importlib.util.find_spec = lambda name, *more: (\n"
        "    None if name in drivers else find(name, *more))\n"
    )
    source = source_for(tmp_path, database_url)
    path = f"{hidden}{os.pathsep}{environment(tmp_path)['PYTHONPATH']}"
    done = run_anew(
        tmp_path, "db", "version", "--config-file", source, variables={"PYTHONPATH": path}
    )
    assert_fails(done, ExitCode.UNSUPPORTED, "pip install 'berthd[")


@ALL
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE alembic_version SET version_num = 'ffffffffffff'", "newer release"),
        ("UPDATE berth_alembic_version SET version_num = '9999'", "newer release"),
        ("UPDATE berth_alembic_version SET version_num = '0001'", "continues where that stopped"),
    ],
)
def test_a_schema_that_is_not_this_releases(
    database_url: str, tmp_path: Path, statement: str, words: str
) -> None:
    """A newer schema of either history, and one whose upgrade was interrupted."""
    source = upgraded(tmp_path, database_url)
    run(database_url, statement)
    for command in (("serve",), ("db", "check")):
        done = run_berth(tmp_path, *command, "--config-file", source)
        assert_fails(done, ExitCode.SCHEMA, words)
    again = run_berth(tmp_path, "db", "upgrade", "--config-file", source)
    assert (again.returncode == ExitCode.OK) is ("newer" not in words)


@ALL
def test_a_database_that_cannot_be_written(
    database_url: str, tmp_path: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    """Read-only commands work; the others report it in one line."""
    source = upgraded(tmp_path, database_url)
    run(database_url, "DELETE FROM traits WHERE name = 'HW_CPU_X86_VMX'")
    name = make_url(database_url).database
    if engine == "postgresql":
        run(database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    elif engine == "mariadb":
        request.getfixturevalue("mariadb").administer("SET GLOBAL read_only = 1")
    try:
        if engine == "sqlite":
            assert_unwritable_file(Path(name or ""), tmp_path)
            return
        for command in (("db", "release", "--yes", "--force"), ("serve",)):
            done = run_berth(tmp_path, *command, "--config-file", source)
            assert_fails(done, ExitCode.DATABASE, "with a user that may write")
        for looking in (("db", "version"), ("db", "check")):
            done = run_berth(tmp_path, *looking, "--config-file", source)
            assert done.returncode == ExitCode.OK, done.stderr
    finally:
        if engine == "mariadb":
            request.getfixturevalue("mariadb").administer("SET GLOBAL read_only = 0")


def assert_unwritable_file(path: Path, folder: Path) -> None:
    """The same for a file in a directory that is not writable."""
    place = folder / "unwritable"
    place.mkdir()
    shutil.copy(path, place / "berth.db")
    source = source_for(folder, f"sqlite:///{place}/berth.db")
    before = (place / "berth.db").read_bytes()
    (place / "berth.db").chmod(0o444)
    place.chmod(0o555)
    for command, code in (
        (("db", "version"), ExitCode.OK),
        (("db", "check"), ExitCode.OK),
        (("db", "upgrade"), ExitCode.DATABASE),
        (("serve",), ExitCode.DATABASE),
    ):
        done = run_unprivileged(folder, *command, "--config-file", source)
        assert done.returncode == code, done.stderr
        if code is ExitCode.DATABASE:
            assert_fails(done, code, "you can read and write")
    place.chmod(0o755)
    assert (place / "berth.db").read_bytes() == before


def run_unprivileged(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a `berth` command as a user other than root, who needs permissions."""
    bound = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
    return subprocess.run(
        [*bound, *BERTH, *arguments],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_file_that_another_program_holds_is_to_be_tried_again(
    tmp_path: Path, in_process: InProcess
) -> None:
    """The message does not blame the file or its directory."""
    path = tmp_path / "berth.db"
    source = upgraded(tmp_path, f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        done = in_process("db", "upgrade", "--config-file", source)
    assert_fails(done, ExitCode.DATABASE, "another program has locked it; try again")


def test_who_only_looks_leaves_a_file_as_it_is(tmp_path: Path) -> None:
    """A file in another journal mode, such as Placement's, keeps it."""
    path = tmp_path / "berth.db"
    source = upgraded(tmp_path, f"sqlite:///{path}")
    run(f"sqlite:///{path}", "PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    for command in (("db", "version"), ("db", "check"), ("db", "check", "--repair", "--dry-run")):
        done = run_berth(tmp_path, *command, "--config-file", source)
        assert done.returncode == ExitCode.OK, done.stderr
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.glob("berth.db*")] == ["berth.db"]
