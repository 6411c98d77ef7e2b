# SPDX-License-Identifier: Apache-2.0
"""The value of every option, and where it comes from: the work of `berth config show`."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from oslo_config import cfg
from oslo_config.cfg import Locations

from berth.config import mask_url, read_option

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
