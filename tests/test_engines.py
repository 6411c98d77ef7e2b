# SPDX-License-Identifier: Apache-2.0
"""The line about engines, what makes a missing engine a failure, and who runs on which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import engines
from tests.e2e.serving import PATIENCE, environment
from tests.engines import ENGINES, missing, report

#: A test that runs on every engine, in a project that has only this plugin.
_ON_EVERY_ENGINE = """
import pytest

def test_one(engine):
    assert engine

@pytest.mark.engines("mariadb")
def test_two(engine):
    assert engine == "mariadb"
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has SQLite and PostgreSQL, of which the tests have used both."""
    monkeypatch.setitem(ENGINES, "sqlite", None)
    monkeypatch.setitem(ENGINES, "postgresql", None)
    monkeypatch.setitem(ENGINES, "mariadb", "no `mariadbd` binary found")
    monkeypatch.setitem(ENGINES, "galera", "no `mariadbd` binary found")
    monkeypatch.setattr(engines, "used", {"sqlite", "postgresql"})


@pytest.mark.usefixtures("here")
def test_the_report_names_every_engine() -> None:
    """Tested or skipped, each engine is in the line, and skipped ones with a reason."""
    assert report() == (
        "engines tested: sqlite, postgresql; skipped: mariadb, galera (no `mariadbd` binary found)"
    )


@pytest.mark.usefixtures("here")
def test_an_engine_that_no_test_asked_for_is_not_called_tested() -> None:
    """Its server may be there, but nothing was shown of it."""
    engines.used.discard("postgresql")
    assert report().startswith(
        "engines tested: sqlite; skipped: postgresql (no test of this run asked for it); "
    )


@pytest.mark.usefixtures("here")
def test_an_engine_that_must_be_tested_and_cannot_be_is_a_failure() -> None:
    """`BERTH_REQUIRE_ENGINES` is how a CI says what it relies on."""
    assert missing(["sqlite", "postgresql"]) == []
    assert missing(["galera"]) == ["BERTH_REQUIRE_ENGINES names galera: no `mariadbd` binary found"]
    assert missing(["oracle"]) == ["BERTH_REQUIRE_ENGINES names oracle: no such engine"]


@pytest.mark.parametrize(
    ("options", "required", "said"),
    [
        ([], "oracle", "names oracle: no such engine"),
        (["--engines", "sqlite"], "sqlite,galera", "names galera: not among --engines"),
        (["--engines", "sqlite,oracle"], "", "--engines names oracle: no such engine"),
    ],
)
def test_a_run_that_cannot_keep_its_word_does_not_begin(
    options: list[str], required: str, said: str, tmp_path: Path
) -> None:
    """An engine that is required and left out, or not known, ends it before its first test."""
    run = _pytest(tmp_path, *options, required=required)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in run.stderr
    assert "passed" not in run.stdout


def test_a_test_runs_once_for_each_engine_that_it_is_for(tmp_path: Path) -> None:
    """And not at all, with the reason, where there is none of them."""
    run = _pytest(tmp_path, "--engines", "sqlite", "-v", "-rs")
    assert "test_one[sqlite] PASSED" in run.stdout
    assert "test_one[postgresql]" not in run.stdout
    assert "1 passed, 1 skipped" in run.stdout
    assert "mariadb: not among --engines\n" in run.stdout
    assert "skipped: postgresql, mariadb, galera (not among --engines)" in run.stdout


def _pytest(project: Path, *options: str, required: str = "") -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin alone over two tests that ask for an engine."""
    (project / "test_project.py").write_text(_ON_EVERY_ENGINE)
    command = [sys.executable, "-m", "pytest", "-p", "tests.engines", *options, str(project)]
    variables = {engines.REQUIRE: required, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, f"--rootdir={project}", "-c", os.devnull],
        cwd=Path(__file__).parent.parent,
        env=environment(project, **variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
