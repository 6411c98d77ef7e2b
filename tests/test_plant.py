# SPDX-License-Identifier: Apache-2.0
"""Planted faults: each applies, and what finds one is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.serving import wait_until
from tests.servers.family import family_of
from tools.plant import FAULTS, ROOT, Fault, find, read_faults, why_not

MODULE = """\
def fits(free, wanted):
    if free >= wanted:
        return True
    return False


def free(total, used):
    return total - used
"""

TESTS = """\
from module import fits


def test_an_exact_amount_fits():
    assert fits(4, 4)


def test_what_is_used_is_not_free():
    import module
    assert module.free(4, 4) == 0
"""

#: What the tests of berth have and these do not.
OPTIONS = """\
def pytest_addoption(parser):
    parser.addoption("--engines")
"""


def fault(old: str, new: str, *tests: str, equivalent: str = "") -> Fault:
    """A fault of the small module."""
    return Fault("one", "module.py", "It is wrong.", old, new, tests, equivalent)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a module and its tests."""
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "test_module.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(OPTIONS)
    return tmp_path


def test_every_fault_applies() -> None:
    """What changes a line changes its faults, too."""
    faults = read_faults(ROOT / FAULTS)
    assert {fault.id: why for fault in faults if (why := why_not(fault, ROOT))} == {}
    assert len([fault for fault in faults if not fault.equivalent]) >= 400


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (fault("free <= wanted", ""), "module.py has its text 0 times, not once"),
        (fault("return", "yield"), "module.py has its text 3 times, not once"),
        (fault("return True\nreturn", ""), "module.py has its lines 0 times, not once"),
        (
            fault("total - used", "total -"),
            "with the fault planted, module.py is not valid Python (line 8)",
        ),
        (fault("total - used", "total"), "no test is named for it"),
        (fault("total - used", "total", "test_nothing.py"), "there is no test_nothing.py"),
        (fault("total - used", "total", "test_module.py::test_a"), "test_module.py has no test_a"),
        (fault("total - used", "total", equivalent="nobody asks"), ""),
    ],
)
def test_a_fault_that_does_not_apply_is_told(changed: Fault, reason: str, checkout: Path) -> None:
    """Its text or its tests are gone."""
    assert why_not(changed, checkout) == reason


@pytest.mark.parametrize(
    ("planted", "found_by", "by_named"),
    [
        (
            fault(">=", ">", "test_module.py::test_an_exact_amount_fits"),
            "test_module.py::test_an_exact_amount_fits",
            True,
        ),
        (
            fault("total - used", "total", "test_module.py::test_an_exact_amount_fits"),
            "test_module.py::test_what_is_used_is_not_free",
            False,
        ),
        (fault("return False", "return None", "test_module.py"), "", False),
    ],
)
def test_the_test_that_finds_a_fault_is_told(
    planted: Fault, found_by: str, by_named: bool, checkout: Path
) -> None:
    """First the tests that are named for it, then all; and the file is as it was."""
    outcome = find(planted, checkout, named_only=False, jobs=1)
    assert (outcome.found_by, outcome.by_named) == (found_by, by_named)
    assert (checkout / "module.py").read_text() == MODULE


def test_a_run_that_is_interrupted_leaves_no_copy(tmp_path: Path) -> None:
    """While tests run: they are ended, the copies of the checkout are removed, and one word says
    it."""
    run = subprocess.Popen(
        [sys.executable, "tools/plant.py", "--jobs", "2", "--sample", "2"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with run:
        wait_until(lambda: any(tmp_path.glob("berth-plant-*/1/tests")), "the copies")
        wait_until(lambda: len(family_of(run.pid)) > 2, "the tests to begin")
        run.send_signal(signal.SIGTERM)
        assert run.stderr is not None
        assert run.stderr.read() == "interrupted\n"
        assert run.wait(60) == 1
    assert list(tmp_path.glob("berth-plant-*")) == []
