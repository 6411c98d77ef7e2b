# SPDX-License-Identifier: Apache-2.0
"""The linux driver: reports the machine that it runs on.

`host.py` reads the kernel's files; `drivers.hosts` turns that into providers.
"""

from berth.hosts.drivers.linux.driver import LinuxDriver, make_driver
from berth.hosts.drivers.linux.options import Options

__all__ = ["LinuxDriver", "Options", "make_driver"]
