# SPDX-License-Identifier: Apache-2.0
"""Tables for people: columns as wide as their longest cell, cut to the width of a terminal.

In a pipe or a file, nothing is cut and nothing is coloured.
"""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

from berth.cli.output import say
from berth.model.printable import printable


def print_columns(
    heads: Sequence[str],
    rows: Collection[Sequence[str]],
    *,
    right: Collection[str] = (),
    indent: int = 0,
) -> None:
    """Print rows of text below their headings.

    Args:
        right: the headings of the columns of numbers.
        indent: blanks in front of each line.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [
            cell.rjust(width) if head in right else cell.ljust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        print_line(" " * indent + "  ".join(cells).rstrip(), is_bold=row is heads)


def print_list(
    heads: Sequence[str],
    rows: Collection[Sequence[str]],
    noun: str,
    plural: str | None = None,
    *,
    right: Collection[str] = (),
) -> None:
    """Print rows below their headings, if there are any, and how many there are."""
    if rows:
        print_columns(heads, rows, right=right)
    say(counted(len(rows), noun, plural))


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair a line; values are never cut."""
    pairs = [(name, printable(value)) for name, value in fields]
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        head = name.ljust(width)
        click.echo(f"{click.style(head, bold=True) if has_colours() else head}  {value}".rstrip())


def print_line(line: str, *, is_bold: bool = False) -> None:
    """Print a line, cut to the width of the terminal if there is one."""
    line = printable(line)
    cut = cut_to(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line
    click.echo(click.style(cut, bold=True) if is_bold and has_colours() else cut)


def cut_to(line: str, width: int) -> str:
    """A line, or its beginning and an ellipsis, in a limited number of columns."""
    return line if len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def has_colours() -> bool:
    """Whether standard output is a terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def amount(number: float) -> str:
    """A number for people, with separators of thousands."""
    return f"{number:,}"


def amounts(resources: Mapping[str, int]) -> str:
    """Amounts by resource class in a line, such as `VCPU 8, MEMORY_MB 16,384`."""
    return ", ".join(f"{name} {amount(number)}" for name, number in resources.items())


def request_in_words(request: Mapping[str, Any]) -> str:
    """What a request asks for, without its conditions; a query as it is."""
    if "query" in request:
        return str(request["query"])
    groups = (
        f"{name}: {_amounts_of_group(group)}" if name else _amounts_of_group(group)
        for name, group in request.get("groups", {}).items()
    )
    return "; ".join(groups) or "-"


def _amounts_of_group(group: Mapping[str, Any]) -> str:
    return amounts(group.get("resources", {})) or "no resources"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, such as `1 host` or `1,200 hosts`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


# --- Times ----------------------------------------------------------------------------------------

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def utc_time(moment: datetime) -> str:
    """A time, such as `14:32 UTC`; with its date if that is not today's."""
    moment = moment.astimezone(UTC)
    is_today = moment.date() == datetime.now(UTC).date()
    return f"{moment:%H:%M} UTC" if is_today else f"{moment:%Y-%m-%d %H:%M} UTC"


def time_left(seconds: int) -> str:
    """A number of seconds in its two largest units, such as `9m 30s`."""
    parts = []
    for unit, length in _UNITS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
