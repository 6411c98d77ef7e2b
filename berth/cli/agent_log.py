# SPDX-License-Identifier: Apache-2.0
"""The log of a host's agent: to standard error, in the lines of the service's log.

The agent runs where the service's libraries are not installed, so this is Python's own logging.
"""

import logging
from typing import Final

#: As oslo.log writes a line that belongs to no request.
_LINE: Final = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(message)s"
_TIME: Final = "%Y-%m-%d %H:%M:%S"

#: Libraries of which only warnings are logged, with `--debug` too: they log every request.
_QUIET: Final = ("keystoneauth", "requests", "stevedore", "urllib3")


def set_up_logging(*, debug: bool) -> None:
    """Start logging for the whole process; what was set up before is replaced."""
    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(format=_LINE, datefmt=_TIME, level=level, force=True)
    logging.captureWarnings(True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
