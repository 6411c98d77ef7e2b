# SPDX-License-Identifier: Apache-2.0
"""Commands whose modules are imported only when they are called.

Until then `berth --help` and completion use a name and a summary, so that each command imports what
it needs and not what the others need. The work of a command may have a module of its own, so that
its help does not need that module either.
"""

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword

import click


@contextmanager
def importing() -> Iterator[None]:
    """Import without garbage collection, which finds nothing among modules.

    What is imported is exempt from later collections too. The imports of `berth serve` take a
    fifth less time so, and the pages of a worker stay shared with its parent.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Deferred(click.Command):
    """A placeholder for the command of the same name in a module."""

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
        """Import the command that is called."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and loaded(command), rest


def work_in(module: str) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Let the function of the same name in a module below `berth.cli` do the work of a command.

    The function that is decorated has the command's help, and the decorators its options.
    """

    def decorate(command: Callable[[], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def work(*arguments: object, **options: object) -> None:
            with importing():
                imported = import_module(f"berth.cli.{module}")
            getattr(imported, command.__name__)(*arguments, **options)

        return work

    return decorate


def loaded(command: click.Command) -> click.Command:
    """The command itself, imported if this is a placeholder."""
    if not isinstance(command, Deferred):
        return command
    with importing():
        module = import_module(command.module)
    name = str(command.name).replace("-", "_")
    actual: click.Command = getattr(module, f"{name}_" if iskeyword(name) else name)
    return actual
