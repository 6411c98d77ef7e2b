# SPDX-License-Identifier: Apache-2.0
"""How a command reaches the data of a service: through a running service, or its database."""

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
    source: ConfigurationSource, url: str | None, stack: ExitStack, *, read_only: bool = False
) -> Transport:
    """The service at a URL, with the token in OS_TOKEN; without a URL, the database.

    Args:
        stack: closes the database.
        read_only: change nothing in the database.

    Raises:
        CommandFailed: there is no token.
        SchemaNotReady, DatabaseUnavailable: see `PlacementDirect`.
    """
    if url is None:
        # Deferred: it imports the whole service.
        from berth.direct import PlacementDirect

        return stack.enter_context(PlacementDirect(source.load(), read_only=read_only))
    # Deferred: only this case needs it.
    from berth.hosts.transports import with_token

    token = os.environ.get("OS_TOKEN")
    if not token:
        raise CommandFailed("--url needs a token: set OS_TOKEN", ExitCode.USAGE)
    return with_token(url, token)
