# SPDX-License-Identifier: Apache-2.0
"""The message and exit code for an error from any part of berth."""

from typing import Final

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: The exit code of an error class, or of its nearest ancestor in this table. By name, so that no
#: module is imported for it.
EXIT_CODES: Final = {
    "berth.upkeep.adoption.StillWritten": ExitCode.IN_USE,
    "berth.hosts.errors.OtherMachine": ExitCode.IN_USE,
    "berth.hosts.errors.StateDirInUse": ExitCode.IN_USE,
    "berth.deploy.NotInThisRelease": ExitCode.UNSUPPORTED,
    "berth.extras.ServiceNotInstalled": ExitCode.UNSUPPORTED,
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
    """The message about an error, and the exit code."""
    if isinstance(error, CommandFailed):
        return error
    for kind in type(error).__mro__:
        if code := EXIT_CODES.get(f"{kind.__module__}.{kind.__qualname__}"):
            # One line for each fault of a configuration or a tree.
            return CommandFailed(str(error), code, faults=getattr(error, "faults", ()))
    return CommandFailed(
        f"a bug in berth: {type(error).__name__}: {error}; please report it with the output of "
        f"`berth --debug`",
        ExitCode.INTERNAL,
    )
