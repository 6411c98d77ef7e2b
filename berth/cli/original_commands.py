# SPDX-License-Identifier: Apache-2.0
"""The programs `placement-manage` and `placement-status`, which need the service installed.

The entry points import them through this module, so that a machine with only the host side prints
one sentence and not a traceback.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from berth.cli.failure import failure_for
from berth.cli.output import say
from berth.extras import ServiceNotInstalled, needs_service


def placement_manage(args: Sequence[str] | None = None) -> NoReturn:
    """Run `placement-manage` and exit with its code."""
    _run("placement-manage", args)


def placement_status(args: Sequence[str] | None = None) -> NoReturn:
    """Run `placement-status` and exit with its code."""
    _run("placement-status", args)


def _run(program: str, args: Sequence[str] | None) -> NoReturn:
    try:
        with needs_service():
            module = import_module(f"berth.cli.{program.replace('-', '_')}")
    except ServiceNotInstalled as error:
        failure = failure_for(error)
        say(f"{program}: {failure}", err=True)
        sys.exit(failure.code)
    sys.exit(module.run(sys.argv[1:] if args is None else args))
