# SPDX-License-Identifier: Apache-2.0
"""The root of the `berth` command, and how it reports failures.

A failure prints one sentence on stderr, with the next step if there is one, and exits with a code
of `berth.cli.failure`. Only `--debug` prints a traceback.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

import berth
from berth.cli.completion import COMPLETION, PROGRAM, completion
from berth.cli.deferred import DeferringGroup
from berth.cli.failure import ExitCode
from berth.cli.output import say
from berth.extras import needs_service
from berth.model.printable import printable, without_passwords


@click.group(cls=DeferringGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(berth.__version__, message="berth %(version)s")
@click.option("-d", "--debug", is_flag=True, help="Log at level DEBUG, and print tracebacks.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Track what every machine in a fleet offers, who uses it, and where more fits."""
    context.obj = debug


cli.defer(
    ("agent", "agent", "Report this host's resources to the service."),
    ("aggregate", "fleet.names", "List and label aggregates, and set those of a provider."),
    ("audit", "audit", "Find orphaned allocations and providers."),
    ("audit-log", "audit_log", "Read the audit log: who changed what, and when."),
    ("candidates", "fleet.candidates", "Find where a request fits."),
    ("capacity", "fleet.capacity", "Count how many more fit."),
    ("claim", "fleet.claims", "Allocate resources to a consumer, all or nothing."),
    ("class", "fleet.names", "List, show, create and delete resource classes."),
    ("config", "service_commands", "Show the configuration."),
    ("consumer", "fleet.consumers", "Show consumers and their allocations."),
    ("db", "service_commands", "Create, upgrade, check and copy the database."),
    ("demo", "fleet.demo", "Load or remove a demo fleet, or serve one."),
    (
        "drain",
        "fleet.drain",
        "List, create, show, change and delete drains, which exclude providers from searches.",
    ),
    ("dump", "fleet.watch", "Print the whole fleet as JSON lines, in one consistent state."),
    ("files", "files", "Print the directory of the files that come with berth."),
    ("flavor", "fleet.flavor", "List, set, import and delete flavors: requests with a name."),
    ("inventory", "fleet.inventory", "List, show, set and delete the inventory of a provider."),
    ("lease", "fleet.consumers", "List, set, end and sweep leases of consumers."),
    (
        "migrate-inventory",
        "service_commands",
        "Reshape this host's trees while every service is stopped.",
    ),
    ("move", "fleet.place", "Move a consumer to another host, or give it other amounts."),
    ("place", "fleet.place", "Choose hosts for consumers, and claim there, in one transaction."),
    ("policy", "service_commands", "Show and test the policy."),
    ("provider", "fleet.provider", "List, show, create, change and delete providers."),
    ("release", "fleet.claims", "Remove all allocations of consumers, of all or of none."),
    (
        "reshape",
        "fleet.claims",
        "Replace inventories of providers and allocations of consumers in one transaction.",
    ),
    ("serve", "service_commands", "Serve the placement API."),
    ("status", "service_commands", "Check whether this release can serve."),
    ("token", "service_commands", "Create, list and revoke tokens (auth_strategy = token)."),
    ("trait", "fleet.names", "List, show, create and delete traits, and set those of a provider."),
    ("usage", "fleet.consumers", "Show what is used: of a provider, or by a project."),
    ("user", "service_commands", "Manage users (auth_strategy = http_basic)."),
    ("watch", "fleet.watch", "Print what changes in the fleet, until you stop it."),
    ("who", "fleet.consumers", "List who uses a host, or what a project uses."),
    ("why", "fleet.why", "Explain why a request does not fit, and what would help."),
)
cli.add_command(completion)


def main(args: Sequence[str] | None = None) -> None:
    """Run the `berth` command and end the process with its exit code."""
    # At exit Python collects garbage several times over: a quarter of a second for the modules of
    # the service.
    atexit.register(gc.freeze)
    if instruction := os.environ.get(COMPLETION):
        sys.exit(shell_complete(cli, {}, PROGRAM, COMPLETION, instruction))
    debug = False
    try:
        with cli.make_context(PROGRAM, list(sys.argv[1:] if args is None else args)) as context:
            debug = context.params["debug"]
            with needs_service():
                cli.invoke(context)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.__dict__["message"] = printable(error.message)
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        # Python ends by the signal, whatever the exit code, if the interrupt came through code that
        # was compiled from a string, as libraries make at import; running some more undoes that.
        exec("")
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # Python would write the rest of its buffer at exit and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OUTPUT_CLOSED)
    except Exception as error:  # noqa: BLE001 - the outermost edge
        # Deferred: only failures need them.
        import traceback

        from berth.cli.failure import failure_for

        if debug:
            say(*without_passwords(traceback.format_exc()).splitlines(), err=True)
        failure = failure_for(error)
        say(*(f"berth: {without_passwords(each)}" for each in failure.sentences), err=True)
        sys.exit(failure.code)
