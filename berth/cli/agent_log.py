# SPDX-License-Identifier: Apache-2.0
"""The log of a host's agent: to standard error, in the lines of the service's log.

The agent runs where the service's libraries are not installed, so this is Python's own logging.
"""

import logging
from typing import Any, Final

from berth.model.printable import printable

#: As oslo.log writes a line that belongs to no request.
_LINE: Final = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(message)s"
_TIME: Final = "%Y-%m-%d %H:%M:%S"

#: Libraries of which only warnings are logged, with `--debug` too: they log every request.
_QUIET: Final = ("keystoneauth", "requests", "stevedore", "urllib3")


class _OneLine(logging.Formatter):
    """Shows a message in one line, whatever names the service sent; a traceback follows it."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format a record without its traceback."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Format a traceback."""
        return "\n".join(map(printable, super().formatException(ei).splitlines()))


def set_up_logging(*, debug: bool) -> None:
    """Start logging for the whole process; what was set up before is replaced."""
    level = logging.DEBUG if debug else logging.INFO
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine(_LINE, _TIME))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.captureWarnings(True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
