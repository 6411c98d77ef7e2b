# SPDX-License-Identifier: Apache-2.0
"""`berth completion`: what a shell reads to complete commands, options and what follows them."""

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


def driver_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The drivers that are installed and whose names begin so."""
    # Here, so that the completion of all else need not wait for it.
    from berth.hosts.drivers import driver_names as installed_names

    return [name for name in installed_names() if name.startswith(begun)]


def rule_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The rules of the policy that guard a route and whose names begin so."""
    # Here, so that the completion of all else need not wait for it.
    from berth.api.policy import ROUTE_RULES

    return [name for name, _, _, _ in ROUTE_RULES if name.startswith(begun)]
