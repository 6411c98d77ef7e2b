# SPDX-License-Identifier: Apache-2.0
"""How a command says that it failed."""

from berth.cli.exit_codes import ExitCode


class CommandFailed(Exception):
    """A command cannot do what it was asked to: one sentence for people, one code for scripts."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code
