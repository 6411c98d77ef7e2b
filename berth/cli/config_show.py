# SPDX-License-Identifier: Apache-2.0
"""`berth config show`: what every option is, and who said so."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from berth.cli.options import ConfigurationSource, configured

if TYPE_CHECKING:
    from berth.cli.config_values import Value


@click.group()
def config() -> None:
    """Show the configuration."""


@config.command()
@click.option(
    "--set", "only_set", is_flag=True, help="Only options set by a file or the environment."
)
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of options.")
@configured
def show(source: ConfigurationSource, only_set: bool, as_json: bool) -> None:
    """Print every option that has an effect, with its value and the source of the value.

    Masks passwords and other secrets. Names on stderr the options of your files that berth does not
    know.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.config_values import effective, unknown
    from berth.config.options import register_known_opts

    conf = source.load()
    options = register_known_opts(conf)
    values = [one for one in effective(conf, options) if one.source or not only_set]
    if as_json:
        click.echo(json.dumps([one._asdict() for one in values], indent=2))
    else:
        _print(values)
    for group, name, path in unknown(conf, options):
        click.echo(f"berth: [{group}]{name} in {path}: there is no such option", err=True)


def _print(values: Collection[Value]) -> None:
    """As a configuration file would have it, with the source behind."""
    group = None
    for one in values:
        if one.group != group:
            click.echo(f"{'' if group is None else chr(10)}[{one.group}]")
            group = one.group
        text = f"{one.name} = {one.value}" if one.value is not None else f"#{one.name} ="
        click.echo(f"{text:50}  # {one.source or 'default'}")
