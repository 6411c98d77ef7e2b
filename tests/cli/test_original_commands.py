# SPDX-License-Identifier: Apache-2.0
"""`placement-manage` and `placement-status`, as deployment tools call them.

What they print here, the original's print too, word for word, but for the texts of failures.
"""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from berth.cli import placement_manage, placement_status
from berth.upkeep import schema
from tests.cli.test_commands import HEAD
from tests.e2e.serving import PATIENCE, environment
from tests.e2e.warm import run_warm
from tests.fresh import opened_at

ALL_WELL = """\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
"""


#: By their names, which packaging gives them (tests/packaging/test_distributions.py).
PROGRAMS = {"placement-manage": placement_manage.main, "placement-status": placement_status.main}


def run(
    folder: Path, program: str, *arguments: str, configured: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one of the two commands; the environment names the database in the folder."""
    url = f"sqlite:///{folder}/placement.db"
    told = {"OS_PLACEMENT_DATABASE__CONNECTION": url} if configured else {}
    return run_warm(
        PROGRAMS[program],
        arguments,
        folder=folder,
        variables=environment(folder, **told),
        timeout=PATIENCE,
    )


def manage(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `placement-manage`, and return its exit code and output."""
    done = run(folder, "placement-manage", *arguments)
    return done.returncode, done.stdout


def check(folder: Path) -> tuple[int, str]:
    """Run `placement-status upgrade check`, and return its exit code and output."""
    done = run(folder, "placement-status", "upgrade", "check")
    return done.returncode, done.stdout


def execute(folder: Path, *statements: str) -> None:
    """Run statements on the folder's database."""
    with closing(sqlite3.connect(folder / "placement.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def forget(folder: Path, *, roots: int = 0, consumers: int = 0) -> None:
    """Add rows of old releases: providers without roots, consumers without records."""
    provider = "INSERT INTO resource_providers (uuid, name, generation) VALUES ('{0}', '{0}', 0)"
    held = (
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        "VALUES (1, 'c{0}', {1}, 1)"
    )
    execute(
        folder,
        *(provider.format(number) for number in range(roots)),
        *(held.format(number, of) for number in range(consumers) for of in (0, 1)),
    )


def table(*rows: tuple[str, int]) -> str:
    """The table of `online_data_migrations`: migrated rows by migration."""
    width = max(len(name) for name, _ in rows)
    line = f"+-{'-' * width}-+-------------+-----------+\n"
    head = f"| {'Migration'.center(width)} | Total Found | Completed |\n"
    body = "".join(
        f"| {name.center(width)} | {str(count).center(11)} | {str(count).center(9)} |\n"
        for name, count in rows
    )
    return f"{line}{head}{line}{body}{line}"


def test_a_database_is_made_and_can_be_served(tmp_path: Path) -> None:
    """Without output, repeatable; the version is that of Placement's tables."""
    assert manage(tmp_path, "db", "version") == (0, "None\n")
    for _ in range(2):
        assert manage(tmp_path, "db", "sync") == (0, "")
    assert manage(tmp_path, "db", "version") == (0, f"{HEAD}\n")
    assert check(tmp_path) == (0, ALL_WELL)
    db = opened_at(f"sqlite:///{tmp_path}/placement.db")
    assert schema.is_current(db) and schema.check(db) == []
    db.dispose()


def test_data_is_migrated_in_batches(tmp_path: Path) -> None:
    """Batches of 50 rows until none are left; the check reports it before, and not after."""
    manage(tmp_path, "db", "sync")
    forget(tmp_path, roots=60, consumers=3)
    code, said = check(tmp_path)
    assert code == 2
    assert "60 resource provider(s) have no root" in said
    assert "3 consumer(s) have allocations" in said
    assert manage(tmp_path, "db", "online_data_migrations") == (
        0,
        "Running batches of 50 until complete\n"
        "50 rows matched query set_root_provider_ids, 50 migrated\n"
        "10 rows matched query set_root_provider_ids, 10 migrated\n"
        "3 rows matched query create_incomplete_consumers, 3 migrated\n"
        + table(("set_root_provider_ids", 60), ("create_incomplete_consumers", 3)),
    )
    assert check(tmp_path) == (0, ALL_WELL)


def test_a_count_bounds_one_batch_of_all_migrations(tmp_path: Path) -> None:
    """The exit code says whether to call again; migrations that did not run are not listed."""
    manage(tmp_path, "db", "sync")
    forget(tmp_path, roots=6, consumers=3)
    migrate = ("db", "online_data_migrations", "--max-count")
    assert manage(tmp_path, *migrate, "6") == (
        1,
        "6 rows matched query set_root_provider_ids, 6 migrated\n"
        + table(("set_root_provider_ids", 6)),
    )
    assert check(tmp_path)[0] == 1, "only consumers are left: a warning"
    assert manage(tmp_path, *migrate, "6") == (
        1,
        "3 rows matched query create_incomplete_consumers, 3 migrated\n"
        + table(("set_root_provider_ids", 0), ("create_incomplete_consumers", 3)),
    )
    nothing = table(("set_root_provider_ids", 0), ("create_incomplete_consumers", 0))
    assert manage(tmp_path, *migrate, "6") == (0, nothing)


@pytest.mark.parametrize("count", ["0", "x", "1.5"])
def test_a_count_is_a_positive_number(tmp_path: Path, count: str) -> None:
    """Anything else changes nothing."""
    manage(tmp_path, "db", "sync")
    code, said = manage(tmp_path, "db", "online_data_migrations", "--max-count", count)
    assert (code, said) == (127, "Must supply a positive value for max_count\n")


def test_tables_from_before_the_versions_are_stamped(tmp_path: Path) -> None:
    """A stamped database can be upgraded; an unknown revision changes nothing."""
    manage(tmp_path, "db", "sync")
    execute(tmp_path, "DROP TABLE alembic_version", "DROP TABLE berth_alembic_version")
    refused = run(tmp_path, "placement-manage", "db", "sync")
    assert refused.returncode == 1
    assert "placement-manage db stamp b4ed3a175331" in refused.stderr
    wrong = run(tmp_path, "placement-manage", "db", "stamp", "nonsense")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("placement-manage: there is no revision nonsense: it is one of")
    assert manage(tmp_path, "db", "version") == (0, "None\n")
    assert manage(tmp_path, "db", "stamp", HEAD) == (0, "")
    assert manage(tmp_path, "db", "version") == (0, f"{HEAD}\n")


@pytest.mark.parametrize(
    ("program", "arguments", "code"),
    [
        ("placement-manage", [], 1),
        ("placement-manage", ["db"], 0),
        ("placement-manage", ["-h"], 0),
        ("placement-manage", ["db", "nonsense"], 2),
        ("placement-manage", ["db", "stamp"], 2),
        ("placement-status", [], 2),
        ("placement-status", ["upgrade"], 2),
        ("placement-status", ["upgrade", "check"], 255),
    ],
)
def test_how_it_ends_without_anything_to_do(
    tmp_path: Path, program: str, arguments: list[str], code: int
) -> None:
    """Help, a wrong command line, a missing database."""
    done = run(tmp_path, program, *arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "placement.db").exists()


@pytest.mark.parametrize(("program", "code"), [("placement-manage", 1), ("placement-status", 255)])
def test_a_configuration_without_a_database(tmp_path: Path, program: str, code: int) -> None:
    """One line, and what to do."""
    done = run(tmp_path, program, *_ANY[program], configured=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"{program}: no database is configured: set [placement_database]")
    assert done.stderr.count("\n") == 1


_ANY = {"placement-manage": ["db", "version"], "placement-status": ["upgrade", "check"]}


def test_a_json_policy_file_is_a_failure(tmp_path: Path) -> None:
    """It still works, but newer releases of oslo.policy will not read it."""
    manage(tmp_path, "db", "sync")
    (tmp_path / "policy.json").write_text("{}")
    conf = tmp_path / "any.conf"
    conf.write_text(f"[oslo_policy]\npolicy_file = {tmp_path}/policy.json\n")
    done = run(tmp_path, "placement-status", "--config-file", str(conf), "upgrade", "check")
    assert done.returncode == 2
    assert "Your policy file is JSON-formatted" in done.stdout
