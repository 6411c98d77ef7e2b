# SPDX-License-Identifier: Apache-2.0
"""Commands that are imported when they are called: until then a name and a summary stand for them.

`berth --help` and the completion of a command's name need no more, and each command waits for what
it needs itself, not for what all the others do.
"""

from importlib import import_module

import click


class Deferred(click.Command):
    """Stands for the command of the same name in a module."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        """The summary is the first paragraph of the command's own help."""
        super().__init__(name, help=summary)
        self.module = module


class DeferringGroup(click.Group):
    """A group that may have deferred commands."""

    def defer(self, *commands: tuple[str, str, str]) -> None:
        """Add commands: the name of each, its module below `berth.cli`, and its summary."""
        for name, module, summary in commands:
            self.add_command(Deferred(name, f"berth.cli.{module}", summary))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, imported by now, and what is for it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and loaded(command), rest


def loaded(command: click.Command) -> click.Command:
    """The command itself, where another stands for it."""
    if not isinstance(command, Deferred):
        return command
    itself: click.Command = getattr(
        import_module(command.module), str(command.name).replace("-", "_")
    )
    return itself
