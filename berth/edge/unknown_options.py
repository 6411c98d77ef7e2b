# SPDX-License-Identifier: Apache-2.0
"""Options and sections that files or the environment set, and that nothing reads.

oslo.config ignores them, so a misspelled option silently keeps its default. Sections of libraries
that OpenStack Placement's file may have and berth does not need are no mistake.
"""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg
from oslo_middleware import opts as middleware_opts

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
    "oslo_middleware": ("secure_proxy_ssl_header",),
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
    for path in _files(conf):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        for group, options in sections.items():
            if group in _OF_LIBRARIES or _is_of_keystone(conf, group):
                continue
            if group not in recognised:
                yield f"unknown section [{group}] in {path}{_nearest_group(group, recognised)}"
                continue
            for name in options:
                if name.replace("-", "_") not in recognised[group]:
                    yield f"unknown option [{group}]{name} in {path}" + _nearest_option(
                        group, name, recognised
                    )
    for variable in sorted(environment):
        group, separator, name = variable.removeprefix(_PREFIX).lower().partition(_SEPARATOR)
        group = "DEFAULT" if group == "default" else group
        if not (variable.startswith(_PREFIX) and separator) or group == KEYSTONE_GROUP:
            continue
        if group not in recognised:
            # Other programs read variables of this form, too.
            if nearest := _nearest_group(group, recognised):
                yield f"unknown section [{group}] in the variable {variable}{nearest}"
        elif name not in recognised[group]:
            yield f"unknown option [{group}]{name} in the variable {variable}" + _nearest_option(
                group, name, recognised
            )


def without_keystone(conf: cfg.ConfigOpts) -> Iterator[str]:
    """A sentence for each file that configures Keystone, if berth does not use it."""
    if conf.api.auth_strategy == "keystone":
        return
    for path in _files(conf):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        if KEYSTONE_GROUP in sections:
            yield (
                f"[{KEYSTONE_GROUP}] in {path} has no effect: [api]auth_strategy is not keystone"
            )


def _recognised(conf: cfg.ConfigOpts) -> _Names:
    names: dict[str, set[str]] = defaultdict(set)
    options = [(group, option) for (group, _), option in register_known_opts(conf).items()]
    options += [(group, each) for group, opts in middleware_opts.list_opts() for each in opts]
    for group, option in options:
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


def _nearest_option(group: str, name: str, recognised: _Names) -> str:
    name = name.replace("-", "_")
    elsewhere = [other for other, names in recognised.items() if name in names]
    if elsewhere:
        return f"; did you mean [{elsewhere[0]}]{name}?"
    near = difflib.get_close_matches(name, recognised[group], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """The configuration files, including those in directories."""
    in_dirs = [
        str(path)
        for directory in conf.config_dir or ()
        for path in sorted(Path(directory).glob("*.conf"))
    ]
    return [*(conf.config_file or ()), *in_dirs]
