# SPDX-License-Identifier: Apache-2.0
"""How a command ends that met an error of any part."""

from typing import Final

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: The code of an error, or of its nearest ancestor here. By name, as whoever tells of an error has
#: imported its module, and should not wait for those of all others.
EXIT_CODES: Final = {
    "berth.upkeep.adoption.StillWritten": ExitCode.IN_USE,
    "berth.hosts.errors.StateDirInUse": ExitCode.IN_USE,
    "berth.deploy.NotInThisRelease": ExitCode.UNSUPPORTED,
    "berth.model.errors.UnsupportedDatabase": ExitCode.UNSUPPORTED,
    "berth.model.errors.SchemaError": ExitCode.SCHEMA,
    "berth.config.ConfigurationError": ExitCode.CONFIGURATION,
    "berth.model.errors.BerthError": ExitCode.DATABASE,
    "berth.hosts.errors.BadConfiguration": ExitCode.CONFIGURATION,
    "berth.hosts.errors.BadProviderTree": ExitCode.HOST,
    "berth.hosts.errors.DriverFailed": ExitCode.HOST,
    "berth.hosts.errors.ReshapeFailed": ExitCode.HOST,
    "berth.hosts.errors.ComputeError": ExitCode.SERVICE,
}


def failure_for(error: Exception) -> CommandFailed:
    """What to say about an error, and the code to end with."""
    if isinstance(error, CommandFailed):
        return error
    for kind in type(error).__mro__:
        if code := EXIT_CODES.get(f"{kind.__module__}.{kind.__qualname__}"):
            return CommandFailed(str(error), code)
    return CommandFailed(
        f"a mistake in berth itself, {type(error).__name__}: {error}; please report it with what "
        f"`berth --debug` adds",
        ExitCode.INTERNAL,
    )
