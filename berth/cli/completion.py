# SPDX-License-Identifier: Apache-2.0
"""`berth completion`: shell completion of commands, options and their values."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from berth.cli.output import say

PROGRAM: Final = "berth"

#: The environment variable with which a shell asks for completions.
COMPLETION: Final = "_BERTH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    For bash, add to ~/.bashrc: eval "$(berth completion bash)"
    """
    script = get_completion_class(shell)
    assert script is not None, "click supports all three"
    say(*script(context.find_root().command, {}, PROGRAM, COMPLETION).source().split("\n"))
