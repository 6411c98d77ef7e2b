# SPDX-License-Identifier: Apache-2.0
"""What a service refused to a command: one sentence for people, and the code of the API."""

from typing import Final

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: What to do about a refusal on the command line, which the service says for other programs.
NEXT_STEPS: Final = {
    "berth.consumer.holds": (
        "`berth move` moves a consumer, and `berth release` gives back what it has"
    ),
}


class ServiceRefused(CommandFailed):
    """The service refused a request, and changed nothing."""

    def __init__(self, message: str, error_code: str = "") -> None:
        super().__init__(message, ExitCode.SERVICE)
        #: The API's code of the error.
        self.error_code = error_code


class Forbidden(ServiceRefused):
    """The caller's role does not allow a request."""


class NotThere(ServiceRefused):
    """The subject of a request does not exist."""


class NoOwnApi(NotThere):
    """The service does not have a route of berth's own API."""


class InConflict(ServiceRefused):
    """The request conflicts with the state of the fleet, or another client was faster."""
