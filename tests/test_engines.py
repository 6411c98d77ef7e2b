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

#: A test that runs on every engine, in a project that has only this plugin.
_ON_EVERY_ENGINE = """
import pytest

def test_one(engine):
    assert engine

@pytest.mark.engines("mariadb")
def test_two(engine):
    assert engine == "mariadb"
"""


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
