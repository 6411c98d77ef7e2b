# SPDX-License-Identifier: Apache-2.0
"""Configuration: every option of a placement.conf, where it is looked for, and `Settings`.

An existing placement.conf works as it stands: groups, names, types, defaults, discovery and
environment variables are those of spec/operations.md section 3. Options are read once, at the
outermost layer, into the frozen `Settings`; nothing below asks for configuration, and
`Settings.conf` is there only for the libraries that read options themselves (oslo.policy, CORS,
authentication).

Nothing here changes process-wide state but `register_logging`, so that several configurations can
live in one process (`berth.direct`).
"""

import contextlib
import importlib.util
import io
import ipaddress
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from oslo_config import cfg
from oslo_log import _options as _logging_options
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi
from oslo_middleware import opts as middleware_opts
from oslo_policy import opts as policy_opts

import berth

PROJECT = "placement"
PROGRAM = "berth"

KEYSTONE_GROUP = "keystone_authtoken"

#: Names in the environment the folder in which processes share what they count; prometheus-client
#: looks for it when it is imported.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

#: Where berth's defaults of [keystone_authtoken] differ from the library's, which waits for a
#: Keystone that hangs as long as that hangs.
KEYSTONE_DEFAULTS: Mapping[str, int] = {"http_connect_timeout": 10, "http_request_max_retries": 1}

AuthStrategy = Literal["keystone", "noauth2", "http_basic", "token"]
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
GenerationStrategy = Literal["depth-first", "breadth-first"]

#: Where files are looked for that stand beside the configuration file, when there is none.
FOLDER = Path("/etc/placement")

NOBODY = "00000000-0000-0000-0000-000000000000"

DEFAULT_OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt("tempdir", help="Directory for temporary files; accepted and unused."),
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).resolve().parent.parent),
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
        "requests_waiting_max",
        default=256,
        min=0,
        help="Reads, and likewise writes, that wait in a worker until it is their turn; one more "
        "is answered 503.",
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
        default=64,
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
        default=["127.0.0.1/32", "::1/128"],
        help="Networks from which /metrics may be read without a token; empty for none. A request "
        "that came by way of a proxy is of none of them, unless enable_proxy_headers_parsing is "
        "on: then it is of the network of the client that the proxy names.",
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


#: `user:password@`, up to the last @: a password with an unescaped / or @ is masked whole.
_PASSWORD = re.compile(r"(://[^:/?@]*:)[^?]*@")
_PASSWORD_PARAMETER = re.compile(r"(?i)([?&](?:password|passwd|pwd)=)[^&]*")

#: How oslo.config says in which file it found a value.
_LOCATION = re.compile(r"LocationInfo\(location=.*?, detail='(.*?)'\)")


class ConfigurationError(Exception):
    """The configuration cannot be found, cannot be read, or asks for what cannot be."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The `[placement_database]` group: which database, and how its connections are kept."""

    #: The whole URL, connection_parameters appended.
    url: str
    sync_on_startup: bool
    sqlite_synchronous: bool
    mysql_sql_mode: str
    connection_recycle_time: int
    max_pool_size: int | None
    max_overflow: int | None
    pool_timeout: int | None
    max_retries: int
    retry_interval: int
    connection_debug: int
    connection_trace: bool
    slave_connection: str | None

    @property
    def engine(self) -> str:
        """The kind of database: `sqlite`, `postgresql`, `mysql`, or what the URL says."""
        return self.url.partition(":")[0].partition("+")[0]

    @property
    def masked_url(self) -> str:
        """The URL fit for people and logs: passwords are replaced by `***`."""
        return mask_url(self.url)


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How much a worker takes on at a time before it says that it is busy."""

    reads_running_max: int
    writes_running_max: int
    #: Of each kind.
    requests_waiting_max: int
    wait_seconds_max: float


@dataclass(frozen=True, slots=True)
class ReceivingSettings:
    """How large a request may be, and how long a worker waits for it."""

    body_mib_max: int
    uri_kib_max: int
    bodies_waiting_max: int
    client_seconds_max: float


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Who may read the metrics without a token, and how many they are."""

    networks: tuple[IPNetwork, ...]
    classes_max: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that berth reads from its configuration, typed and frozen."""

    auth_strategy: AuthStrategy
    user_file: Path
    token_file: Path
    database: DatabaseSettings
    incomplete_consumer_project_id: str
    incomplete_consumer_user_id: str
    allocation_conflict_retry_count: int
    randomize_allocation_candidates: bool
    max_allocation_candidates: int
    allocation_candidates_generation_strategy: GenerationStrategy
    optimize_for_wide_provider_trees: bool
    enable_proxy_headers_parsing: bool
    log_options: bool
    admission: AdmissionSettings
    receiving: ReceivingSettings
    candidates_time_budget: float
    candidates_answer_mib_max: int
    pin_workers: bool
    #: Where the certificate of `berth serve` stands, and its key.
    tls_cert: Path | None
    tls_key: Path | None
    metrics: MetricsSettings
    #: For the libraries that read options themselves; berth's own code does not look into it.
    conf: cfg.ConfigOpts


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make every option that berth and its libraries read known to `conf`; repeatable.

    Logging options stand apart (`register_logging`), because oslo.log keeps the last configuration
    it saw for the whole process.
    """
    for group, opts in _service_opts():
        conf.register_opts(opts, group=None if group == "DEFAULT" else group)
    for name, default in CORS_DEFAULTS.items():
        conf.set_default(name, default, group="cors")


def register_known_opts(conf: cfg.ConfigOpts) -> dict[tuple[str, str], cfg.Opt]:
    """Make known to `conf` all that can have an effect, and say by group and name what that is.

    Beside what `register_opts` and `register_logging` do, these are the options of the libraries
    that only one way of authentication needs.
    """
    logging_opts = _logging_options.list_opts()[0][1]
    conf.register_opts(logging_opts)
    known = [
        *_service_opts(),
        ("DEFAULT", logging_opts),
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


def _service_opts() -> list[tuple[str, Sequence[cfg.Opt]]]:
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


def register_logging(conf: cfg.ConfigOpts) -> None:
    """Make oslo.log's options known to `conf`, which then stands for the process's logging."""
    log.register_options(conf)
    conf.set_default("default_log_levels", [*log.get_default_log_levels(), *LOG_LEVELS])


def load(
    config_files: Sequence[str] = (),
    config_dirs: Sequence[str] = (),
    *,
    embedded: bool = False,
    debug: bool = False,
) -> cfg.ConfigOpts:
    """Read the configuration of a command.

    Args:
        config_files: files to read in order, later ones winning; none: the first placement.conf
            of the usual places.
        config_dirs: directories whose `*.conf` files are read after those, in sorted order; none:
            the first placement.conf.d of the usual places.
        embedded: where nothing says which database to use, neither a file nor the environment,
            take the embedded one of this user, with noauth2.
        debug: log at DEBUG, whatever the files say.

    Raises:
        ConfigurationError: a file is missing or cannot be read.
    """
    args = [part for path in config_files for part in ("--config-file", path)]
    args += [part for path in config_dirs for part in ("--config-dir", path)]
    if debug:
        args.append("--debug")
    conf = _parse(args)
    if embedded and not _names_any_configuration(conf):
        url = f"sqlite:///{embedded_database_path()}"
        conf.set_default("connection", url, group="placement_database")
        conf.set_default("auth_strategy", "noauth2", group="api")
    return conf


def load_for_wsgi(environment: Mapping[str, str] = os.environ) -> cfg.ConfigOpts:
    """Read the configuration of the WSGI application: OS_PLACEMENT_CONFIG_DIR, or the usual places.

    Raises:
        ConfigurationError: the directory has no placement.conf, or a file cannot be read.
    """
    directory = environment.get("OS_PLACEMENT_CONFIG_DIR", "").strip()
    if not directory:
        return _parse([])
    return _parse(
        ["--config-file", str(Path(directory) / "placement.conf")], default_config_dirs=[]
    )


def load_for_command(
    args: Sequence[str], program: str, command: cfg.SubCommandOpt
) -> cfg.ConfigOpts:
    """Read the configuration of a command that takes its options as the original's do.

    Args:
        args: of the command line, those of oslo.config and oslo.log among them.
        program: the name of the command.
        command: what else the command line may have; its values become `conf.<its name>`.

    Raises:
        ConfigurationError: a file is missing or cannot be read.
        SystemExit: the command line cannot be understood, or asks for help.
    """
    return _parse(args, program=program, command=command)


def read_settings(conf: cfg.ConfigOpts) -> Settings:
    """Read every option once.

    Raises:
        ConfigurationError: an option is missing, or the value of any that berth or one of its
            libraries will read is not of its type.
    """
    try:
        _check_values(conf)
        return Settings(
            auth_strategy=cast(AuthStrategy, conf.api.auth_strategy),
            user_file=read_user_file(conf),
            token_file=read_token_file(conf),
            database=_read_database_settings(conf),
            incomplete_consumer_project_id=conf.placement.incomplete_consumer_project_id,
            incomplete_consumer_user_id=conf.placement.incomplete_consumer_user_id,
            allocation_conflict_retry_count=conf.placement.allocation_conflict_retry_count,
            randomize_allocation_candidates=conf.placement.randomize_allocation_candidates,
            max_allocation_candidates=conf.placement.max_allocation_candidates,
            allocation_candidates_generation_strategy=cast(
                GenerationStrategy, conf.placement.allocation_candidates_generation_strategy
            ),
            optimize_for_wide_provider_trees=conf.workarounds.optimize_for_wide_provider_trees,
            enable_proxy_headers_parsing=conf.oslo_middleware.enable_proxy_headers_parsing,
            log_options=conf.log_options,
            candidates_time_budget=conf.berth.candidates_time_budget,
            candidates_answer_mib_max=conf.berth.candidates_answer_mib_max,
            pin_workers=conf.berth.pin_workers,
            tls_cert=_beside_or_none(conf, conf.berth.tls_cert),
            tls_key=_beside_or_none(conf, conf.berth.tls_key),
            admission=AdmissionSettings(
                reads_running_max=conf.berth.reads_running_max,
                writes_running_max=conf.berth.writes_running_max,
                requests_waiting_max=conf.berth.requests_waiting_max,
                wait_seconds_max=conf.berth.wait_seconds_max,
            ),
            receiving=ReceivingSettings(
                body_mib_max=conf.berth.body_mib_max,
                uri_kib_max=conf.berth.uri_kib_max,
                bodies_waiting_max=conf.berth.bodies_waiting_max,
                client_seconds_max=conf.berth.client_seconds_max,
            ),
            metrics=MetricsSettings(
                networks=tuple(map(_read_network, conf.berth.metrics_networks)),
                classes_max=conf.berth.metrics_classes_max,
            ),
            conf=conf,
        )
    except cfg.Error as error:
        raise ConfigurationError(_one_line(error)) from error


def read_user_file(conf: cfg.ConfigOpts) -> Path:
    """Where the users of `http_basic` stand."""
    return _beside(conf, conf.api.http_basic_auth_user_file)


def read_token_file(conf: cfg.ConfigOpts) -> Path:
    """Where the tokens of `token` stand."""
    return _beside(conf, conf.api.token_file)


def _check_values(conf: cfg.ConfigOpts) -> None:
    """Read what libraries would read only later, in a worker or with the first request."""
    for group, opts in (*_service_opts(), ("DEFAULT", _logging_options.list_opts()[0][1])):
        values = conf if group == "DEFAULT" else conf[group]
        for opt in opts:
            if opt.dest in values and not _is_finite(values[opt.dest]):
                raise ConfigurationError(f"Value for option {opt.name} is not valid: not a number")


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def embedded_database_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the embedded database of this user lies: in the XDG data directory."""
    data_home = Path(environment.get("XDG_DATA_HOME", ""))
    # The XDG rules: a relative path is invalid and to be ignored.
    if not data_home.is_absolute():
        data_home = Path.home() / ".local" / "share"
    return data_home / "berth" / "berth.db"


def mask_url(url: str) -> str:
    """A database URL with its passwords replaced by `***`; what is no URL is hidden whole."""
    if "://" not in url:
        return "***"
    return _PASSWORD_PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1***@", url))


def _parse(
    args: Sequence[str],
    *,
    default_config_dirs: list[str] | None = None,
    program: str = PROGRAM,
    command: cfg.SubCommandOpt | None = None,
) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    register_opts(conf)
    register_logging(conf)
    if command is not None:
        conf.register_cli_opt(command)
    said = io.StringIO()
    # A command of the original's kind has a command line, and oslo.config answers mistakes in it.
    quietly = contextlib.nullcontext() if command else contextlib.redirect_stderr(said)
    try:
        with quietly:
            conf(
                list(args),
                project=PROJECT,
                prog=program,
                version=berth.__version__,
                default_config_dirs=default_config_dirs,
            )
    except SystemExit as error:
        # Some wrong values in files it takes for a wrong command line.
        if command:
            raise
        raise ConfigurationError(" ".join(said.getvalue().split())) from error
    except cfg.ConfigFilesNotFoundError as error:
        names = ", ".join(error.config_files)
        raise ConfigurationError(f"configuration file not found: {names}") from error
    except cfg.ConfigDirNotFoundError as error:
        raise ConfigurationError(
            f"configuration directory not found: {error.config_dir}"
        ) from error
    except cfg.Error as error:
        raise ConfigurationError(_one_line(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"a configuration file is not UTF-8: {error}") from error
    return conf


def _beside(conf: cfg.ConfigOpts, name: str) -> Path:
    """A file that is named as seen from the first configuration file."""
    folder = Path(conf.config_file[0]).parent if conf.config_file else FOLDER
    return folder.absolute() / name


def _beside_or_none(conf: cfg.ConfigOpts, name: str | None) -> Path | None:
    return _beside(conf, name) if name else None


def _names_any_configuration(conf: cfg.ConfigOpts) -> bool:
    """Whether a file was read, or the environment names a database."""
    return bool(conf.config_file or conf.config_dir or conf.placement_database.connection)


def _read_database_settings(conf: cfg.ConfigOpts) -> DatabaseSettings:
    group = conf.placement_database
    if not group.connection:
        raise ConfigurationError(
            "no database is configured: set [placement_database]connection in placement.conf, "
            "or OS_PLACEMENT_DATABASE__CONNECTION in the environment"
        )
    return DatabaseSettings(
        url=_with_parameters(group.connection, group.connection_parameters),
        sync_on_startup=group.sync_on_startup,
        sqlite_synchronous=group.sqlite_synchronous,
        mysql_sql_mode=group.mysql_sql_mode,
        connection_recycle_time=group.connection_recycle_time,
        max_pool_size=group.max_pool_size,
        max_overflow=group.max_overflow,
        pool_timeout=group.pool_timeout,
        max_retries=group.max_retries,
        retry_interval=group.retry_interval,
        connection_debug=group.connection_debug,
        connection_trace=group.connection_trace,
        slave_connection=group.slave_connection,
    )


def _read_network(text: str) -> IPNetwork:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(
            f"[berth]metrics_networks: {error}; networks are written as in 192.0.2.0/24"
        ) from error


def _with_parameters(url: str, parameters: str) -> str:
    if not parameters:
        return url
    return f"{url}{'&' if '?' in url else '?'}{parameters}"


def _one_line(error: Exception) -> str:
    return " ".join(_LOCATION.sub(r"\1", str(error)).split())
