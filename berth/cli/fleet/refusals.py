# SPDX-License-Identifier: Apache-2.0
"""What a service refused to a command: one sentence for people, and the code of the API."""

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed


class ServiceRefused(CommandFailed):
    """The service refused a request, and changed nothing."""

    def __init__(self, message: str, error_code: str = "") -> None:
        super().__init__(message, ExitCode.SERVICE)
        #: The API's code of the error.
        self.error_code = error_code


class NotThere(ServiceRefused):
    """The subject of a request does not exist."""


class NoOwnApi(NotThere):
    """The service does not have a route of berth's own API."""


class InConflict(ServiceRefused):
    """The request conflicts with the state of the fleet, or another client was faster."""
