# SPDX-License-Identifier: Apache-2.0
"""The linux driver: this host as it is.

`host.py` reads it from what its kernel tells; what becomes of that is in `drivers.hosts`.
"""

from berth.hosts.drivers.linux.driver import LinuxDriver, make_driver
from berth.hosts.drivers.linux.options import Options

__all__ = ["LinuxDriver", "Options", "make_driver"]
