# SPDX-License-Identifier: Apache-2.0
"""The checks of `berth status`, in their order."""

import sys
from collections.abc import Iterator
from typing import Final, NoReturn

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from berth import deploy
from berth.api.policy import unknown_rules
from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.damaged_rows import damage_of
from berth.cli.db_opened import opened
from berth.cli.error_codes import failure_for
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.local_database import is_named
from berth.cli.options import ConfigurationSource
from berth.cli.output import say, say_json
from berth.cli.service_check import service_check
from berth.cli.upgrade_checks import (
    Check,
    keystone_check,
    schema_check,
    sequences_check,
    texts_check,
    upgrade_checks,
)
from berth.config import ConfigurationError, Settings, read_settings
from berth.edge.auth.watched_file import is_open_to_others
from berth.edge.unknown_options import unknown_options

#: The checks could not run. 0, 1 and 2 are the codes of oslo.upgradecheck.
ERROR: Final = 255

_WORDS: Final = {Code.SUCCESS: "ok", Code.WARNING: "warning", Code.FAILURE: "failure"}


def print_status(source: ConfigurationSource, *, as_json: bool, url: str | None) -> NoReturn:
    """Print the result of each check, and exit with the worst code.

    Args:
        url: the service that must answer; None: try the default address.
    """
    try:
        checks = _checks(source, url)
    except Exception as error:  # noqa: BLE001 - 1 and 2 have other meanings here
        say(f"berth: {failure_for(error)}", err=True)
        sys.exit(ERROR)
    if as_json:
        results = [
            {"check": check.title, "result": _WORDS[check.code], "details": check.details}
            for check in checks
        ]
        say_json(results)
    else:
        for check in checks:
            details = f": {check.details}" if check.details else ""
            say(f"{_WORDS[check.code]:8} {check.title}{details}")
    sys.exit(int(max(check.code for check in checks)))


def _checks(source: ConfigurationSource, url: str | None) -> list[Check]:
    conf = source.load()
    settings = read_settings(conf)
    deploy.check_supported(settings)
    deploy.check_policy(conf)
    configuration = [
        *_option_checks(conf),
        *_policy_checks(conf),
        *_credentials_checks(settings),
        *keystone_check(settings),
        service_check(url or _local_url(settings), is_expected=url is not None),
    ]
    if deploy.is_absent(settings) and url is not None and not is_named(settings):
        nothing = "not checked, because nothing on this machine names one"
        return [Check("Database", Code.SUCCESS, nothing), *configuration]
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {settings.database.masked_url} yet: create it with `berth db "
            f"upgrade` or `berth serve`",
            ExitCode.DATABASE,
        )
    which = Check("Database", Code.SUCCESS, settings.database.masked_url)
    with opened(settings, read_only=True) as database:
        schema = schema_check(database, settings)
        if schema.code is not Code.SUCCESS:
            return [which, schema, *configuration]
        texts = [*texts_check(database)]
        if any(check.code is Code.FAILURE for check in texts):
            return [which, schema, *configuration, *texts]
        further = upgrade_checks(database, conf, "berth db check --repair")
        damage = damage_of(database)
        rows = Check("Damaged Rows", Code.WARNING if damage else Code.SUCCESS, damage)
        sequences = sequences_check(database)
        return [which, schema, *configuration, *texts, *sequences, *further, rows]


def _local_url(settings: Settings) -> str:
    """The URL of `berth serve` with its default address."""
    return f"{'https' if settings.tls_cert else 'http'}://{DEFAULT_HOST}:{DEFAULT_PORT}"


def _option_checks(conf: cfg.ConfigOpts) -> Iterator[Check]:
    """Whether files and variables set only known options."""
    if unknown := [*unknown_options(conf)]:
        yield Check("Options", Code.WARNING, f"{'; '.join(unknown)}.")


def _policy_checks(conf: cfg.ConfigOpts) -> Iterator[Check]:
    """Whether the policy files set only known rules."""
    if unknown := unknown_rules(conf):
        yield Check(
            "Policy Rules",
            Code.WARNING,
            f"the policy files set unknown rules: {', '.join(unknown)}; `berth policy list` prints "
            f"all rules.",
        )


def _credentials_checks(settings: Settings) -> Iterator[Check]:
    """Whether the file of users or tokens is readable, protected, and not empty."""
    credentials = deploy.credentials_of(settings)
    if credentials is None:
        return
    title, path, command = "Credentials File", credentials.path, credentials.command
    try:
        count = credentials.count()
    except ConfigurationError as error:
        yield Check(title, Code.FAILURE, f"{error}.")
        return
    if is_open_to_others(path):
        yield Check(
            title,
            Code.WARNING,
            f"every user of this machine can read {path}: run `chmod o= {path}`.",
        )
    elif count == 0:
        yield Check(title, Code.WARNING, f"{path} has no users yet: run `{command}`.")
    else:
        yield Check(title, Code.SUCCESS, None)
