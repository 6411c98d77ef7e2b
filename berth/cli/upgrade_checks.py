# SPDX-License-Identifier: Apache-2.0
"""The checks of `berth status` and `placement-status`."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from oslo_config import cfg
from oslo_upgradecheck import common_checks
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from berth import deploy
from berth.config import ConfigurationError, Settings
from berth.edge.auth.keystone import KeystoneUnavailable
from berth.store.engine.database import Database
from berth.upkeep import schema

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
    if tables := schema.tables_behind(database):
        yield Check(
            "Database Sequences",
            Code.FAILURE,
            f"the sequences of {', '.join(tables)} are behind their rows, so writes fail. Run "
            f'the "berth db check --repair" command.',
        )


def texts_check(database: Database) -> Iterator[Check]:
    """Whether the database stores every text, and compares them all; no check if it does."""
    for odd in schema.odd_texts(database):
        code = Code.WARNING if odd.are_comparable else Code.FAILURE
        yield Check("Database Texts", code, f"{odd.sentence}; {odd.cure}.")


def schema_check(database: Database, settings: Settings) -> Check:
    """Whether this release can serve the database with its schema."""
    versions = schema.versions_of(database)
    is_served = versions == schema.CURRENT or settings.database.sync_on_startup
    if is_served or schema.is_empty(database):
        return Check("Database Schema", Code.SUCCESS, None)
    return Check("Database Schema", Code.FAILURE, f"{schema.why_not_current(versions)}.")


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
