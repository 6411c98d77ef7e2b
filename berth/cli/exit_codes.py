# SPDX-License-Identifier: Apache-2.0
"""Exit codes of the `berth` command: the one place that defines them.

Scripts rely on them, so a code never changes its meaning.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    #: Success.
    OK = 0
    #: The configuration is missing, unreadable or contradictory; also any failure without a code
    #: of its own.
    CONFIGURATION = 1
    #: The command line is wrong.
    USAGE = 2
    #: The database does not have this release's schema: run `berth db upgrade` first.
    SCHEMA = 3
    #: This release does not support the configured database engine or authentication, or the extra
    #: that it needs is not installed.
    UNSUPPORTED = 4
    #: The address to listen on is in use, or not an address of this machine.
    ADDRESS = 5
    #: Refused because it is unsafe: serving other machines without authentication, or changing a
    #: database that nothing names.
    UNSAFE = 6
    #: The database cannot be opened, read or upgraded.
    DATABASE = 7
    #: `berth db check` or `berth audit` found problems, or left some.
    INCONSISTENT = 8
    #: No worker could start; the log says why.
    WORKERS = 9
    #: Refused because the database, or the state directory of an agent, is in use.
    IN_USE = 10
    #: The service does not answer, or refused the request; or what the command names does not
    #: exist.
    SERVICE = 11
    #: The host's report is invalid, or its provider tree cannot be reshaped; the service keeps the
    #: old tree.
    HOST = 12
    #: A dry run found pending changes; nothing was written.
    PENDING = 13
    #: `berth candidates`, `berth place` or `berth move` found no host that fits.
    NOTHING_FITS = 14
    #: A bug in berth.
    INTERNAL = 70
    #: Interrupted with Ctrl-C, or not confirmed.
    INTERRUPTED = 130
    #: The reader closed the pipe (for example `head`).
    OUTPUT_CLOSED = 141
