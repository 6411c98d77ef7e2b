# SPDX-License-Identifier: Apache-2.0
"""The root of the `berth` command, and how every failure of it ends.

A failure is one sentence and, where there is one, the next step, on stderr, with an exit code of
`berth.cli.exit_codes`. A traceback is shown with `--debug` only.
"""

import sys
import traceback
from collections.abc import Sequence

import click

import berth
from berth.cli.db import db
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.serve import serve
from berth.config import ConfigurationError
from berth.deploy import NotInThisRelease
from berth.model.errors import BerthError, SchemaError, UnsupportedDatabase
from berth.store.schema import StillWritten

#: The code of an error, or of its nearest ancestor here.
EXIT_CODES: dict[type, ExitCode] = {
    StillWritten: ExitCode.IN_USE,
    NotInThisRelease: ExitCode.UNSUPPORTED,
    UnsupportedDatabase: ExitCode.UNSUPPORTED,
    SchemaError: ExitCode.SCHEMA,
    ConfigurationError: ExitCode.CONFIGURATION,
    BerthError: ExitCode.DATABASE,
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(berth.__version__, message="berth %(version)s")
@click.option("-d", "--debug", is_flag=True, help="Log in detail, and show where failures arise.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """What every machine in a fleet can offer, who holds what, and where more would fit."""
    context.obj = debug


cli.add_command(serve)
cli.add_command(db)


def main(args: Sequence[str] | None = None) -> None:
    """Run the `berth` command and end the process with its exit code."""
    debug = False
    try:
        with cli.make_context("berth", list(sys.argv[1:] if args is None else args)) as context:
            debug = context.params["debug"]
            cli.invoke(context)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the outermost edge
        if debug:
            traceback.print_exc()
        failure = failure_for(error)
        click.echo(f"berth: {failure}", err=True)
        sys.exit(failure.code)


def failure_for(error: Exception) -> CommandFailed:
    """What to say about an error, and the code to end with."""
    if isinstance(error, CommandFailed):
        return error
    for kind in type(error).__mro__:
        if kind in EXIT_CODES:
            return CommandFailed(str(error), EXIT_CODES[kind])
    return CommandFailed(
        f"a mistake in berth itself, {type(error).__name__}: {error}; please report it with what "
        f"`berth --debug` adds",
        ExitCode.INTERNAL,
    )
