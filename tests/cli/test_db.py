# SPDX-License-Identifier: Apache-2.0
"""`berth db upgrade`, `check` and `release` on the command line."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from berth.index import Index
from berth.model.errors import RevisionForeign
from berth.store.leases import put_lease
from tests.cli.test_commands import assert_fails, on
from tests.e2e.serving import BERTH, PATIENCE, environment, run_berth, wait_until
from tests.fresh import opened_at
from tests.servers.statements import run
from tests.store.damage import CASES, damage, fleet
from tests.store.fleet import claim, consumer, holding
from tests.world_in_store import drain


def sound(folder: Path) -> tuple[str, str]:
    """A fleet in an SQLite file: its URL and its configuration."""
    url = f"sqlite:///{folder}/berth.db"
    source = on(folder, url)
    assert run_berth(folder, "db", "upgrade", "--config-file", source).returncode == 0
    db = opened_at(url)
    fleet(db)
    db.dispose()
    return url, source


def test_a_repair_does_what_its_dry_run_says(tmp_path: Path) -> None:
    """Both print the same lines; the dry run changes nothing, and unrepaired faults remain."""
    url, source = sound(tmp_path)
    damage(url, *CASES.values())
    before = (tmp_path / "berth.db").read_bytes()
    command = ("db", "check", "--repair", "--config-file", source)
    dry = run_berth(tmp_path, *command, "--dry-run")
    assert dry.returncode == ExitCode.INCONSISTENT, dry.stderr
    assert "was changed" in dry.stderr
    assert (tmp_path / "berth.db").read_bytes() == before
    done = run_berth(tmp_path, *command)
    assert done.returncode == ExitCode.INCONSISTENT, done.stderr
    assert done.stdout.splitlines()[:-1] == dry.stdout.splitlines()[:-1]
    assert f"remove the record of consumer {consumer(99)}" in done.stdout
    left = [line for line in done.stdout.splitlines() if line.startswith("  left alone: ")]
    again = run_berth(tmp_path, "db", "check", "--config-file", source)
    assert len(again.stdout.splitlines()) == len(left) > 5


def test_a_database_that_can_be_put_right_is_sound_afterwards(tmp_path: Path) -> None:
    """The exit code is 0 after a complete repair, and 8 after a dry run."""
    url, source = sound(tmp_path)
    damage(url, CASES["sums of usage"], CASES["a wrong root"])
    dry = run_berth(tmp_path, "db", "check", "--repair", "--dry-run", "--config-file", source)
    assert dry.returncode == ExitCode.INCONSISTENT
    assert "would repair 4 faults" in dry.stdout
    done = run_berth(tmp_path, "db", "check", "--repair", "--config-file", source)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    assert "repaired 4 faults" in done.stdout
    assert run_berth(tmp_path, "db", "check", "--config-file", source).returncode == ExitCode.OK


def test_a_dry_run_needs_something_to_say(tmp_path: Path) -> None:
    """--dry-run needs --repair."""
    done = run_berth(tmp_path, "db", "check", "--dry-run")
    assert done.returncode == ExitCode.USAGE
    assert "needs --repair" in done.stderr


def test_a_release_asks_first(tmp_path: Path) -> None:
    """Without confirmation nothing changes; --yes removes berth's tables. It names the drains that
    OpenStack Placement will not honour."""
    url, source = sound(tmp_path)
    db = opened_at(url)
    drain(db, "rack-7", [])
    drain(db, "announced", [], announced=True)
    db.dispose()
    command = ("db", "release", "--config-file", source)
    asked = run_berth(tmp_path, *command)
    assert asked.returncode == ExitCode.USAGE
    assert "--yes" in asked.stderr
    told = "OpenStack Placement has no drains, so it will use what these exclude: rack-7"
    assert f"berth: {told}\n" in asked.stderr
    run(url, "DELETE FROM berth_drains")
    busy = run_berth(tmp_path, *command, "--yes")
    assert_fails(busy, ExitCode.IN_USE, "berth wrote to the database")
    run(url, "UPDATE berth_writer SET updated_at = '2026-01-01 00:00:00'")
    done = run_berth(tmp_path, *command, "--yes")
    assert done.returncode == ExitCode.OK, done.stderr
    assert "berth_usages" in done.stdout
    version = run_berth(tmp_path, "db", "version", "--config-file", source)
    assert version.stdout == "a082b8bb98d0\n"
    again = run_berth(tmp_path, *command, "--yes")
    assert "no tables of berth's own in" in again.stdout


def test_a_release_names_the_leases_that_it_ends(tmp_path: Path) -> None:
    """It is refused without --yes while there is one, whatever the user would answer. The first to
    expire are named, and the rest are counted."""
    url, source = sound(tmp_path)
    database = opened_at(url)
    put_lease(database, consumer(12), 600)
    database.dispose()
    run(url, "UPDATE berth_writer SET updated_at = '2026-01-01 00:00:00'")
    command = ("db", "release", "--config-file", source)
    named = f"{consumer(12)} of project project 12 until "
    expected = ("1 lease will not be honoured", named, "`berth lease sweep`")
    assert_fails(run_berth(tmp_path, *command), ExitCode.USAGE, *expected)
    assert run_berth(tmp_path, "db", "check", "--config-file", source).returncode == ExitCode.OK
    done = run_berth(tmp_path, *command, "--yes")
    assert done.returncode == ExitCode.OK and "1 lease will not be honoured" in done.stderr
    assert named in done.stderr and "berth_leases" in done.stdout


def test_of_many_drains_and_leases_a_release_names_five_and_counts_the_rest(tmp_path: Path) -> None:
    """Leases by when they expire; one that has expired and is not swept counts, until it is."""
    url, source = sound(tmp_path)
    database = opened_at(url)
    names = [f"rack-{number}" for number in range(7)]
    for name in names:
        drain(database, name, [])
    claim(
        database,
        *(holding(number, {12: {"DISK_GB": 1}}, project="web") for number in range(30, 37)),
    )
    for number in range(30, 37):
        put_lease(database, consumer(number), 90_000 - 60 * number)
    database.dispose()
    run(
        url,
        f"UPDATE berth_leases SET expires_at = '2026-01-01 00:00:00.000000'"
        f" WHERE consumer_uuid = '{consumer(31)}'",
        "UPDATE berth_writer SET updated_at = '2026-01-01 00:00:00'",
    )
    command = ("db", "release", "--config-file", source)
    said = run_berth(tmp_path, *command).stderr
    assert f"these exclude: {', '.join(names[:5])}, and 2 more\n" in said
    of_project = "of project web until"
    first = f"7 leases will not be honoured, .*: {consumer(31)} {of_project} 2026-01-01 00:00 UTC"
    assert re.search(f"{first}, {consumer(36)} {of_project} .*, and 2 more", said)
    swept = run_berth(tmp_path, "lease", "sweep", "--config-file", source)
    assert swept.returncode == ExitCode.OK, swept.stderr
    assert "6 leases will not be honoured" in run_berth(tmp_path, *command).stderr


def test_an_upgrade_says_what_it_has_counted(tmp_path: Path) -> None:
    """Plain lines without a terminal."""
    url, source = sound(tmp_path)
    run(url, "UPDATE berth_alembic_version SET version_num = '0001'", "DELETE FROM berth_usages")
    done = run_berth(tmp_path, "db", "upgrade", "--config-file", source)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "counting usages: 24" in done.stderr
    assert run_berth(tmp_path, "db", "check", "--config-file", source).returncode == ExitCode.OK


def test_an_upgrade_that_is_interrupted_says_that_it_goes_on(tmp_path: Path) -> None:
    """Ctrl-C while it waits for the file's lock: one line, and the exit code."""
    url, source = sound(tmp_path)
    run(url, "UPDATE berth_alembic_version SET version_num = '0001'", "DELETE FROM berth_usages")
    with opened_at(url).engine.connect() as holder:
        holder.exec_driver_sql("ROLLBACK")
        holder.exec_driver_sql("BEGIN IMMEDIATE")
        process = subprocess.Popen(
            [*BERTH, "db", "upgrade", "--config-file", source],
            env=environment(tmp_path),
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background has them ignore Ctrl-C, and so would this.
            preexec_fn=heed_ctrl_c,
        )
        wait_until(lambda: has_open(process, tmp_path / "berth.db-wal"), "it has the file open")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert "run the same command again to continue" in said
    done = run_berth(tmp_path, "db", "upgrade", "--config-file", source)
    assert done.returncode == ExitCode.OK, done.stderr


def test_an_interrupt_ends_with_its_exit_code_wherever_it_struck(tmp_path: Path) -> None:
    """Also inside code that was compiled from a string, after which Python ends by the signal."""
    (tmp_path / "interrupted.py").write_text(
        "from berth.cli.main import cli, main\n"
        "cli.invoke = lambda context: exec('raise KeyboardInterrupt')\n"
        "main(['files'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr


def heed_ctrl_c() -> None:
    """Handle SIGINT as a process in a terminal does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def has_open(process: subprocess.Popen[str], path: Path) -> bool:
    """Whether a process has a file open."""
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if link.readlink() == path:
                return True
    return False


def test_a_new_identity_makes_revisions_foreign(tmp_path: Path) -> None:
    """The command says so; everything else stays."""
    url, source = sound(tmp_path)
    db = opened_at(url)
    index = Index(db)
    before = index.snapshot()
    done = run_berth(tmp_path, "db", "new-identity", "--config-file", source)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    assert "has a new identity" in done.stdout
    after = index.snapshot()
    with pytest.raises(RevisionForeign):
        after.clock.since(before.revision)
    assert after.clock.identity != before.clock.identity
    db.dispose()
    assert run_berth(tmp_path, "db", "check", "--config-file", source).returncode == ExitCode.OK


def test_there_must_be_a_database_to_give_an_identity(tmp_path: Path) -> None:
    """None is created."""
    source = on(tmp_path, f"sqlite:///{tmp_path}/none.db")
    done = run_berth(tmp_path, "db", "new-identity", "--config-file", source)
    assert_fails(done, ExitCode.SCHEMA, "there is no database", "berth db upgrade")
    assert not (tmp_path / "none.db").exists()
