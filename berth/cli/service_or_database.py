# SPDX-License-Identifier: Apache-2.0
"""The way of a command to what a service holds: a running one, or its database."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource

if TYPE_CHECKING:
    from berth.hosts.service import Transport


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
    # Here too: the other way does without.
    from berth.hosts.transports import with_token

    token = os.environ.get("OS_TOKEN")
    if not token:
        raise CommandFailed("--url needs a token in OS_TOKEN", ExitCode.USAGE)
    return with_token(url, token)
