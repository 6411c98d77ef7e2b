# SPDX-License-Identifier: Apache-2.0
"""`berth completion`: what a shell has to read to complete berth's commands and options."""

from typing import Final

import click
from click.shell_completion import get_completion_class

PROGRAM: Final = "berth"

#: The variable of the environment in which a shell asks.
COMPLETION: Final = "_BERTH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, in ~/.bashrc: eval "$(berth completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three"
    click.echo(kind(context.find_root().command, {}, PROGRAM, COMPLETION).source())
