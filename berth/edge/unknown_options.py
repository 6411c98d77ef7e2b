# SPDX-License-Identifier: Apache-2.0
"""Options and sections that files or the environment set, and that nothing reads.

oslo.config ignores them, so a misspelled option silently keeps its default. Sections of libraries
that OpenStack Placement's file may have and berth does not need are no mistake.
"""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg

from berth.config import configuration_files
from berth.config.options import KEYSTONE_GROUP, register_known_opts

#: Sections of the libraries around OpenStack Placement, which have no effect on berth.
_OF_LIBRARIES: Final = frozenset(
    {
        *("database", "keystone", "oslo_concurrency", "oslo_limit", "oslo_messaging_amqp"),
        *("oslo_messaging_kafka", "oslo_messaging_metrics", "oslo_messaging_notifications"),
        *("oslo_messaging_rabbit", "oslo_middleware_tracing", "oslo_reports", "ssl"),
        *("oslo_versionedobjects", "profiler", "profiler_jaeger", "profiler_otlp"),
    }
)

#: Options of other releases of OpenStack Placement and its libraries, which berth ignores.
_IGNORED: Final[Mapping[str, tuple[str, ...]]] = {
    "DEFAULT": ("bindir", "config_file", "config_dir", "config_source"),
    "placement": ("policy_file",),
    "placement_database": (
        *("backend", "db_inc_retry_interval", "db_max_retries", "db_max_retry_interval"),
        *("db_retry_interval", "idle_timeout", "min_pool_size", "mysql_enable_ndb"),
        *("mysql_wsrep_sync_wait", "use_db_reconnect"),
    ),
    "oslo_middleware": (
        *("http_basic_auth_user_file", "max_request_body_size", "secure_proxy_ssl_header"),
    ),
}

#: The form of a variable that oslo.config reads: OS_<GROUP>__<OPTION>.
_PREFIX: Final = "OS_"
_SEPARATOR: Final = "__"

#: The names that an option may have, by group.
_Names = Mapping[str, set[str]]


def unknown_options(
    conf: cfg.ConfigOpts, environment: Mapping[str, str] = os.environ
) -> Iterator[str]:
    """A sentence for each option and section that nothing reads, with the nearest name.

    It registers every option that can have an effect: Keystone's too, if berth uses that.
    """
    recognised = _recognised(conf)
    for path, sections in _sections(conf):
        for group, options in sections.items():
            if group in _OF_LIBRARIES or _is_of_keystone(conf, group):
                continue
            if group not in recognised:
                yield f"unknown section [{group}] in {path}{_nearest_group(group, recognised)}"
                continue
            for name in options:
                yield from _unknown(group, name, path, recognised)
    for variable in sorted(environment):
        group, separator, name = variable.removeprefix(_PREFIX).lower().partition(_SEPARATOR)
        group = "DEFAULT" if group == "default" else group
        if not (variable.startswith(_PREFIX) and separator) or group == KEYSTONE_GROUP:
            continue
        place = f"the variable {variable}"
        if group in recognised:
            yield from _unknown(group, name, place, recognised)
        # Other programs read variables of this form, too.
        elif nearest := _nearest_group(group, recognised):
            yield f"unknown section [{group}] in {place}{nearest}"


def without_keystone(conf: cfg.ConfigOpts) -> Iterator[str]:
    """A sentence for each file that configures Keystone, if berth does not use it."""
    if conf.api.auth_strategy == "keystone":
        return
    for path, sections in _sections(conf):
        if KEYSTONE_GROUP in sections:
            yield (
                f"[{KEYSTONE_GROUP}] in {path} has no effect: [api]auth_strategy is not keystone"
            )


def _recognised(conf: cfg.ConfigOpts) -> _Names:
    names: dict[str, set[str]] = defaultdict(set)
    for (group, _), option in register_known_opts(conf).items():
        names[group] |= {option.dest, option.name.replace("-", "_")}
        for deprecated in option.deprecated_opts:
            name = deprecated.name or option.dest
            names[deprecated.group or group].add(name.replace("-", "_"))
    for group, ignored in _IGNORED.items():
        names[group].update(ignored)
    return dict(names)


def _is_of_keystone(conf: cfg.ConfigOpts, group: str) -> bool:
    if conf.api.auth_strategy != "keystone":
        return group == KEYSTONE_GROUP
    # Without the library, no one knows what it would read.
    section = conf[KEYSTONE_GROUP].auth_section if KEYSTONE_GROUP in conf else KEYSTONE_GROUP
    return group == section


def _nearest_group(group: str, recognised: _Names) -> str:
    near = difflib.get_close_matches(group.lower(), recognised, 1)
    return f"; did you mean [{near[0]}]?" if near else ""


def _unknown(group: str, option: str, place: str | Path, recognised: _Names) -> Iterator[str]:
    """The sentence about an option of a known section, if nothing reads it."""
    name = option.replace("-", "_")
    if name not in recognised[group]:
        elsewhere = [f"[{other}]{name}" for other, names in recognised.items() if name in names]
        near = elsewhere or difflib.get_close_matches(name, recognised[group], 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        yield f"unknown option [{group}]{option} in {place}{meant}"


def _sections(conf: cfg.ConfigOpts) -> Iterator[tuple[Path, Mapping[str, Iterable[str]]]]:
    """The configuration files, with the options of each section."""
    # In this option, oslo.config leaves a ~ as it is, and splits a name at its commas.
    folders = [folder for folder in conf.config_dir or () if Path(folder).is_dir()]
    for path in configuration_files([*(conf.config_file or ()), *folders]):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        yield path, sections
