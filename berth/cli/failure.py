# SPDX-License-Identifier: Apache-2.0
"""How a command says that it failed."""

from typing import IO, Any

import click

from berth.cli.exit_codes import ExitCode


class CommandFailed(click.ClickException):
    """A command cannot do what it was asked to: one sentence for people, one code for scripts."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = int(code)

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the sentence to stderr."""
        click.echo(f"berth: {self.format_message()}", file=file, err=True)
