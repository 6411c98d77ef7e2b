# SPDX-License-Identifier: Apache-2.0
"""Errors of a database that an operator has to put right."""

from berth.model.errors import DatabaseUnavailable


class WritesRefused(DatabaseUnavailable):
    """The database refuses writes until an operator acts.

    Args:
        said: by the engine; may name the server.
        fault: what is wrong, and
        cure: what to do about it, both in public words.
    """

    def __init__(self, said: str, *, fault: str, cure: str) -> None:
        super().__init__(
            f"The database cannot be used at the moment: {fault} ({said}): {cure}",
            public=f"Nothing can be written because {fault}. An operator has to act: {cure}",
        )
        self.fault = fault
