# SPDX-License-Identifier: Apache-2.0
"""The work of `berth config show`: the value of every option, and where it comes from."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from oslo_config import cfg
from oslo_config.cfg import Locations

from berth.cli.output import say, say_json
from berth.cli.sources import ConfigurationSource
from berth.config import check_values, mask_url, read_option
from berth.config.options import register_known_opts
from berth.edge.unknown_options import unknown_options, without_keystone

#: Printed instead of a secret.
MASK: Final = "***"

#: Sources of values other than defaults.
_EXPLICIT: Final = (Locations.user, Locations.command_line, Locations.environment)


class Value(NamedTuple):
    """An option and its effective value."""

    group: str
    name: str
    #: Secrets are masked. None: not set, and without a default.
    value: str | None
    #: The file or environment variable that sets it; None: the default.
    source: str | None


def print_options(source: ConfigurationSource, *, only_set: bool, as_json: bool) -> None:
    """Print the value and the source of every option, and warn about those without effect.

    Raises:
        ConfigurationError: a file cannot be read, or a value is wrong.
    """
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


def effective(conf: cfg.ConfigOpts, options: dict[tuple[str, str], cfg.Opt]) -> Iterator[Value]:
    """The effective value of every option, sorted by group and name.

    Raises:
        ConfigurationError: a value has the wrong type or is out of range.
    """
    for (group, name), option in sorted(options.items()):
        value = read_option(conf, group, option)
        location = conf.get_location(name, None if group == "DEFAULT" else group)
        source = None
        if location is not None and location.location in _EXPLICIT:
            source = location.detail or location.location.name
        yield Value(group, name, _shown(option, value), source)


def _shown(option: cfg.Opt, value: object) -> str | None:
    if value is None:
        return None
    if option.secret:
        is_url = option.dest.endswith("connection")
        return mask_url(str(value)) if is_url else MASK if value else ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
