# SPDX-License-Identifier: Apache-2.0
"""What every option of a configuration is, and who said so: the work of `berth config show`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from oslo_config import cfg
from oslo_config.cfg import Locations

from berth.config import mask_url

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
