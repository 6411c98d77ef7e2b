# SPDX-License-Identifier: Apache-2.0
"""berth: what every machine in a fleet can offer, who holds what, and where more would fit."""

__version__ = "0.1.0"
