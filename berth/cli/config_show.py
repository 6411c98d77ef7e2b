# SPDX-License-Identifier: Apache-2.0
"""`berth config show`: what every option is, and who said so."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from oslo_config import cfg
from oslo_config.cfg import Locations

from berth.cli.options import ConfigurationSource, configured
from berth.config import mask_url
from berth.config.options import register_known_opts

#: What stands in the place of a secret.
MASK: Final = "***"

#: Where a value comes from that somebody has chosen.
_CHOSEN: Final = (Locations.user, Locations.command_line, Locations.environment)


class Value(NamedTuple):
    """An option as it is in force."""

    group: str
    name: str
    #: Fit to be shown; None: it is not set, and has no default.
    value: str | None
    #: The file, or the variable of the environment, that says so; None: the default.
    source: str | None


@click.group()
def config() -> None:
    """Look at the configuration."""


@config.command()
@click.option("--set", "only_set", is_flag=True, help="Only what a file or the environment sets.")
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of options.")
@configured
def show(source: ConfigurationSource, only_set: bool, as_json: bool) -> None:
    """Print every option that has an effect, with its value and where that comes from.

    Passwords and other secrets are masked. What files set and nothing reads is named on stderr.
    """
    conf = source.load()
    options = register_known_opts(conf)
    values = [one for one in effective(conf, options) if one.source or not only_set]
    if as_json:
        click.echo(json.dumps([one._asdict() for one in values], indent=2))
    else:
        _print(values)
    for group, name, path in unknown(conf, options):
        click.echo(f"berth: [{group}]{name} in {path}: there is no such option", err=True)


def effective(conf: cfg.ConfigOpts, options: dict[tuple[str, str], cfg.Opt]) -> Iterator[Value]:
    """The options as they are in force, by group and name."""
    for (group, name), option in sorted(options.items()):
        of = None if group == "DEFAULT" else group
        found = conf.get_location(name, of)
        source = None
        if found is not None and found.location in _CHOSEN:
            source = found.detail or found.location.name
        holder = conf if of is None else conf[of]
        yield Value(
            group,
            name,
            _shown(option, getattr(holder, name)),
            source,
        )


def unknown(
    conf: cfg.ConfigOpts, options: dict[tuple[str, str], cfg.Opt]
) -> Iterator[tuple[str, str, str]]:
    """What files set that no option stands for: group, name, path."""
    known = {(group, name) for (group, _), one in options.items() for name in _names(one)}
    known |= {("DEFAULT", name) for name in ("config_file", "config_dir", "config_source")}
    for path in _files(conf):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        for group, found in sections.items():
            for name in found:
                if (group, name.replace("-", "_")) not in known:
                    yield group, name, path


def _shown(option: cfg.Opt, value: object) -> str | None:
    if value is None:
        return None
    if option.secret:
        is_url = option.dest.endswith("connection")
        return mask_url(str(value)) if is_url else MASK if value else ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def _names(option: cfg.Opt) -> Iterator[str]:
    """How an option may be called in its group."""
    yield option.dest
    yield option.name.replace("-", "_")
    for old in option.deprecated_opts:
        if old.name is not None:
            yield old.name.replace("-", "_")


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """The files that were read."""
    inside = [
        str(path)
        for folder in conf.config_dir or ()
        for path in sorted(Path(folder).glob("*.conf"))
    ]
    return [*(conf.config_file or ()), *inside]


def _print(values: Collection[Value]) -> None:
    """As a configuration file would have it, with the source behind."""
    group = None
    for one in values:
        if one.group != group:
            click.echo(f"{'' if group is None else chr(10)}[{one.group}]")
            group = one.group
        text = f"{one.name} = {one.value}" if one.value is not None else f"#{one.name} ="
        click.echo(f"{text:50}  # {one.source or 'default'}")
