# SPDX-License-Identifier: Apache-2.0
"""How a command ends that met an error of any part."""

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.compute.errors import (
    BadConfiguration,
    BadProviderTree,
    ComputeError,
    DriverFailed,
    ReshapeFailed,
    StateDirInUse,
)
from berth.config import ConfigurationError
from berth.deploy import NotInThisRelease
from berth.model.errors import BerthError, SchemaError, UnsupportedDatabase
from berth.store.schema import StillWritten

#: The code of an error, or of its nearest ancestor here.
EXIT_CODES: dict[type, ExitCode] = {
    StillWritten: ExitCode.IN_USE,
    StateDirInUse: ExitCode.IN_USE,
    NotInThisRelease: ExitCode.UNSUPPORTED,
    UnsupportedDatabase: ExitCode.UNSUPPORTED,
    SchemaError: ExitCode.SCHEMA,
    ConfigurationError: ExitCode.CONFIGURATION,
    BerthError: ExitCode.DATABASE,
    BadConfiguration: ExitCode.CONFIGURATION,
    BadProviderTree: ExitCode.HOST,
    DriverFailed: ExitCode.HOST,
    ReshapeFailed: ExitCode.HOST,
    ComputeError: ExitCode.SERVICE,
}


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
