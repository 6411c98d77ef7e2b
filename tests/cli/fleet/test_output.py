# SPDX-License-Identifier: Apache-2.0
"""Tables: cut and emphasised on a terminal, and neither in a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.cli.columns import cut_to, print_columns
from tests.cli.fleet.ways import BothWays
from tests.cli.test_terminal import ESCAPE, WIDTH, on_a_terminal

LONG = "a-provider-with-a-name-as-long-as-it-takes-to-be-cut"
PROVIDER = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def listed(berth: BothWays, ways: tuple[str, Path]) -> tuple[str, ...]:
    """The options of a list with a long name."""
    if LONG not in berth.ok("provider", "list").stdout:
        berth.ok("provider", "create", LONG, "--uuid", PROVIDER)
    return ("provider", "list", "--config-file", str(ways[1]))


def test_a_table_is_cut_to_the_terminal(tmp_path: Path, listed: tuple[str, ...]) -> None:
    """With an ellipsis; the headings are bold."""
    shown = on_a_terminal(tmp_path, *listed)
    assert ESCAPE.search(shown)
    named, *lines = ESCAPE.sub("", shown).splitlines()
    assert named.startswith("Database: ")
    assert max(map(len, lines)) == WIDTH
    assert lines[1].startswith(LONG) and lines[1].endswith("…")


def test_no_color_leaves_no_escape(tmp_path: Path, listed: tuple[str, ...]) -> None:
    """The table is still cut."""
    shown = on_a_terminal(tmp_path, *listed, NO_COLOR="1")
    assert not ESCAPE.search(shown)
    assert max(map(len, shown.splitlines()[1:])) == WIDTH


def test_a_pipe_gets_whole_lines(berth: BothWays, listed: tuple[str, ...]) -> None:
    """Without escapes."""
    shown = berth.ok("provider", "list").stdout
    assert not ESCAPE.search(shown)
    assert PROVIDER in shown and "…" not in shown


def test_numbers_are_aligned_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    """And text on the left, without blanks at the end."""
    print_columns(("NAME", "USED"), [("a", "1"), ("long-name", "1,000")], right=["USED"], indent=1)
    assert capsys.readouterr().out.splitlines() == [
        " NAME        USED",
        " a              1",
        " long-name  1,000",
    ]


@pytest.mark.parametrize(("width", "cut"), [(5, "abcde"), (4, "abc…"), (1, "…"), (0, "…")])
def test_a_cut_ends_with_an_ellipsis(width: int, cut: str) -> None:
    """If it is one."""
    assert cut_to("abcde", width) == cut
