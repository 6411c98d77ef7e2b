# SPDX-License-Identifier: Apache-2.0
"""The cost of a request besides its handler: every case is answered and measured."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bench.fixed_cost import main

ROOT = Path(__file__).parents[2]


def test_every_case_of_both_checkouts_is_measured() -> None:
    """A case that is not answered with its status ends the run."""
    result = CliRunner().invoke(main, ["--turns", "1", "--before", str(ROOT)])
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head.split() == ["microseconds", "a", "request", "before", "now"]
    costs = {line[:44].rstrip(): [float(cost) for cost in line[44:].split()] for line in lines}
    assert {"nothing", "GET /", "GET a provider", "404"} <= costs.keys()
    assert all(cost > 0 for of_case in costs.values() for cost in of_case)
