# SPDX-License-Identifier: Apache-2.0
"""The checks of `berth status`, in their order."""

import json
import sys
from collections.abc import Iterator
from typing import Final, NoReturn

import click
from oslo_upgradecheck.upgradecheck import Code

from berth import deploy
from berth.api.auth.watched_file import is_open_to_others
from berth.cli.db_opened import opened
from berth.cli.error_codes import failure_for
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.upgrade_checks import Check, keystone_check, schema_check, upgrade_checks
from berth.config import ConfigurationError, Settings, read_settings

#: There was no way to check. 0, 1 and 2 are those of oslo.upgradecheck.
ERROR: Final = 255

_WORDS: Final = {Code.SUCCESS: "ok", Code.WARNING: "warning", Code.FAILURE: "failure"}


def print_status(source: ConfigurationSource, *, as_json: bool) -> NoReturn:
    """Print what each check found, and end the process with the code of the worst."""
    try:
        found = _checks(source)
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


def _checks(source: ConfigurationSource) -> list[Check]:
    conf = source.load()
    settings = read_settings(conf)
    deploy.check_supported(settings)
    deploy.check_policy(conf)
    credentials = [*_credentials_checks(settings), *keystone_check(settings)]
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {settings.database.masked_url} yet: `berth serve` or `berth db "
            f"upgrade` makes one",
            ExitCode.DATABASE,
        )
    with opened(settings, to_look_only=True) as database:
        schema = schema_check(database, settings)
        if schema.code is not Code.SUCCESS:
            return [schema, *credentials]
        return [schema, *credentials, *upgrade_checks(database, conf, "berth db check --repair")]


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
