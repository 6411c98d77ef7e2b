# SPDX-License-Identifier: Apache-2.0
"""The checks of `berth status`, in their order."""

import json
import sys
from collections.abc import Iterator
from typing import Final, NoReturn

import click
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from berth import deploy
from berth.api.auth.watched_file import is_open_to_others
from berth.api.policy import unknown_rules
from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.db_opened import opened
from berth.cli.error_codes import failure_for
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.service_check import service_check
from berth.cli.upgrade_checks import Check, keystone_check, schema_check, upgrade_checks
from berth.config import ConfigurationError, Settings, read_settings

#: There was no way to check. 0, 1 and 2 are those of oslo.upgradecheck.
ERROR: Final = 255

_WORDS: Final = {Code.SUCCESS: "ok", Code.WARNING: "warning", Code.FAILURE: "failure"}


def print_status(source: ConfigurationSource, *, as_json: bool, url: str | None) -> NoReturn:
    """Print what each check found, and end the process with the code of the worst.

    Args:
        url: the service that is expected to answer; None: the usual address, where none need.
    """
    try:
        found = _checks(source, url)
    except Exception as error:  # noqa: BLE001 - whatever it is, 1 and 2 would say something else
        click.echo(f"berth: {failure_for(error)}", err=True)
        sys.exit(ERROR)
    if as_json:
        shown = [
            {"check": one.title, "result": _WORDS[one.code], "details": one.details}
            for one in found
        ]
        click.echo(json.dumps(shown, indent=2))
    else:
        for one in found:
            details = f": {one.details}" if one.details else ""
            click.echo(f"{_WORDS[one.code]:8} {one.title}{details}")
    sys.exit(int(max(one.code for one in found)))


def _checks(source: ConfigurationSource, url: str | None) -> list[Check]:
    conf = source.load()
    settings = read_settings(conf)
    deploy.check_supported(settings)
    deploy.check_policy(conf)
    configuration = [
        *_policy_checks(conf),
        *_credentials_checks(settings),
        *keystone_check(settings),
        service_check(url or _local_url(settings), is_expected=url is not None),
    ]
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {settings.database.masked_url} yet: `berth serve` or `berth db "
            f"upgrade` makes one",
            ExitCode.DATABASE,
        )
    which = Check("Database", Code.SUCCESS, settings.database.masked_url)
    with opened(settings, to_look_only=True) as database:
        schema = schema_check(database, settings)
        if schema.code is not Code.SUCCESS:
            return [which, schema, *configuration]
        further = upgrade_checks(database, conf, "berth db check --repair")
        return [which, schema, *configuration, *further]


def _local_url(settings: Settings) -> str:
    """Where `berth serve` is found unless it is told another address."""
    return f"{'https' if settings.tls_cert else 'http'}://{DEFAULT_HOST}:{DEFAULT_PORT}"


def _policy_checks(conf: cfg.ConfigOpts) -> Iterator[Check]:
    """Whether all that the policy files set is a rule."""
    if unknown := unknown_rules(conf):
        yield Check(
            "Policy Rules",
            Code.WARNING,
            f"the policy files set {', '.join(unknown)}, and there is no such rule: `berth policy "
            f"list` names them all.",
        )


def _credentials_checks(settings: Settings) -> Iterator[Check]:
    """Whether the file of users or of tokens can be used, and by somebody."""
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
            title, Code.WARNING, f"{path} is open to everybody on this machine: chmod o= it."
        )
    elif count == 0:
        yield Check(title, Code.WARNING, f"{path} lets nobody in yet: `{command}`.")
    else:
        yield Check(title, Code.SUCCESS, None)
