# SPDX-License-Identifier: Apache-2.0
"""The database of this machine's configuration, for commands that open it themselves.

The first line on stderr says which database that is. No command changes a database that nothing
names: `berth serve`, `berth demo load` and `berth db upgrade` create the one in the home directory,
and everything else that would change it must name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import Final

from oslo_config import cfg

from berth import deploy
from berth.cli.failure import CommandFailed, ExitCode, naming_the_database
from berth.cli.output import say
from berth.cli.sources import ConfigurationSource
from berth.config import Settings, read_settings
from berth.store.engine.database import Database
from berth.store.versions import CURRENT, versions_of, why_not_current
from berth.upkeep.integrity import iter_faults


def database_of(
    source: ConfigurationSource,
    *,
    changes: bool = False,
    must_exist: bool = False,
    is_quiet: bool = False,
    instead: str = "",
) -> Settings:
    """The settings of a command for the database; says on stderr which database it is.

    Args:
        changes: the command changes what is in the database.
        must_exist: refuse a database that does not exist.
        is_quiet: say nothing.
        instead: the options that name a service, of commands that may use one.

    Raises:
        CommandFailed: nothing names the database (UNSAFE), or it does not exist (DATABASE).
        ConfigurationError: the configuration is wrong.
    """
    settings = read_settings(source.load())
    if must_exist:
        check_present(settings)
    if changes and not is_named(settings):
        raise refusal(settings, instead)
    # `berth db` names the database in its result.
    if is_quiet or (source.is_given and not instead):
        return settings
    why = "" if source.is_given else f" (no {instead or '--config-file'} given)"
    say(f"Database: {settings.database.masked_url}{why}", err=True)
    return settings


def is_named(settings: Settings) -> bool:
    """Whether a file or the environment names the database: it is not the default."""
    location = settings.conf.get_location("connection", "placement_database")
    return location is None or location.location is not cfg.Locations.set_default


def check_present(settings: Settings) -> None:
    """Refuse a database that does not exist, because a misspelt name would otherwise create one.

    Raises:
        CommandFailed: it does not exist (DATABASE).
    """
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {settings.database.masked_url}: to use a service, name it with "
            "--url or BERTH_URL; to create the database, start `berth serve` or run `berth db "
            "upgrade`",
            ExitCode.DATABASE,
        )


def refusal(settings: Settings, instead: str) -> CommandFailed:
    """The refusal to change a database that nothing names.

    Args:
        instead: see `database_of`.
    """
    url = settings.database.masked_url
    service = instead and f"a service with {instead}, or "
    return CommandFailed(
        f"this would change {url}, which nothing names: name {service}the database with "
        f"--config-file or OS_PLACEMENT_DATABASE__CONNECTION={url}",
        ExitCode.UNSAFE,
    )


@contextmanager
def opened(settings: Settings, *, read_only: bool = False) -> Iterator[Database]:
    """The configured database, whatever its schema.

    Args:
        read_only: change nothing, not even the file; a read-only file is enough.

    Raises:
        CommandFailed: the database cannot be used; names it and the next step.
    """
    database = deploy.open_store(settings, read_only=read_only)
    try:
        with naming_the_database(settings):
            database.reach()
            yield database
    finally:
        database.dispose()


@contextmanager
def current(settings: Settings, purpose: str, *, read_only: bool = False) -> Iterator[Database]:
    """The configured database, if its schema is this release's.

    Args:
        purpose: a verb, for messages.
        read_only: change nothing.

    Raises:
        SchemaNotReady: there is no database, or it has another schema.
        CommandFailed: it cannot be used.
    """
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise deploy.SchemaNotReady(
            f"there is no database {name} to {purpose}; create it with `berth db upgrade`"
        )
    with opened(settings, read_only=read_only) as database:
        if (versions := versions_of(database)) != CURRENT:
            why = why_not_current(versions)
            raise deploy.SchemaNotReady(f"cannot {purpose} {name}: {why}")
        yield database


#: More faults are not named.
_NAMED_MAX: Final = 3


def damage_of(database: Database) -> str | None:
    """The first faults of `berth db check`, and what to do; None if there are none."""
    with closing(iter_faults(database)) as faults:
        named = [fault.sentence for fault in islice(faults, _NAMED_MAX)]
        more = ", and more" if next(faults, None) else ""
    if not named:
        return None
    return f"{'; '.join(named)}{more}. Run `berth db check`, which says what to do."
