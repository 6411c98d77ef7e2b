# SPDX-License-Identifier: Apache-2.0
"""The root of the `berth` command, and how every failure of it ends.

A failure is one sentence and, where there is one, the next step, on stderr, with an exit code of
`berth.cli.exit_codes`. A traceback is shown with `--debug` only.
"""

import os
import sys
import traceback
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

import berth
from berth.cli.completion import COMPLETION, PROGRAM, completion
from berth.cli.deferred import DeferringGroup
from berth.cli.exit_codes import ExitCode


@click.group(cls=DeferringGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(berth.__version__, message="berth %(version)s")
@click.option("-d", "--debug", is_flag=True, help="Log in detail, and show where failures arise.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """What every machine in a fleet can offer, who holds what, and where more would fit."""
    context.obj = debug


cli.defer(
    ("agent", "agent", "Report what this host offers."),
    (
        "audit",
        "audit",
        "Find orphaned allocations, and providers without a host.",
    ),
    ("config", "config_show", "Show the configuration."),
    ("db", "db", "Create, upgrade, check and copy the database."),
    ("files", "files", "Print the directory of the files that come with berth."),
    (
        "migrate-inventory",
        "migrate_inventory",
        "Bring hosts into the shape that they are to have, with every service stopped.",
    ),
    ("policy", "policy", "Show and test the policy."),
    ("serve", "serve", "Serve the placement API."),
    (
        "status",
        "status",
        "Check whether this release can serve with the configuration and the database as they are.",
    ),
    ("token", "token", "Create, list and revoke tokens (auth_strategy = token)."),
    ("user", "user", "Manage users and their passwords (auth_strategy = http_basic)."),
)
cli.add_command(completion)


def main(args: Sequence[str] | None = None) -> None:
    """Run the `berth` command and end the process with its exit code."""
    if asked := os.environ.get(COMPLETION):
        sys.exit(shell_complete(cli, {}, PROGRAM, COMPLETION, asked))
    debug = False
    try:
        with cli.make_context(PROGRAM, list(sys.argv[1:] if args is None else args)) as context:
            debug = context.params["debug"]
            cli.invoke(context)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # What is still buffered would be written once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OUTPUT_CLOSED)
    except Exception as error:  # noqa: BLE001 - the outermost edge
        # Here, because it knows the errors of all parts.
        from berth.cli.error_codes import failure_for

        if debug:
            traceback.print_exc()
        failure = failure_for(error)
        click.echo(f"berth: {failure}", err=True)
        sys.exit(failure.code)
