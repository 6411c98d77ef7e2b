# SPDX-License-Identifier: Apache-2.0
"""Measurements of berth, alone and beside OpenStack Placement.

`python -m bench` measures; the package `compare` looks for differences a client could see.
Nothing here is imported by the package `berth`, and nothing here judges by the clock in a test.
"""
