# SPDX-License-Identifier: Apache-2.0
"""The `berth` command: a thin layer of arguments and words over the parts that do the work."""

from berth.cli.main import main

__all__ = ["main"]
