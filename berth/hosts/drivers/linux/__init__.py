# SPDX-License-Identifier: Apache-2.0
"""The linux driver: reports the machine that it runs on.

`host.py` reads the kernel's files; `drivers.host_model` turns that into providers.
"""

from berth.hosts.drivers.linux.driver import LinuxDriver, make_driver

__all__ = ["LinuxDriver", "make_driver"]
