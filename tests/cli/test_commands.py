# SPDX-License-Identifier: Apache-2.0
"""The `berth` command: its output and exit codes."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

import berth
from berth.cli.deferred import Deferred, loaded
from berth.cli.error_codes import EXIT_CODES, failure_for
from berth.cli.exit_codes import ExitCode
from berth.cli.main import cli
from tests.e2e.serving import BERTH, PATIENCE, environment, run_anew, run_berth

#: The newest revision of the original's history.
HEAD = "a082b8bb98d0"


def configuration(folder: Path, text: str) -> str:
    """Write a configuration file, and return its path."""
    path = folder / "any.conf"
    path.write_text(text)
    return str(path)


def on(folder: Path, url: str) -> str:
    """A configuration file for a database, without authentication."""
    return configuration(
        folder, f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n"
    )


def assert_fails(done: subprocess.CompletedProcess[str], code: ExitCode, *said: str) -> None:
    """A failure is one line on stderr that says all of `said`, nothing else, and its code."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("berth: ")
    assert done.stderr.count("\n") == 1
    for words in said:
        assert words in done.stderr


def test_it_tells_its_version(tmp_path: Path) -> None:
    """`berth --version`."""
    done = run_anew(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (ExitCode.OK, f"berth {berth.__version__}\n")


def test_what_stands_for_a_command_says_what_the_command_says() -> None:
    """The summary in the list of commands is the first line of the command's own help."""
    deferred = [one for one in cli.commands.values() if isinstance(one, Deferred)]
    assert deferred
    for one in deferred:
        own = " ".join(str(loaded(one).help).partition("\n\n")[0].split())
        assert one.help == own


@pytest.mark.parametrize("arguments", [["frobnicate"], ["db", "downgrade"], ["serve", "--wrong"]])
def test_what_is_not_understood_ends_with_the_usage_code(
    tmp_path: Path, arguments: list[str]
) -> None:
    """Unknown commands and options."""
    done = run_berth(tmp_path, *arguments)
    assert done.returncode == ExitCode.USAGE
    assert "Usage: berth" in done.stderr


def test_an_empty_database_is_upgraded_and_stays_so(tmp_path: Path) -> None:
    """version, upgrade, upgrade again, version, check: on the embedded database."""
    before = run_berth(tmp_path, "db", "version")
    assert (before.returncode, before.stdout.split()[0]) == (ExitCode.OK, "None")
    for _ in range(2):
        upgraded = run_berth(tmp_path, "db", "upgrade")
        assert upgraded.returncode == ExitCode.OK, upgraded.stderr
        assert HEAD in upgraded.stdout
    after = run_berth(tmp_path, "db", "version")
    assert after.stdout.split()[0] == HEAD
    checked = run_berth(tmp_path, "db", "check")
    assert checked.returncode == ExitCode.OK, checked.stderr
    assert checked.stdout.startswith("no faults found in sqlite:///")


def test_a_check_says_what_is_wrong(tmp_path: Path) -> None:
    """A usage that does not match the allocations is reported."""
    database = tmp_path / "berth.db"
    source = on(tmp_path, f"sqlite:///{database}")
    assert run_berth(tmp_path, "db", "upgrade", "--config-file", source).returncode == 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
            " VALUES (4711, '00000000-0000-0000-0000-000000000001', 0, 1)"
        )
        connection.commit()
    done = run_berth(tmp_path, "db", "check", "--config-file", source)
    assert done.returncode == ExitCode.INCONSISTENT
    assert "4711" in done.stdout
    assert "found in sqlite:///" in done.stderr


def test_an_empty_database_cannot_be_checked(tmp_path: Path) -> None:
    """`db check` requires this release's schema."""
    (tmp_path / "berth.db").touch()
    source = on(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    done = run_berth(tmp_path, "db", "check", "--config-file", source)
    assert_fails(done, ExitCode.SCHEMA, "is at None", "berth db upgrade")


def test_who_only_looks_makes_no_database(tmp_path: Path) -> None:
    """A mistyped path does not leave an empty file behind."""
    database = tmp_path / "berth.db"
    source = on(tmp_path, f"sqlite:///{database}")
    version = run_berth(tmp_path, "db", "version", "--config-file", source)
    assert (version.returncode, version.stdout) == (ExitCode.OK, "None\n")
    checked = run_berth(tmp_path, "db", "check", "--config-file", source)
    assert_fails(checked, ExitCode.SCHEMA, "there is no database", "berth db upgrade")
    assert not database.exists()


@pytest.mark.parametrize("command", [["serve"], ["db", "upgrade"], ["db", "version"]])
def test_an_unknown_engine_is_refused(tmp_path: Path, command: list[str]) -> None:
    """One line, without the password."""
    source = on(tmp_path, "oracle://placement:secret@db/placement")
    done = run_berth(tmp_path, *command, "--config-file", source)
    assert_fails(done, ExitCode.UNSUPPORTED, "does not know the engine oracle")
    assert "secret" not in done.stderr


def test_a_configuration_without_a_database_is_refused(tmp_path: Path) -> None:
    """A file without a database is an error; berth does not use the embedded one."""
    source = configuration(tmp_path, "[api]\nauth_strategy = noauth2\n")
    done = run_berth(tmp_path, "db", "version", "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, "[placement_database]connection")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """`--config-file` must exist."""
    done = run_berth(tmp_path, "serve", "--config-file", "nowhere.conf")
    assert_fails(done, ExitCode.CONFIGURATION, "nowhere.conf")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """berth creates only its own directory."""
    source = on(tmp_path, f"sqlite:///{tmp_path}/no/such/berth.db")
    done = run_berth(tmp_path, "serve", "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, f"there is no directory {tmp_path}/no/such")


def test_a_database_in_memory_is_refused(tmp_path: Path) -> None:
    """A database in memory is private to its process."""
    done = run_berth(tmp_path, "serve", "--config-file", on(tmp_path, "sqlite://"))
    assert_fails(done, ExitCode.UNSUPPORTED, "in memory")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """SQLite's reason, in one line."""
    (tmp_path / "berth.db").write_text("certainly no database " * 100)
    done = run_berth(
        tmp_path, "serve", "--config-file", on(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    )
    assert_fails(done, ExitCode.DATABASE, f"{tmp_path}/berth.db", "not a database")


@pytest.mark.parametrize("command", [["serve"], ["db", "upgrade"], ["db", "version"]])
def test_a_folder_in_the_place_of_a_database_is_named(tmp_path: Path, command: list[str]) -> None:
    """What is wrong, where, and the next step."""
    (tmp_path / "berth.db").mkdir()
    source = on(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    done = run_berth(tmp_path, *command, "--config-file", source)
    assert_fails(done, ExitCode.DATABASE, f"{tmp_path}/berth.db", "you can read and write")


@pytest.mark.parametrize(
    "option", ["log_file = no/such/folder/berth.log", "log_config_append = no-such-file"]
)
def test_a_log_that_cannot_be_written_is_the_configurations_mistake(
    tmp_path: Path, option: str
) -> None:
    """It is not reported as a bug in berth."""
    source = configuration(
        tmp_path,
        f"[DEFAULT]\n{option}\n[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n",
    )
    done = run_berth(tmp_path, "serve", "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, option.partition(" = ")[2])


@pytest.mark.parametrize("text", ["a: b: c", "- a list", "\x07"])
def test_a_policy_file_that_cannot_be_read_stops_the_service_in_one_line(
    tmp_path: Path, text: str
) -> None:
    """berth reads it before any worker starts."""
    (tmp_path / "policy.yaml").write_text(text)
    source = on(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    done = run_berth(tmp_path, "serve", "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, "policy.yaml")


def test_a_database_of_another_schema_waits_for_the_upgrade(tmp_path: Path) -> None:
    """berth prepares only an empty database itself; the message names the command to run."""
    database = tmp_path / "berth.db"
    source = on(tmp_path, f"sqlite:///{database}")
    assert run_berth(tmp_path, "db", "upgrade", "--config-file", source).returncode == 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE berth_alembic_version")
        connection.commit()
    done = run_berth(tmp_path, "serve", "--config-file", source)
    assert_fails(done, ExitCode.SCHEMA, "berth db upgrade", str(database))


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_strangers_are_not_let_in_without_authentication(tmp_path: Path, host: str) -> None:
    """noauth2 on a public address is refused; the message names the alternatives."""
    done = run_berth(tmp_path, "serve", "--bind", f"{host}:0")
    assert_fails(done, ExitCode.UNSAFE, "--insecure-noauth", "127.0.0.1")


@pytest.mark.parametrize("name", EXIT_CODES)
def test_the_errors_with_codes_are_called_so(name: str) -> None:
    """The table has names; a class that is renamed or moved would lose its code."""
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    assert f"{found.__module__}.{found.__qualname__}" == name
    assert failure_for(found.__new__(found)).code == EXIT_CODES[name]


def test_a_mistake_of_ours_is_said_in_one_line() -> None:
    """The message about an unexpected error asks for a report."""
    failure = failure_for(ZeroDivisionError("division by zero"))
    assert failure.code == ExitCode.INTERNAL
    assert "ZeroDivisionError: division by zero" in str(failure)


def test_a_reader_who_has_seen_enough_ends_it_without_a_word(tmp_path: Path) -> None:
    """As `berth policy sample | head` does."""
    with subprocess.Popen(
        [*BERTH, "policy", "sample"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None and command.stderr is not None
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait(PATIENCE) == ExitCode.OUTPUT_CLOSED


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    """`berth --debug` prints a traceback."""
    done = run_berth(tmp_path, "--debug", "serve", "--config-file", "nowhere.conf")
    assert done.returncode == ExitCode.CONFIGURATION
    assert "Traceback" in done.stderr
