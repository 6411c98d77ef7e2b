# SPDX-License-Identifier: Apache-2.0
"""The way of a command to what a service holds: a running one, or its database."""

import os
from contextlib import ExitStack

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.compute.service import Transport
from berth.compute.transports import with_token


def service_or_database(
    source: ConfigurationSource, url: str | None, stack: ExitStack, *, to_look_only: bool = False
) -> Transport:
    """The service at a URL, asked with the token in OS_TOKEN; without one, the database.

    Args:
        stack: closes the database.
        to_look_only: the database stays as it is.

    Raises:
        CommandFailed: there is no token.
        SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
    """
    if url is None:
        # Here, because it brings all of the service along.
        from berth.direct import PlacementDirect

        return stack.enter_context(PlacementDirect(source.load(), to_look_only=to_look_only))
    token = os.environ.get("OS_TOKEN")
    if not token:
        raise CommandFailed("--url needs a token in OS_TOKEN", ExitCode.USAGE)
    return with_token(url, token)
