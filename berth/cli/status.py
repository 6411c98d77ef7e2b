# SPDX-License-Identifier: Apache-2.0
"""The work of `berth status`: its checks, in their order."""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from oslo_config import cfg
from oslo_upgradecheck import common_checks
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from berth import deploy
from berth.api.policy import unknown_rules
from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.failure import CommandFailed, ExitCode, failure_for
from berth.cli.fleet.access import service_url
from berth.cli.local_database import damage_of, is_named, opened
from berth.cli.output import say, say_json
from berth.cli.sources import ConfigurationSource
from berth.config import ConfigurationError, Settings, read_settings
from berth.edge.auth.identity import KeystoneUnavailable
from berth.edge.auth.watched_file import is_open_to_others
from berth.edge.unknown_options import unknown_options
from berth.model.printable import without_passwords
from berth.store.engine.database import Database
from berth.store.versions import CURRENT, is_empty, versions_of, why_not_current
from berth.upkeep import schema
from berth.upkeep.integrity.storage import odd_texts, tables_behind

#: The checks could not run. 0, 1 and 2 are the codes of oslo.upgradecheck.
ERROR: Final = 255

_WORDS: Final = {Code.SUCCESS: "ok", Code.WARNING: "warning", Code.FAILURE: "failure"}


def status(source: ConfigurationSource, *, as_json: bool, url: str | None) -> NoReturn:
    """Print the result of each check, and exit with the worst code.

    Args:
        url: the service that must answer; None: the one that is configured, if any.
    """
    url = service_url(os.environ, url, source)
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


# --- The checks of OpenStack Placement ------------------------------------------------------------

_KEYSTONE: Final = "Keystone"


class Check(NamedTuple):
    """The result of a check; `details` says what to do, and is None if there is no problem."""

    title: str
    code: Code
    details: str | None


def upgrade_checks(database: Database, conf: cfg.ConfigOpts, remedy: str) -> Iterator[Check]:
    """OpenStack Placement's checks, with its titles. Source: spec/operations.md 5.2.

    Args:
        remedy: the command that runs the data migrations.
    """
    left = schema.count_unmigrated(database)
    for title, count, code, problem in (
        (
            "Missing Root Provider IDs",
            left.providers,
            Code.FAILURE,
            "resource provider(s) have no root provider id",
        ),
        (
            "Incomplete Consumers",
            left.consumers,
            Code.WARNING,
            "consumer(s) have allocations but no record",
        ),
    ):
        if count:
            yield Check(title, code, f'{count} {problem}. Run the "{remedy}" command.')
        else:
            yield Check(title, Code.SUCCESS, None)
    result: Result = common_checks.check_policy_json(UpgradeCommands(), conf)
    yield Check("Policy File JSON to YAML Migration", Code(result.code), result.details)


def sequences_check(database: Database) -> Iterator[Check]:
    """Whether PostgreSQL would number new rows as old ones; no check if it would not."""
    if tables := tables_behind(database):
        yield Check(
            "Database Sequences",
            Code.FAILURE,
            f"the sequences of {', '.join(tables)} are behind their rows, so writes fail. Run "
            f'the "berth db check --repair" command.',
        )


def texts_check(database: Database) -> Iterator[Check]:
    """Whether the database stores every text, and compares them all; no check if it does."""
    for odd in odd_texts(database):
        code = Code.WARNING if odd.key["are_comparable"] else Code.FAILURE
        yield Check("Database Texts", code, f"{odd.sentence}; {odd.advice}.")


def schema_check(database: Database, settings: Settings) -> Check:
    """Whether this release can serve the database with its schema."""
    versions = versions_of(database)
    is_served = versions == CURRENT or settings.database.sync_on_startup
    if is_served or is_empty(database):
        return Check("Database Schema", Code.SUCCESS, None)
    return Check("Database Schema", Code.FAILURE, f"{why_not_current(versions)}.")


def keystone_check(settings: Settings) -> Iterator[Check]:
    """Whether Keystone validates berth's tokens; no check without auth_strategy = keystone."""
    if settings.auth_strategy != "keystone":
        return
    try:
        deploy.check_keystone(settings)
    except KeystoneUnavailable as error:
        code = Code.FAILURE if error.is_refusal else Code.WARNING
        yield Check(_KEYSTONE, code, f"{error}.")
    except ConfigurationError as error:
        yield Check(_KEYSTONE, Code.FAILURE, f"{error}.")
    else:
        yield Check(_KEYSTONE, Code.SUCCESS, None)


# --- Whether a service answers --------------------------------------------------------------------

_SERVICE: Final = "Service"

#: Seconds to wait for an answer; a service that is not ready answers within five.
_ANSWER_S_MAX: Final = 6.0


def service_check(url: str, *, is_expected: bool) -> Check:
    """Request `/readyz` from a service.

    Args:
        is_expected: report a failure if nothing answers, or if the service is not ready.
    """
    shown = without_passwords(url)
    code = Code.FAILURE if is_expected else Code.SUCCESS
    try:
        ready = _ready(f"{url.rstrip('/')}/readyz")
    except (OSError, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = (getattr(cause, "strerror", None) or str(cause)).lower()
        return Check(_SERVICE, code, f"no service answers at {shown} ({reason}).")
    if ready is not None:
        return Check(_SERVICE, code, f"the service at {shown} is not ready: {ready}.")
    return Check(_SERVICE, Code.SUCCESS, f"the service at {shown} is ready.")


def _ready(url: str) -> str | None:
    """Why a service is not ready; None if it is.

    Raises:
        OSError: nothing answers.
        ValueError: another program answers, or the URL is not one.
    """
    # The request has no secrets, and certificates are rarely valid for the loopback address.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=_ANSWER_S_MAX) as answer:
            health = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            health = json.load(error)
    if not isinstance(health, dict) or health.get("status") not in ("ok", "unavailable"):
        raise ValueError("another program answers there")
    return None if health["status"] == "ok" else str(health.get("reason"))
