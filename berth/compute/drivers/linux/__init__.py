# SPDX-License-Identifier: Apache-2.0
"""The linux driver: this host as it is.

From a host to the service in three steps, each without knowing of the next:
`host.py` reads it, `wanted.py` says which providers it is to have, `shaping.py` makes a tree of
providers into that and moves what consumers hold along (`moving.py`).
"""

from berth.compute.drivers.linux.driver import LinuxDriver, make_driver
from berth.compute.drivers.linux.options import HugePages, MdevRule, Model, Options, PCIRule

__all__ = ["HugePages", "LinuxDriver", "MdevRule", "Model", "Options", "PCIRule", "make_driver"]
