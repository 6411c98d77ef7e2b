# SPDX-License-Identifier: Apache-2.0
"""Looks for differences between berth and OpenStack Placement that a client could see.

`python -m compare` sends both the same requests: a script, and random histories.
"""
