# SPDX-License-Identifier: Apache-2.0
"""The options of a placement.conf: names, types, defaults and what each is for.

Groups, names, types and defaults are those of spec/operations.md section 3; those of [berth] are
our own. Nothing here changes process-wide state but `register_logging`, so that several
configurations can live in one process (`berth.direct`).
"""

import contextlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from oslo_config import cfg
from oslo_log import _options as _logging_options
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi
from oslo_middleware import opts as middleware_opts
from oslo_policy import opts as policy_opts

import berth

KEYSTONE_GROUP = "keystone_authtoken"

#: Where berth's defaults of [keystone_authtoken] differ from the library's, which waits for a
#: Keystone that hangs as long as that hangs.
KEYSTONE_DEFAULTS: Mapping[str, int] = {"http_connect_timeout": 10, "http_request_max_retries": 1}

AuthStrategy = Literal["keystone", "noauth2", "http_basic", "token"]
GenerationStrategy = Literal["depth-first", "breadth-first"]

#: Where files are looked for that stand beside the configuration file, when there is none.
FOLDER = Path("/etc/placement")

NOBODY = "00000000-0000-0000-0000-000000000000"

DEFAULT_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt("tempdir", help="Directory for temporary files; accepted and unused."),
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(berth.__file__).resolve().parent.parent),
        help="Directory that berth is installed in; the base of state_path.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help="Top directory for state; unused."),
    cfg.BoolOpt("log_options", default=True, help="Log every option's value at DEBUG at start."),
)

API_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=get_args(AuthStrategy),
        deprecated_group="DEFAULT",
        help="How callers are known: by Keystone's tokens (keystone), by a name and a password "
        "(http_basic), by tokens of berth's own (token), or, for one's own machine and for tests, "
        "by what they say they are (noauth2).",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="htpasswd",
        help="With http_basic: the file of users, which `berth user` writes. A relative path is "
        f"beside the configuration file, or in {FOLDER} where there is none.",
    ),
    cfg.StrOpt(
        "token_file",
        default="tokens",
        help="With token: the file of tokens, which `berth token` writes. A relative path is as "
        "that of http_basic_auth_user_file.",
    ),
)

PLACEMENT_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=NOBODY,
        help="Project of consumers written without one (below microversion 1.8).",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=NOBODY,
        help="User of consumers written without one (below microversion 1.8).",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        help="How often an allocation write is tried when others write to the same providers.",
    ),
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="With a limit, answer a random sample of the candidates instead of the first ones.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="The most candidates generated for one request; -1 for no bound.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Order in which trees contribute candidates: one tree after another, or in turn.",
    ),
)

DATABASE_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "connection",
        secret=True,
        help="URL of the database, as in sqlite:////var/lib/berth/berth.db, "
        "postgresql://user:password@host/placement, mysql+pymysql://user:password@host/placement.",
    ),
    cfg.StrOpt(
        "connection_parameters",
        default="",
        secret=True,
        help="Parameters appended to the URL, as in name=value&name=value.",
    ),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help="URL of a read replica; not used, because answers from one that lags behind would "
        "miss what was acknowledged.",
    ),
    cfg.BoolOpt(
        "sync_on_startup",
        default=False,
        help="Bring the schema up to date when the service starts.",
    ),
    cfg.BoolOpt(
        "sqlite_synchronous",
        default=True,
        help="Whether SQLite waits for the disk at each commit. False is faster and loses "
        "acknowledged writes when the machine stops.",
    ),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="MySQL's sql_mode for each session."),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        help="Age in seconds at which a pooled connection is replaced.",
    ),
    cfg.IntOpt("max_pool_size", help="Connections kept open in a process."),
    cfg.IntOpt("max_overflow", help="Connections opened beyond max_pool_size under load."),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection."),
    cfg.IntOpt(
        "max_retries", default=10, help="Attempts to connect at start; -1 for as long as it takes."
    ),
    cfg.IntOpt("retry_interval", default=10, help="Seconds between attempts to connect."),
    cfg.IntOpt(
        "connection_debug", default=0, min=0, max=100, help="Verbosity of SQL in the log, 0 to 100."
    ),
    cfg.BoolOpt(
        "connection_trace", default=False, help="Add a stack trace to each statement as a comment."
    ),
)

WORKAROUNDS_OPTS: tuple[cfg.Opt, ...] = (
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help="Accepted. berth searches wide trees fast without being asked to.",
    ),
)

#: What the original does not have.
BERTH_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "tls_cert",
        help="File with the certificate of `berth serve`, and those that lead to its authority, "
        "in PEM: it then serves HTTPS. Like its option --tls-cert, which wins.",
    ),
    cfg.StrOpt(
        "tls_key",
        help="File with the certificate's private key, in PEM and without a passphrase. Like the "
        "option --tls-key of `berth serve`, which wins.",
    ),
    cfg.BoolOpt(
        "pin_workers",
        default=True,
        help="Hold each worker of `berth serve` to one processor, if there are enough of them.",
    ),
    cfg.IntOpt(
        "reads_running_max",
        default=16,
        min=1,
        help="Reads that a worker runs at a time.",
    ),
    cfg.IntOpt(
        "writes_running_max",
        default=64,
        min=1,
        help="Writes that a worker runs at a time; those that wait for the disk together share a "
        "commit.",
    ),
    cfg.IntOpt(
        "searches_running_max",
        default=2,
        min=1,
        help="Searches for allocation candidates that a worker runs at a time; reads never wait "
        "for them.",
    ),
    cfg.IntOpt(
        "requests_waiting_max",
        default=256,
        min=0,
        help="Reads, and likewise writes and searches for candidates, that wait in a worker until "
        "it is their turn; one more is answered 503.",
    ),
    cfg.FloatOpt(
        "wait_seconds_max",
        default=5.0,
        min=0.0,
        max=3600.0,
        help="How long a request waits for its turn before it is answered 503.",
    ),
    cfg.IntOpt(
        "body_mib_max",
        default=8,
        min=1,
        max=1024,
        help="MiB that the body of a request may have; a larger one is answered 413.",
    ),
    cfg.IntOpt(
        "uri_kib_max",
        default=32,
        min=1,
        max=16384,
        help="KiB that the path and query of a request may have; longer ones are answered 414. "
        "`berth serve` itself takes less than 64.",
    ),
    cfg.IntOpt(
        "bodies_waiting_max",
        default=512,
        min=1,
        help="Requests of which a worker awaits the body at a time; one more is answered 503.",
    ),
    cfg.FloatOpt(
        "client_seconds_max",
        default=30.0,
        min=1.0,
        max=3600.0,
        help="Seconds in which a client of `berth serve` has to send the headers of a request, "
        "then its body, and later to take the answer; for a body and an answer one more second "
        "for each 64 KiB of it. An idle connection is closed after as many.",
    ),
    cfg.FloatOpt(
        "candidates_time_budget",
        default=5.0,
        min=0.0,
        help="Seconds after which a search for candidates ends: with those it has found, or with "
        "503 when it has none; 0 for no bound.",
    ),
    cfg.IntOpt(
        "candidates_answer_mib_max",
        default=256,
        min=0,
        help="MiB of candidates in one answer, beyond which a search ends with those it has; 0 for "
        "no bound.",
    ),
    cfg.ListOpt(
        "metrics_networks",
        default=[],
        help="Networks from which /metrics may be read without a token. Where nothing at all is "
        "configured, these are 127.0.0.1/32 and ::1/128. Name the machine itself only if no proxy "
        "runs there for others: one that does not say that it is a proxy cannot be told from a "
        "local client. A request that names a proxy is of none of these networks, unless "
        "enable_proxy_headers_parsing is on: then it is of the network of the client that the "
        "proxy names.",
    ),
    cfg.IntOpt(
        "metrics_classes_max",
        default=200,
        min=0,
        help="Resource classes of which /metrics tells capacity and use, the oldest ones; of the "
        "others it tells how many there are.",
    ),
)

#: Of oslo.policy, which has dropped it from release 6 on.
POLICY_OPTS: tuple[cfg.Opt, ...] = tuple(
    option
    for option in (
        cfg.BoolOpt(
            "enforce_scope",
            default=True,
            help="Refuse callers whose token is not of a project's scope. False: tokens of the "
            "system's and of a domain's scope are judged by their roles.",
        ),
    )
    if option.dest not in {one.dest for _, some in policy_opts.list_opts() for one in some}
)

#: Groups with the options that berth itself reads.
OPTIONS: Mapping[str, tuple[cfg.Opt, ...]] = {
    "DEFAULT": DEFAULT_OPTS,
    "api": API_OPTS,
    "placement": PLACEMENT_OPTS,
    "placement_database": DATABASE_OPTS,
    "workarounds": WORKAROUNDS_OPTS,
    "berth": BERTH_OPTS,
    "oslo_policy": POLICY_OPTS,
}

#: Added to the library's default_log_levels: the original's line, and a talkative migration tool.
LOG_LEVELS = ("routes=INFO", "alembic=WARNING")

#: Defaults of the `[cors]` group that differ from the library's.
CORS_DEFAULTS: Mapping[str, list[str]] = {
    "expose_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    ],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
    "allow_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Identity-Status",
        "X-Roles",
        "X-Service-Catalog",
        "X-User-Id",
        "X-Tenant-Id",
        "OpenStack-API-Version",
    ],
}


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make every option that berth and its libraries read known to `conf`; repeatable.

    Logging options stand apart (`register_logging`), because oslo.log keeps the last configuration
    it saw for the whole process.
    """
    for group, opts in service_opts():
        conf.register_opts(opts, group=None if group == "DEFAULT" else group)
    for name, default in CORS_DEFAULTS.items():
        conf.set_default(name, default, group="cors")


def register_known_opts(conf: cfg.ConfigOpts) -> dict[tuple[str, str], cfg.Opt]:
    """Make known to `conf` all that can have an effect, and say by group and name what that is.

    Beside what `register_opts` and `register_logging` do, these are the options of the libraries
    that only one way of authentication needs.
    """
    conf.register_opts(logging_opts())
    known = [
        *service_opts(),
        ("DEFAULT", logging_opts()),
        (KEYSTONE_GROUP, register_keystone_opts(conf)),
    ]
    return {(group, opt.dest): opt for group, opts in known for opt in opts}


def register_keystone_opts(conf: cfg.ConfigOpts) -> list[cfg.Opt]:
    """Make known to `conf` what keystonemiddleware reads, with berth's defaults; repeatable.

    Returns:
        Those of [keystone_authtoken], of the plugin that it names too; none without Keystone.
    """
    if importlib.util.find_spec("keystonemiddleware") is None:
        return []
    # Imported here: they are slow to load, and few commands need them.
    from keystoneauth1 import loading
    from keystoneauth1.exceptions import NoMatchingPlugin
    from keystonemiddleware import auth_token

    opts = [opt for _, some in auth_token.list_opts() for opt in some]
    conf.register_opts(opts, group=KEYSTONE_GROUP)
    for name, default in KEYSTONE_DEFAULTS.items():
        conf.set_default(name, default, group=KEYSTONE_GROUP)
    section = conf[KEYSTONE_GROUP].auth_section or KEYSTONE_GROUP
    # The middleware looks for it there, and registers it in its own section only.
    conf.register_opts(loading.get_auth_common_conf_options(), group=section)
    if plugin := conf[section].auth_type:
        with contextlib.suppress(NoMatchingPlugin):
            of_plugin = loading.get_auth_plugin_conf_options(plugin)
            conf.register_opts(of_plugin, group=section)
            if section == KEYSTONE_GROUP:
                opts += of_plugin
    return opts


def service_opts() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """All that the service reads, its libraries' options too, but logging's; by group."""
    return [
        *list_opts(),
        *policy_opts.list_opts(),
        ("cors", cors.OPTS),
        ("oslo_middleware", http_proxy_to_wsgi.OPTS),
        *middleware_opts.list_opts_healthcheck(),
    ]


def list_opts() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """The options that berth itself reads, for oslo.config's generator and validator."""
    return list(OPTIONS.items())


def logging_opts() -> Sequence[cfg.Opt]:
    """The options of oslo.log, all of group DEFAULT."""
    opts: Sequence[cfg.Opt] = _logging_options.list_opts()[0][1]
    return opts


def register_logging(conf: cfg.ConfigOpts) -> None:
    """Make oslo.log's options known to `conf`, which then stands for the process's logging."""
    log.register_options(conf)
    conf.set_default("default_log_levels", [*log.get_default_log_levels(), *LOG_LEVELS])
