# SPDX-License-Identifier: Apache-2.0
"""The line about engines, and what makes a missing engine a failure."""

from __future__ import annotations

from tests.engines import ENGINES, engines_tested, missing, report


def test_the_report_names_every_engine() -> None:
    """Tested or skipped, each engine is in the line, and skipped ones with a reason."""
    line = report()
    for name, reason in ENGINES.items():
        assert name in line
        assert reason is None or reason in line


def test_an_engine_that_must_be_tested_and_is_not_is_a_failure() -> None:
    """`BERTH_REQUIRE_ENGINES` is how a CI says what it relies on."""
    assert missing(engines_tested()) == []
    assert missing(["galera"]) == [
        "BERTH_REQUIRE_ENGINES names galera: not yet supported by this release"
    ]
    assert missing(["oracle"]) == ["BERTH_REQUIRE_ENGINES names oracle: no such engine"]
