# SPDX-License-Identifier: Apache-2.0
"""`placement-status upgrade check` for deployment tools, made with oslo.upgradecheck.

Checks, table and exit codes are those of OpenStack Placement (spec/operations.md 5.2).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from berth import config
from berth.cli.failure import failure_for
from berth.cli.local_database import opened
from berth.cli.output import say
from berth.cli.status import Check, upgrade_checks
from berth.config import read_settings

PROGRAM: Final = "placement-status"

#: The checks could not run.
ERROR: Final = 255


def run(args: Sequence[str]) -> int:
    """Run the checks and return the worst result: 0 success, 1 a warning, 2 a failure."""
    try:
        conf = config.load_for_command(
            args, PROGRAM, cfg.SubCommandOpt("command", handler=_add_commands)
        )
    except config.ConfigurationError as error:
        say(f"{PROGRAM}: {error}", err=True)
        return 1
    try:
        settings = read_settings(conf)
        with opened(settings, read_only=True) as database:
            checks = list(
                upgrade_checks(database, conf, "placement-manage db online_data_migrations")
            )
    except Exception as error:  # noqa: BLE001 - the outermost edge
        say(f"{PROGRAM}: {failure_for(error)}", err=True)
        return ERROR
    return int(_Report(checks).check())


class _Report(upgradecheck.UpgradeCommands):
    """Prints the library's table of results."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._upgrade_checks = tuple((check.title, partial(_result_of, check)) for check in checks)


def _result_of(check: Check, _report: _Report) -> upgradecheck.Result:
    return upgradecheck.Result(check.code, check.details)


def _add_commands(commands: Any) -> None:
    upgrade = commands.add_parser("upgrade")
    upgrade.add_argument("check", choices=["check"])
    upgrade.add_argument("--json", action="store_true", help="Ignored; prints the table.")
