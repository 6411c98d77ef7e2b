# SPDX-License-Identifier: Apache-2.0
"""The value of every option, and where it comes from: the work of `berth config show`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from oslo_config import cfg
from oslo_config.cfg import Locations

from berth.config import mask_url, read_option
from berth.config.options import KEYSTONE_GROUP

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


def without_effect(conf: cfg.ConfigOpts, options: dict[tuple[str, str], cfg.Opt]) -> Iterator[str]:
    """A sentence for each option in files that berth does not know, or that it does not read."""
    recognised = {
        (group, name) for (group, _), option in options.items() for name in _names(option)
    }
    recognised |= {("DEFAULT", name) for name in ("config_file", "config_dir", "config_source")}
    uses_keystone = conf.api.auth_strategy == "keystone"
    for path in _files(conf):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        for group, options_in_file in sections.items():
            if group == KEYSTONE_GROUP and not uses_keystone:
                yield f"[{group}] in {path} has no effect: [api]auth_strategy is not keystone"
                continue
            for name in options_in_file:
                if (group, name.replace("-", "_")) not in recognised:
                    yield f"unknown option [{group}]{name} in {path}"


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
    """The names that an option may have in its group."""
    yield option.dest
    yield option.name.replace("-", "_")
    for deprecated in option.deprecated_opts:
        if deprecated.name is not None:
            yield deprecated.name.replace("-", "_")


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """The configuration files, including those in directories."""
    in_dirs = [
        str(path)
        for directory in conf.config_dir or ()
        for path in sorted(Path(directory).glob("*.conf"))
    ]
    return [*(conf.config_file or ()), *in_dirs]
