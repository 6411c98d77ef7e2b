# SPDX-License-Identifier: Apache-2.0
"""Exit codes of the `berth` command: the one place that defines them.

Scripts may rely on them; a code keeps its meaning for good.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    #: It did what it was asked to.
    OK = 0
    #: The configuration is missing, unreadable or contradictory; also any failure with no code
    #: of its own.
    CONFIGURATION = 1
    #: The command line was not understood.
    USAGE = 2
    #: The database's schema is not the one this release needs: `berth db upgrade` comes first.
    SCHEMA = 3
    #: What is configured is not part of this release (an engine, an authentication).
    UNSUPPORTED = 4
    #: The address to listen on is taken, or is not this machine's.
    ADDRESS = 5
    #: Refused for safety: serving others without authentication.
    UNSAFE = 6
    #: The database could not be opened, read or migrated.
    DATABASE = 7
    #: `berth db check` or `berth audit` found something wrong, or left it so.
    INCONSISTENT = 8
    #: No worker could start; the log says why.
    WORKERS = 9
    #: Refused because the database, or the state directory of a host's agent, is in use.
    IN_USE = 10
    #: The service that a command speaks to does not answer, or refused what was asked.
    SERVICE = 11
    #: What a host says of itself cannot be, or its tree could not take the shape that it is to
    #: have; the service holds the old one.
    HOST = 12
    #: A dry run found something to do; nothing was written.
    PENDING = 13
    #: A mistake in berth itself.
    INTERNAL = 70
    #: Stopped by Ctrl-C before there was anything to drain.
    INTERRUPTED = 130
    #: The reader closed the pipe (for example `head`).
    OUTPUT_CLOSED = 141
