# SPDX-License-Identifier: Apache-2.0
"""The options of placement.conf: their names, types, defaults and help texts.

Groups, names, types and defaults follow spec/operations.md section 3; the group [berth] is our
own. Only `register_logging` changes process-wide state, so one process can hold several
configurations (`berth.direct`).
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

#: Defaults of [keystone_authtoken] that differ from the library's, which has no timeout for a
#: Keystone that hangs.
KEYSTONE_DEFAULTS: Mapping[str, int] = {"http_connect_timeout": 10, "http_request_max_retries": 1}

AuthStrategy = Literal["keystone", "noauth2", "http_basic", "token"]
GenerationStrategy = Literal["depth-first", "breadth-first"]

#: Base of relative paths when there is no configuration file.
FOLDER = Path("/etc/placement")

NOBODY = "00000000-0000-0000-0000-000000000000"

_IGNORED = "Ignored; accepted so that existing files still load."

DEFAULT_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt("tempdir", help=_IGNORED),
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(berth.__file__).resolve().parent.parent),
        help="Directory that berth is installed in. Only the default of state_path uses it.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help=_IGNORED),
    cfg.BoolOpt(
        "log_options",
        default=True,
        help="Log the value of every option at startup, at level DEBUG and with secrets masked.",
    ),
)

API_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=get_args(AuthStrategy),
        deprecated_group="DEFAULT",
        help="How berth authenticates clients: with Keystone tokens (keystone), user names and "
        "passwords (http_basic), or berth's own tokens (token). noauth2 turns authentication off "
        "and trusts whatever a client claims; use it only on your own machine and in tests.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="htpasswd",
        help="The file of users for http_basic; `berth user` edits it. A relative path starts "
        f"from the directory of the first configuration file, or from {FOLDER} without one.",
    ),
    cfg.StrOpt(
        "token_file",
        default="tokens",
        help="The file of tokens for auth_strategy = token; `berth token` edits it. A relative "
        "path starts where that of http_basic_auth_user_file does.",
    ),
)

PLACEMENT_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=NOBODY,
        help="Project ID for consumers that a client creates without one, which microversions "
        "below 1.8 allow.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=NOBODY,
        help="User ID for consumers that a client creates without one, which microversions below "
        "1.8 allow.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        help="Attempts to write allocations before berth answers 409 because other requests keep "
        "changing the same providers. Raise it if clients that claim from few providers at once "
        "see conflicts.",
    ),
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="When a request sets a limit, return a random sample of the candidates instead of "
        "the first ones. Turn it on if clients that ask at the same time compete for the same "
        "hosts.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="Maximum number of candidates that berth generates for one request; -1 for no "
        "maximum. Set it if clients send queries without a limit.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Which candidates remain when max_allocation_candidates is reached: those of the "
        "first provider trees (depth-first), or some of every tree (breadth-first).",
    ),
)

DATABASE_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "connection",
        secret=True,
        help="Database URL, such as sqlite:////var/lib/berth/berth.db, "
        "postgresql://user:password@host/placement or mysql+pymysql://user:password@host/placement.",
    ),
    cfg.StrOpt(
        "connection_parameters",
        default="",
        secret=True,
        help="Parameters to append to the URL, as in name=value&name=value.",
    ),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help="Ignored, with a warning: a read replica that lags would return data older than what "
        "berth has already confirmed.",
    ),
    cfg.BoolOpt(
        "sync_on_startup",
        default=False,
        help="Upgrade the schema when the service starts, as `berth db upgrade` does.",
    ),
    cfg.BoolOpt(
        "sqlite_synchronous",
        default=True,
        help="Wait for the disk at every SQLite commit. False is faster, but a power failure "
        "loses writes that berth has already confirmed.",
    ),
    cfg.StrOpt(
        "mysql_sql_mode",
        default="TRADITIONAL",
        help="The sql_mode of every MySQL or MariaDB session. TRADITIONAL rejects values that do "
        "not fit instead of truncating them.",
    ),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        help="Seconds after which berth replaces a pooled connection. Set it below the idle "
        "timeout of the server and of any firewall on the way.",
    ),
    cfg.IntOpt(
        "max_pool_size",
        help="Connections for reading that each worker keeps open; 10 if not set. Lower it if "
        "the server allows few connections.",
    ),
    cfg.IntOpt(
        "max_overflow",
        help="Connections that each worker may open beyond max_pool_size under load, and closes "
        "after use; 10 if not set.",
    ),
    cfg.IntOpt(
        "pool_timeout",
        help="Seconds that a request waits for a free connection before it fails; 30 if not set.",
    ),
    cfg.IntOpt(
        "max_retries",
        default=10,
        help="How often the service retries at startup if it cannot reach the database; -1 for "
        "no limit.",
    ),
    cfg.IntOpt(
        "retry_interval",
        default=10,
        help="Seconds between these retries.",
    ),
    cfg.IntOpt("connection_debug", default=0, min=0, max=100, help=_IGNORED),
    cfg.BoolOpt("connection_trace", default=False, help=_IGNORED),
)

WORKAROUNDS_OPTS: tuple[cfg.Opt, ...] = (
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help="Ignored: berth searches wide trees fast without it.",
    ),
)

#: What OpenStack Placement does not have.
BERTH_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "tls_cert",
        help="Certificate for `berth serve`, in PEM, followed by its intermediate certificates. "
        "When it is set, berth serves HTTPS. The command-line option --tls-cert takes precedence.",
    ),
    cfg.StrOpt(
        "tls_key",
        help="Private key of that certificate, in PEM and without a passphrase. The command-line "
        "option --tls-key takes precedence.",
    ),
    cfg.BoolOpt(
        "pin_workers",
        default=True,
        help="Pin each worker of `berth serve` to one CPU if there are at least as many CPUs as "
        "workers. Turn it off if other programs on the machine are pinned too.",
    ),
    cfg.IntOpt(
        "reads_running_max",
        default=16,
        min=1,
        help="Maximum number of read requests that a worker runs at once. They are bound by the "
        "CPU, so a higher value only makes each of them slower.",
    ),
    cfg.IntOpt(
        "writes_running_max",
        default=64,
        min=1,
        help="Maximum number of writes that a worker runs at once. Concurrent writes share a "
        "commit, so a lower value makes writing slower.",
    ),
    cfg.IntOpt(
        "searches_running_max",
        default=2,
        min=1,
        help="Maximum number of allocation candidates queries and other questions that begin to "
        "search at once in a worker, and as many of those that take longer than 10 ms. Each uses "
        "one CPU; other reads do not wait for them.",
    ),
    cfg.IntOpt(
        "requests_waiting_max",
        default=256,
        min=0,
        help="Maximum number of requests of each kind (reads, writes, candidates queries) that "
        "wait in a worker. berth answers further ones with 503.",
    ),
    cfg.FloatOpt(
        "wait_seconds_max",
        default=5.0,
        min=0.0,
        max=3600.0,
        help="Seconds that a request waits before berth answers it with 503. A search waits for "
        "at most half of candidates_time_budget.",
    ),
    cfg.IntOpt(
        "body_mib_max",
        default=8,
        min=1,
        max=1024,
        help="Maximum size of a request body in MiB; berth answers a larger one with 413. Raise "
        "it only if you reshape a provider with more than 20,000 consumers, which takes 6 MiB.",
    ),
    cfg.IntOpt(
        "uri_kib_max",
        default=32,
        min=1,
        max=16384,
        help="Maximum length of a request's path and query in KiB; berth answers longer ones with "
        "414. `berth serve` accepts less than 64 whatever you set.",
    ),
    cfg.IntOpt(
        "bodies_waiting_max",
        default=512,
        min=1,
        help="Maximum number of requests whose bodies a worker receives at once. berth answers "
        "further ones with 503.",
    ),
    cfg.FloatOpt(
        "client_seconds_max",
        default=30.0,
        min=1.0,
        max=3600.0,
        help="Seconds that a client of `berth serve` has to send a request's headers, then to "
        "send its body, and then to read the response; bodies and responses get one more second "
        "for each 64 KiB. berth also closes a connection that is idle for this long.",
    ),
    cfg.FloatOpt(
        "candidates_time_budget",
        default=5.0,
        min=0.0,
        help="Seconds of CPU time after which a candidates search stops. The response has the "
        "candidates found until then, or is 503 if there are none. A search also stops at 1.5 "
        "times as many seconds after its request arrived. 0 for no limit.",
    ),
    cfg.IntOpt(
        "candidates_answer_mib_max",
        default=256,
        min=0,
        help="Maximum size of the candidates in one response, in MiB. A search that reaches it "
        "stops and returns the candidates found until then. 0 for no limit.",
    ),
    cfg.BoolOpt(
        "explain_empty_answers",
        default=True,
        help="Log why a GET /allocation_candidates has no candidates: one line of the logger "
        "berth.explain, with the request IDs, the reason and the query. At most 10 lines a second "
        "and worker, and 20 ms for each, after the answer.",
    ),
    cfg.BoolOpt(
        "page",
        default=True,
        help="Serve the operator's page at /berth/ui/. Its static files need no credentials and "
        "contain nothing about the fleet; the page uses the API with the permissions of its user.",
    ),
    cfg.IntOpt(
        "fleet_seconds_max",
        default=60,
        min=1,
        max=3600,
        help="Seconds in which GET /berth/v1/fleet must read the whole fleet; berth answers 503 "
        "if it takes longer.",
    ),
    cfg.IntOpt(
        "watchers_max",
        default=32,
        min=1,
        max=1024,
        help="Maximum number of requests that wait for changes (GET /berth/v1/changes) in a "
        "worker. Each takes a thread. berth answers further ones with 503.",
    ),
    cfg.IntOpt(
        "journal_seconds",
        default=3600,
        min=60,
        max=604800,
        help="Seconds for which berth keeps the journal of changes. A client of "
        "GET /berth/v1/changes that was away for longer, or a worker that was idle for longer, "
        "reads the whole fleet again.",
    ),
    cfg.StrOpt(
        "audit_log",
        help="File to which berth appends a JSON line for every write: the caller, the request, "
        "the amounts before and after, and the outcome. If not set, berth writes no audit log. A "
        "relative path starts from the directory of the first configuration file. You may rotate "
        "the file at any time.",
    ),
    cfg.ListOpt(
        "agent_aggregates",
        default=["*"],
        help="Aggregates of sharing providers into which a caller that is bound to a host (role "
        "agent) may put this host: UUIDs, names, or labels such as rack=r1. The default, *, allows "
        "all.",
    ),
    cfg.ListOpt(
        "metrics_networks",
        default=[],
        help="Networks whose clients may read /metrics without a token, such as 192.0.2.0/24. If "
        "there is no configuration at all, the default is 127.0.0.1/32 and ::1/128. Requests "
        "through a proxy match none of these networks, unless enable_proxy_headers_parsing is on; "
        "then berth uses the client address that the proxy sends. Do not list loopback addresses "
        "if a proxy on this machine serves others without identifying itself: berth takes its "
        "requests for local ones.",
    ),
    cfg.IntOpt(
        "metrics_classes_max",
        default=200,
        min=0,
        help="Maximum number of resource classes, oldest first, for which /metrics reports "
        "capacity and usage. For the others, it reports only their number.",
    ),
    cfg.IntOpt(
        "metrics_flavors_max",
        default=50,
        min=0,
        help="Maximum number of flavors, in the order of their names, for which /metrics reports "
        "how many more fit. For the others, it reports only their number.",
    ),
    cfg.StrOpt(
        "metrics_capacity_by",
        default="",
        help="Label key of aggregates, such as zone, by which /metrics divides the capacity of "
        "flavors. Empty: only for the whole fleet.",
    ),
    cfg.FloatOpt(
        "lease_sweep_seconds",
        default=5.0,
        min=0.0,
        help="Seconds between two sweeps of a worker, which release consumers with expired leases. "
        "0: this service never sweeps.",
    ),
)

#: oslo.policy removed this option in release 6.
POLICY_OPTS: tuple[cfg.Opt, ...] = tuple(
    option
    for option in (
        cfg.BoolOpt(
            "enforce_scope",
            default=True,
            help="Reject tokens that are not scoped to a project. False: berth checks the roles "
            "of system-scoped and domain-scoped tokens instead.",
        ),
    )
    if option.dest not in {opt.dest for _, opts in policy_opts.list_opts() for opt in opts}
)

#: The options that berth itself reads, by group.
OPTIONS: Mapping[str, tuple[cfg.Opt, ...]] = {
    "DEFAULT": DEFAULT_OPTS,
    "api": API_OPTS,
    "placement": PLACEMENT_OPTS,
    "placement_database": DATABASE_OPTS,
    "workarounds": WORKAROUNDS_OPTS,
    "berth": BERTH_OPTS,
    "oslo_policy": POLICY_OPTS,
}

#: Added to the library's default_log_levels: OpenStack Placement's own line, and one that quiets
#: Alembic.
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
    """Register every option that berth and its libraries read; repeatable.

    Logging options are separate (`register_logging`), because oslo.log keeps the last configuration
    it saw for the whole process.
    """
    for group, opts in service_opts():
        conf.register_opts(opts, group=None if group == "DEFAULT" else group)
    for name, default in CORS_DEFAULTS.items():
        conf.set_default(name, default, group="cors")


def register_known_opts(conf: cfg.ConfigOpts) -> dict[tuple[str, str], cfg.Opt]:
    """Register every option that can have an effect, and return them by group and name.

    In addition to what `register_opts` and `register_logging` register, these are Keystone's, if
    that authenticates the clients: its libraries are slow to import.
    """
    conf.register_opts(logging_opts())
    opts_by_group = [*service_opts(), ("DEFAULT", logging_opts())]
    if conf.api.auth_strategy == "keystone":
        opts_by_group.append((KEYSTONE_GROUP, register_keystone_opts(conf)))
    return {(group, opt.dest): opt for group, opts in opts_by_group for opt in opts}


def register_keystone_opts(conf: cfg.ConfigOpts) -> list[cfg.Opt]:
    """Register the options that keystonemiddleware reads, with berth's defaults; repeatable.

    Returns:
        The options of [keystone_authtoken] and of the plugin that it names; none if
        keystonemiddleware is not installed.
    """
    if importlib.util.find_spec("keystonemiddleware") is None:
        return []
    # Deferred: slow to import, and few commands need them.
    from keystoneauth1 import loading
    from keystoneauth1.exceptions import NoMatchingPlugin
    from keystonemiddleware import auth_token

    opts = [opt for _, group_opts in auth_token.list_opts() for opt in group_opts]
    conf.register_opts(opts, group=KEYSTONE_GROUP)
    for name, default in KEYSTONE_DEFAULTS.items():
        conf.set_default(name, default, group=KEYSTONE_GROUP)
    section = conf[KEYSTONE_GROUP].auth_section or KEYSTONE_GROUP
    # The middleware reads auth_type there, but registers it in its own section only.
    conf.register_opts(loading.get_auth_common_conf_options(), group=section)
    if plugin := conf[section].auth_type:
        with contextlib.suppress(NoMatchingPlugin):
            plugin_opts = loading.get_auth_plugin_conf_options(plugin)
            conf.register_opts(plugin_opts, group=section)
            if section == KEYSTONE_GROUP:
                opts += plugin_opts
    return opts


def service_opts() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Every option of the service and its libraries except logging, by group."""
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
    """The options of oslo.log, all in group DEFAULT."""
    opts: Sequence[cfg.Opt] = _logging_options.list_opts()[0][1]
    return opts


def register_logging(conf: cfg.ConfigOpts) -> None:
    """Register oslo.log's options; `conf` then configures logging for the whole process."""
    log.register_options(conf)
    conf.set_default("default_log_levels", [*log.get_default_log_levels(), *LOG_LEVELS])
