# SPDX-License-Identifier: Apache-2.0
"""`berth config show`: the value of every option, and where it comes from."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from berth.cli.options import ConfigurationSource, configured
from berth.cli.output import say, say_json

if TYPE_CHECKING:
    from berth.cli.config_values import Value


@click.group()
def config() -> None:
    """Show the configuration."""


@config.command()
@click.option(
    "--set", "only_set", is_flag=True, help="Only options that a file or the environment sets."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@configured
def show(source: ConfigurationSource, only_set: bool, as_json: bool) -> None:
    """Print every option with its value and where the value comes from.

    Masks passwords and other secrets. Warns about options in your files that have no effect.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.config_values import effective
    from berth.config import check_values
    from berth.config.options import register_known_opts
    from berth.edge.unknown_options import unknown_options, without_keystone

    conf = source.load()
    check_values(conf)
    options = register_known_opts(conf)
    values = [value for value in effective(conf, options) if value.source or not only_set]
    if as_json:
        say_json([value._asdict() for value in values])
    else:
        _print(values)
    for sentence in (*without_keystone(conf), *unknown_options(conf)):
        say(f"berth: {sentence}", err=True)


def _print(values: Collection[Value]) -> None:
    """In the format of a configuration file, with the source in a comment."""
    group = None
    for option in values:
        if option.group != group:
            say(*([] if group is None else [""]), f"[{option.group}]")
            group = option.group
        is_set = option.value is not None
        text = f"{option.name} = {option.value}" if is_set else f"#{option.name} ="
        say(f"{text:50}  # {option.source or 'default'}")
