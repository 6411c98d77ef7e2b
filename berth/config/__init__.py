# SPDX-License-Identifier: Apache-2.0
"""Configuration: where a placement.conf is looked for, and `Settings`, which it is read into.

An existing placement.conf works as it stands: discovery and environment variables are those of
spec/operations.md section 3, and the options are in `config.options`. They are read once, at the
outermost layer, into the frozen `Settings`; nothing below asks for configuration, and
`Settings.conf` is there only for the libraries that read options themselves (oslo.policy, CORS,
authentication).
"""

import contextlib
import io
import ipaddress
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from oslo_config import cfg

import berth
from berth.config.options import (
    FOLDER,
    AuthStrategy,
    GenerationStrategy,
    logging_opts,
    register_logging,
    register_opts,
    service_opts,
)

PROJECT = "placement"
PROGRAM = "berth"

#: Names in the environment the folder in which processes share what they count; prometheus-client
#: looks for it when it is imported.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Who may read the metrics where nothing is configured.
_LOOPBACK = ("127.0.0.1/32", "::1/128")

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
    searches_running_max: int
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
            take the embedded one of this user, with noauth2, and let this machine read the metrics.
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
        conf.set_default("metrics_networks", list(_LOOPBACK), group="berth")
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
                searches_running_max=conf.berth.searches_running_max,
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
    for group, opts in (*service_opts(), ("DEFAULT", logging_opts())):
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
