# SPDX-License-Identifier: Apache-2.0
"""The one way in which commands print: a client's text cannot forge lines, colours or titles.

Only this module and those that draw on a terminal (`columns`, `tree_drawing`, `progress`) call
click or rich; tests/test_architecture.py checks that.
"""

import json
from typing import Any

import click

from berth.model.printable import printable, printable_json


def say(*lines: str, err: bool = False) -> None:
    """Print some lines; without any, an empty one. A line break within one is shown as an escape.

    Args:
        err: on standard error.
    """
    click.echo("\n".join(map(printable, lines)), err=err)


def say_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON."""
    click.echo(printable_json(json.dumps(value, indent=indent, ensure_ascii=False)))


def say_json_text(text: str) -> None:
    """Print JSON as a service sent it."""
    click.echo(printable_json(text.removesuffix("\n")))


def confirm(question: str) -> bool:
    """Ask a question on standard error; whether the answer is yes.

    Raises:
        click.Abort: there is no answer.
    """
    return click.confirm(printable(question), err=True)


def ask_password(prompt: str) -> str:
    """Ask for a password, twice, without showing it."""
    password: str = click.prompt(printable(prompt), hide_input=True, confirmation_prompt=True)
    return password
