# SPDX-License-Identifier: Apache-2.0
"""Configuration: where berth finds placement.conf, and the `Settings` that it reads from it.

An existing placement.conf works unchanged: search path and environment variables follow
spec/operations.md section 3, and `config.options` has the options. The outermost layer reads them
once into the frozen `Settings`; nothing below reads configuration. `Settings.conf` is only for the
libraries that read options themselves (oslo.policy, CORS, authentication).
"""

import contextlib
import io
import ipaddress
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

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
from berth.model.names import is_label_key

T = TypeVar("T")

PROJECT = "placement"
PROGRAM = "berth"

#: The environment variable that names the directory in which processes share their metrics;
#: prometheus-client reads it on import.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The label of every metric of a capacity, beside which that of `metrics_capacity_by` stands.
CAPACITY_LABEL = "flavor"

#: Networks that may read the metrics when there is no configuration.
_LOOPBACK = ("127.0.0.1/32", "::1/128")

#: `user:password@`, up to the last @: a password with an unescaped /, ? or @ is masked whole. A
#: user may have an @, as on Azure.
_PASSWORD = re.compile(r"(://[^:/]*:).*@")
_PASSWORD_PARAMETER = re.compile(r"(?i)([?&][^=&]*(?:passw|pwd)[^=&]*=)[^&]*")

#: How oslo.config names the file or variable of a wrong value, and the reason.
_WRONG_VALUE = re.compile(
    r".* from LocationInfo\(location=.*?, detail='(?P<source>.*?)'\) is not valid: (?P<reason>.*)",
    re.DOTALL,
)

#: How oslo.config names the line of a file that it cannot parse.
_WRONG_LINE = re.compile(r"at (?P<place>.*?:\d+), (?P<reason>.*)", re.DOTALL)

#: Reasons in Python's words, and in a reader's.
_REASONS = (
    (re.compile(r"invalid literal for int\(\) with base 10: (.*)"), r"\1 is not an integer"),
    (re.compile(r"could not convert string to float: (.*)"), r"\1 is not a number"),
    (re.compile(r"Unexpected boolean value (.*)"), r"\1 is neither true nor false"),
    (re.compile(r"Should be greater than or equal to (.*)"), r"the minimum is \1"),
    (re.compile(r"Should be less than or equal to (.*)"), r"the maximum is \1"),
    (
        re.compile(r"Valid values are \[(.*)\], but found (.*)"),
        r"\2 is not one of \1",
    ),
)


class ConfigurationError(Exception):
    """The configuration is missing, unreadable or contradictory."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The `[placement_database]` group: the database, and its pool of connections."""

    #: The URL with connection_parameters appended.
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
    slave_connection: str | None

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite file."""
        return self.url.partition(":")[0].partition("+")[0] == "sqlite"

    @property
    def masked_url(self) -> str:
        """The URL for messages and logs, with passwords replaced by `***`."""
        return mask_url(self.url)


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How many requests a worker runs at once before it answers 503."""

    reads_running_max: int
    writes_running_max: int
    searches_running_max: int
    #: Of each kind.
    requests_waiting_max: int
    wait_seconds_max: float
    #: Seconds of a search; 0 for no bound.
    candidates_time_budget: float = 0.0


@dataclass(frozen=True, slots=True)
class ReceivingSettings:
    """Maximum size of a request, and how long a worker waits for it."""

    body_mib_max: int
    uri_kib_max: int
    bodies_waiting_max: int
    client_seconds_max: float


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Who may read the metrics without a token, and what they contain.

    Attributes:
        classes_max: the number of resource classes with series of their own.
        flavors_max: the number of flavors whose capacity is shown.
        capacity_by: the key of the label by which it is divided; empty for none.
    """

    networks: tuple[IPNetwork, ...]
    classes_max: int
    flavors_max: int
    capacity_by: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option that berth reads, typed and frozen."""

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
    enable_proxy_headers_parsing: bool
    log_options: bool
    admission: AdmissionSettings
    receiving: ReceivingSettings
    candidates_answer_mib_max: int
    explain_empty_answers: bool
    #: Whether the operator's page is served.
    page: bool
    #: Aggregates that callers that are bound to a host may join; "*": all.
    agent_aggregates: Sequence[str]
    #: Seconds in which an answer with the whole fleet is read.
    fleet_seconds_max: int
    #: Requests of one worker that wait for changes.
    watchers_max: int
    #: Seconds for which the journal is kept.
    journal_seconds: int
    #: The file of the audit log; None for no audit log.
    audit_log: Path | None
    pin_workers: bool
    #: Paths of the certificate of `berth serve` and of its key.
    tls_cert: Path | None
    tls_key: Path | None
    metrics: MetricsSettings
    #: 0: never.
    lease_sweep_seconds: float
    #: For the libraries that read options themselves; berth's own code does not use it.
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
        config_files: files to read in order; later ones override earlier ones. Empty: the first
            placement.conf on the search path.
        config_dirs: directories whose `*.conf` files are read after those, in sorted order. Empty:
            the first placement.conf.d on the search path.
        embedded: if neither a file nor the environment names a database, use this user's SQLite
            file and noauth2, and let this machine read the metrics.
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
    """Read the configuration of the WSGI application: OS_PLACEMENT_CONFIG_DIR or the search path.

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
    """Read the configuration of a command that parses its arguments as OpenStack Placement does.

    Args:
        args: the command line; it may have the options of oslo.config and oslo.log.
        program: the name of the command.
        command: the subcommands; their values become `conf.<its name>`.

    Raises:
        ConfigurationError: a file is missing or cannot be read.
        SystemExit: the command line is wrong, or asks for help.
    """
    return _parse(args, program=program, command=command)


def read_settings(conf: cfg.ConfigOpts) -> Settings:
    """Read every option once.

    Raises:
        ConfigurationError: an option is missing, or has a value of the wrong type; also an option
            of one of berth's libraries.
    """
    check_values(conf)
    return _from_options(
        Settings,
        conf.placement,
        conf.berth,
        auth_strategy=conf.api.auth_strategy,
        user_file=read_user_file(conf),
        token_file=read_token_file(conf),
        database=_read_database_settings(conf),
        enable_proxy_headers_parsing=conf.oslo_middleware.enable_proxy_headers_parsing,
        log_options=conf.log_options,
        tls_cert=_beside_or_none(conf, conf.berth.tls_cert),
        tls_key=_beside_or_none(conf, conf.berth.tls_key),
        audit_log=_beside_or_none(conf, conf.berth.audit_log),
        admission=_from_options(AdmissionSettings, conf.berth),
        receiving=_from_options(ReceivingSettings, conf.berth),
        metrics=MetricsSettings(
            networks=tuple(map(_read_network, conf.berth.metrics_networks)),
            classes_max=conf.berth.metrics_classes_max,
            flavors_max=conf.berth.metrics_flavors_max,
            capacity_by=_read_capacity_by(conf.berth.metrics_capacity_by),
        ),
        conf=conf,
    )


def read_user_file(conf: cfg.ConfigOpts) -> Path:
    """The path of the user file for `http_basic`."""
    return _beside(conf, conf.api.http_basic_auth_user_file)


def read_token_file(conf: cfg.ConfigOpts) -> Path:
    """The path of the token file for `token`."""
    return _beside(conf, conf.api.token_file)


def check_values(conf: cfg.ConfigOpts) -> None:
    """Read every option now, because libraries read some only in a worker or on a request.

    Raises:
        ConfigurationError: a value has the wrong type or is out of range.
    """
    for group, opts in (*service_opts(), ("DEFAULT", logging_opts())):
        values = conf if group == "DEFAULT" else conf[group]
        for opt in opts:
            if opt.dest in values:
                read_option(conf, group, opt)


def read_option(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> object:
    """The value of an option.

    Raises:
        ConfigurationError: the value has the wrong type or is out of range.
    """
    try:
        value = (conf if group == "DEFAULT" else conf[group])[opt.dest]
    except (cfg.ConfigSourceValueError, cfg.NoSuchOptError, cfg.TemplateSubstitutionError) as error:
        raise ConfigurationError(_wrong_value(group, opt.name, error)) from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigurationError(f"[{group}]{opt.name}: {value} is not a finite number")
    return value


def embedded_database_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The path of this user's SQLite database, in the XDG data directory."""
    data_home = Path(environment.get("XDG_DATA_HOME", ""))
    # The XDG specification: ignore a relative path.
    if not data_home.is_absolute():
        data_home = Path.home() / ".local" / "share"
    return data_home / "berth" / "berth.db"


def mask_url(url: str) -> str:
    """A database URL with its passwords replaced by `***`; all of it if it is not a URL."""
    if "://" not in url:
        return "***"
    return _PASSWORD.sub(r"\1***@", _PASSWORD_PARAMETER.sub(r"\1***", url))


def configuration_files(paths: Iterable[str | Path]) -> Iterable[Path]:
    """Files of a configuration as they are, and those in its directories."""
    for path in map(Path, paths):
        yield from sorted(path.glob("*.conf")) if path.is_dir() else (path,)


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
    stderr = io.StringIO()
    # Commands of OpenStack Placement's kind let oslo.config report mistakes in the command line.
    quietly = contextlib.nullcontext() if command else contextlib.redirect_stderr(stderr)
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
        # oslo.config treats some wrong values in files as a wrong command line.
        if command:
            raise
        raise ConfigurationError(_wrong_argument(stderr.getvalue())) from error
    except cfg.ConfigFilesNotFoundError as error:
        names = ", ".join(error.config_files)
        raise ConfigurationError(f"configuration file not found: {names}") from error
    except cfg.ConfigDirNotFoundError as error:
        raise ConfigurationError(
            f"configuration directory not found: {error.config_dir}"
        ) from error
    except cfg.ConfigFileParseError as error:
        raise ConfigurationError(_wrong_line(error)) from error
    except cfg.Error as error:
        raise ConfigurationError(_one_line(str(error))) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{_not_utf8(args, program)} is not UTF-8 text") from error
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {error.filename}: {(error.strerror or str(error)).lower()}"
        ) from error
    return conf


def _beside(conf: cfg.ConfigOpts, name: str) -> Path:
    """The path of a file whose name is relative to the first configuration file."""
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
    url = _with_parameters(group.connection, group.connection_parameters)
    return _from_options(DatabaseSettings, group, url=url)


def _from_options(kind: type[T], *groups: Mapping[str, Any], **others: Any) -> T:
    """Settings whose fields are called like the options that they hold, except `others`."""
    for name in {field.name for field in fields(cast(Any, kind))} - others.keys():
        others[name] = next(group[name] for group in groups if name in group)
    return kind(**others)


def _read_network(text: str) -> IPNetwork:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(
            f"[berth]metrics_networks: {error}; write a network as 192.0.2.0/24"
        ) from error


def _read_capacity_by(text: str) -> str:
    if text and not is_label_key(text):
        raise ConfigurationError(
            f"[berth]metrics_capacity_by: {text} cannot be the key of a label; write one such as "
            "zone or rack"
        )
    if text == CAPACITY_LABEL:
        raise ConfigurationError(
            f"[berth]metrics_capacity_by: {text} is a label of these metrics already; give the "
            "aggregates a label with another key"
        )
    return text


def _with_parameters(url: str, parameters: str) -> str:
    if not parameters:
        return url
    return f"{url}{'&' if '?' in url else '?'}{parameters}"


def _wrong_value(group: str, name: str, error: Exception) -> str:
    """One line about a value that an option cannot have."""
    if isinstance(error, (cfg.NoSuchOptError, cfg.TemplateSubstitutionError)):
        return (
            f"[{group}]{name} refers to an option that does not exist: write $$ for a dollar sign"
        )
    match = _WRONG_VALUE.fullmatch(str(error))
    if match is None:
        return _one_line(f"[{group}]{name}: {error}")
    return _one_line(f"[{group}]{name} in {match['source']}: {_reason(match['reason'])}")


def _wrong_argument(usage: str) -> str:
    """One line about a value that oslo.config reports as a command-line argument."""
    _, _, message = usage.rpartition("error: ")
    return _one_line(re.sub(r"^argument --([\w-]+): ", r"[DEFAULT]\1: ", message))


def _wrong_line(error: cfg.ConfigFileParseError) -> str:
    """One line about a file that is not in the INI format."""
    match = _WRONG_LINE.fullmatch(error.msg or "")
    if match is None:
        return _one_line(str(error))
    return _one_line(f"cannot parse {match['place']}: {match['reason']}")


def _not_utf8(args: Sequence[str], program: str) -> str:
    """The configuration file that has other bytes, for an error that does not name it."""
    paths = [Path(path) for path in args if not path.startswith("--")]
    for path in configuration_files(paths or cfg.find_config_files(PROJECT, program)):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return str(path)
    return "a configuration file"


def _reason(text: str) -> str:
    for pattern, replacement in _REASONS:
        if match := pattern.fullmatch(text):
            return match.expand(replacement)
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
